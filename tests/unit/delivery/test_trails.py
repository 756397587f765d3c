"""The history of a message that one receiver did not take, and the few bytes that it stands in."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.trails import (
    LONGEST_TRAIL,
    MAX_TEXT,
    Attempt,
    Trail,
    clipped,
    extended,
    first_and_last,
    pack_trail,
    unpack_trail,
)

ROOM = 250
LONGEST_CODE = "user.security.authentication.accessDenied.unknownLoginName"

attempts = st.builds(
    Attempt,
    n=st.integers(0, 2**31),
    time=st.integers(0, 2**42),
    node=st.sampled_from(["here", "there"]),
    transport=st.sampled_from(["", "long-polling", "websocket"]),
    outcome=st.sampled_from(["lost reply", "user.update.error"]),
    latency=st.none() | st.integers(0, 2**31),
    code=st.sampled_from(["", "user.update.error"]),
    text=st.text(max_size=20),
)


def refused(n: int, text: str = "disk full") -> Attempt:
    time = 1_763_000_000_000 + n * 60_000
    code = "user.update.error"
    return Attempt(n, time, "holdfast", "long-polling", code, 250, code, text)


def history(*attempts: Attempt) -> Trail:
    trail: Trail = ()
    for attempt in attempts:
        trail = extended(trail, attempt)
    return trail


def test_of_endless_attempts_the_first_and_the_last_ones_are_remembered() -> None:
    trail = history(*map(refused, range(1, 100)))
    assert [attempt.n for attempt in trail] == [1, 2, 3, 4, 5, 95, 96, 97, 98, 99]
    assert trail == first_and_last([*map(refused, range(1, 100))])


def test_what_is_said_about_an_attempt_is_cut() -> None:
    (kept,) = first_and_last([refused(1, "x" * 1000)])
    assert kept.text == "x" * MAX_TEXT


@pytest.mark.slow
@given(st.lists(attempts, max_size=LONGEST_TRAIL))
def test_a_history_that_has_room_is_read_as_it_was_written(some: list[Attempt]) -> None:
    assert unpack_trail(pack_trail(tuple(some), 10_000)) == tuple(some)


@pytest.mark.slow
@given(st.lists(attempts, min_size=1, max_size=LONGEST_TRAIL))
def test_a_history_without_room_tells_how_it_began_and_how_it_ended(some: list[Attempt]) -> None:
    packed = pack_trail(tuple(some), ROOM)
    assert len(packed) <= ROOM
    told = unpack_trail(packed)
    assert [each.n for each in (told[0], told[-1])] == [some[0].n, some[-1].n]


def test_attempts_that_ended_alike_all_have_room() -> None:
    trail = history(*map(refused, range(1, LONGEST_TRAIL + 1)))
    assert unpack_trail(pack_trail(trail, ROOM)) == trail


def test_the_longest_words_have_room() -> None:
    said = [
        Attempt(n, 2**41, "holdfast", transport, LONGEST_CODE, 10**9, LONGEST_CODE, text)
        for n, transport, text in (
            (10**6, "callback-polling", "\x01" * 100),
            (10**6 + 1, "long-polling", "\x02" * 100),
        )
    ]
    packed = pack_trail(first_and_last(said), ROOM)
    assert len(packed) <= ROOM
    assert [attempt.outcome for attempt in unpack_trail(packed)] == [LONGEST_CODE] * 2


@pytest.mark.parametrize("text", ["", "x", "x" * 40, "\x01" * 40, "\U0001f600" * 40, '"' * 40])
def test_a_text_is_cut_by_the_room_that_it_takes_in_json(text: str) -> None:
    cut = clipped(text, 40)
    assert text.startswith(cut)
    assert len(orjson.dumps(cut)) - 2 <= 40
    assert cut == text or len(orjson.dumps(cut)) - 2 > 40 - 6
    assert clipped(cut, 40) == cut


def test_what_is_no_text_does_not_reach_the_store() -> None:
    assert clipped("a\ud800b", 40) == "a?b"
