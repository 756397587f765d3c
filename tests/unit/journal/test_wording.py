"""The journal has the wording of a failure: plain words, and stars for all else."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.error_codes import CODES, UPDATE_ERROR
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from holdfast.journal.builder import FrameBuilder
from holdfast.journal.frame import decode
from holdfast.journal.schema import Event, Kind
from holdfast.journal.unfold import unfold
from holdfast.journal.wording import LONGEST, wording_of
from tests.unit.bayeux.harness import server_of
from tests.unit.bayeux.second_lives import connect, named, publish
from tests.unit.journal.ledger import Writing

if TYPE_CHECKING:
    from holdfast.bayeux.wire.codec import Json

NOW = 1_763_600_000_000_000
MESSAGE = Message(b"{}", id=NOW * 1000, channel="/a")


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("no connect in time", "no connect in time"),
        ("The stock is empty. Order later!", "The stock is empty. Order later!"),
        ("can't read the read-only (local) file", "can't read the read-only (local) file"),
        ("order 17: unknown", "order *: unknown"),
        ("order A-17, 18 and EU_19 is unknown", "order * and * is unknown"),
        ("orders 17, 18, 19 are unknown", "orders * are unknown"),
        ("customer Ann Smith has left", "customer * has left"),
        ("unknown customer: Ann. Ask her!", "unknown customer: *. Ask her!"),
        ("mail joe@example.com, path a/b, host db.local", "mail *, path *, host *"),
        ("invalid literal for int() with base 10: 'x'", "invalid literal for * with base *"),
        ("KeyError: 'unit price'", "KeyError: *"),
        (
            "java.lang.NullPointerException: the price is null",
            "java.lang.NullPointerException: the price is null",
        ),
        ("shop.noStock: nothing at joe.smith.", "shop.noStock: nothing at *."),
        ('no "price in euros" for „drei Äpfel“ and «une poire»', "no * for * and *"),
        ("it's bad: 'it's worse', \u2018isn\u2019t it\u2019 `x y`", "it's bad: *"),
        ("failed with 'no end of words", "failed with *"),
        ('{"price": 7, "name": "joe"} is invalid', "* is invalid"),
        ("x" * 30 + " is too long", "* is too long"),
        ("Größe ist unbekannt", "Größe ist unbekannt"),
        ("a \ud800 b", "a * b"),
    ],
)
def test_a_wording_keeps_only_the_plain_words_of_a_text(text: str, wording: str) -> None:
    assert wording_of(text) == wording


@pytest.mark.parametrize("text", ["", " ", "17", "'order'", "A1 B2, C3.", '{"a": 1}'])
def test_a_text_without_plain_words_has_no_wording(text: str) -> None:
    assert wording_of(text) is None


def test_the_end_of_a_very_long_text_does_not_change_its_wording() -> None:
    long = "no room left " * 100
    assert wording_of(long) == wording_of(long + "at all")
    assert wording_of("order " + "9" * 90 + " is unknown") == wording_of("order 9 is unknown")


@given(st.text())
def test_a_wording_is_short_and_has_no_digits(text: str) -> None:
    wording = wording_of(text) or ""
    assert len(wording) <= LONGEST
    assert not any(character.isdigit() for character in wording)
    wording.encode()


def refusal(code: str, text: str) -> list[Event]:
    """The journal of a session that refuses a message."""
    store = Writing()
    server = server_of(keeper=store, journal=store.writer)
    client = named(server)
    publish(server, 1)
    connect(client, 1)
    verdict: Json = {"seq": client.session.queue.seq, "errorCode": code, "message": text}
    connect(client, None, verdict)
    return store.events()


@pytest.mark.parametrize("code", ["user.update.error", "user.paper.empty"])
def test_a_refusal_and_its_dead_letter_have_the_code_as_sent_and_the_same_wording(
    code: str,
) -> None:
    found = refusal(code, "order 17 of 'joe' is unknown")
    wordings = [
        (event.kind, event.code, event.wording) for event in found if event.code is not None
    ]
    assert wordings == [
        (Kind.REFUSED, code, "order * of * is unknown"),
        (Kind.DEAD, code, "order * of * is unknown"),
    ]
    assert "joe/1" not in [event.wording for event in found]


def test_a_refusal_without_a_text_has_no_wording() -> None:
    code = "user.update.error"
    found = [event for event in refusal(code, "") if event.code == code]
    assert CODES[code].meaning
    assert [(event.kind, event.wording) for event in found] == [
        (Kind.REFUSED, None),
        (Kind.DEAD, None),
    ]


def test_a_note_that_a_killed_process_left_has_the_wording() -> None:
    receiver = Receiver(CallbackQueue(QueueLimits(), Counters()), 1)
    receiver.is_durable = True
    killed, next_one = Writing(), Writing()
    killed.writer.refused_with_note(receiver, [Entry(MESSAGE)], UPDATE_ERROR, "order 17 is unknown")
    note = killed.writer.note_marked({receiver.key: [MESSAGE.id]}, {})
    next_one.writer.report_left_notes({1: note})
    next_one.writer.flush(0.0)
    [frame] = next_one.shelf.frames
    assert [event.wording for event in unfold(decode(frame))] == ["order * is unknown"]


def frame_with(wordings: list[str | None]) -> tuple[dict[str, object], list[str | None]]:
    """The columns of a frame with such failures, and the wordings that it unfolds into."""
    builder = FrameBuilder("here")
    for wording in wordings:
        if wording is None:
            builder.explained(Kind.REFUSED, MESSAGE, "joe/1", NOW, code="user.x")
        else:
            builder.explained(Kind.REFUSED, MESSAGE, "joe/1", NOW, code="user.x", wording=wording)
    frame = decode(builder.frame())
    return {**frame.body["delivered"]}, [event.wording for event in unfold(frame)]


def test_a_frame_without_wordings_has_no_column_for_them() -> None:
    columns, found = frame_with([None, None])
    assert "wording" not in columns
    assert found == [None, None]


def test_a_frame_has_a_hundred_different_wordings_at_most() -> None:
    given: list[str | None] = [f"failed like {'x' * n}" for n in range(150)]
    _, found = frame_with([*given, given[0], None, given[-1]])
    assert found == [*given[:100], *[None] * 50, given[0], None, None]
