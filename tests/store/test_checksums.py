"""What was changed in the store from outside is not taken for what a server stored."""

import random
from collections.abc import Callable, Iterator

import pytest

from holdfast.delivery.topics.configured import TopicConfig, TopicRecord
from holdfast.store.format import letter_records, records
from holdfast.store.format.layouts import NEWEST, OLDEST_LAYOUT, written_form
from holdfast.store.format.records import UNREADABLE
from tests.store.store_process import BASE, KEYS, StoreProcess, letter, message, session

JOE = ("joe/1",)
BOTH = ("joe/1", "ann/1")
TOPIC = TopicRecord(TopicConfig(-1, is_readonly=True))


def flips_of(record: bytes) -> Iterator[bytes]:
    """The record with each of its bits changed."""
    for place, byte in enumerate(record):
        for bit in range(8):
            yield record[:place] + bytes([byte ^ 1 << bit]) + record[place + 1 :]


@pytest.mark.parametrize(
    ("record", "read"),
    [
        (
            records.pack_message(message(1), receivers=receivers),
            lambda record: records.unpack_message(BASE + 1, record),
        )
        for receivers in (JOE, BOTH)
    ]
    + [
        (records.pack_session(session("joe/1")), lambda r: records.unpack_session("joe/1", r)),
        (records.pack_topic("/a", TOPIC), lambda record: records.unpack_topic("/a", record)),
    ],
    ids=["message for one", "message for two", "session", "topic"],
)
def test_no_flip_of_a_bit_is_read(record: bytes, read: Callable[[bytes], object]) -> None:
    read(record)
    for changed in flips_of(record):
        with pytest.raises(UNREADABLE):
            read(changed)


def test_of_a_letter_only_its_status_may_change() -> None:
    record = letter_records.pack_letter(letter(1), {})
    status, _, rest = record.partition(b"\n")
    for changed in flips_of(rest):
        with pytest.raises(UNREADABLE):
            letter_records.unpack_letter(status + b"\n" + changed)


def test_a_letter_without_its_event_is_checked_as_far_as_it_is_known() -> None:
    record = letter_records.pack_letter(letter(1), {})
    head = record[: record.rindex(b"\n") + 1]
    assert letter_records.unpack_letter(head).reason == letter(1).reason
    with pytest.raises(UNREADABLE):
        letter_records.unpack_letter(head.replace(letter(1).reason.encode(), b"other"))


def test_a_record_under_the_name_of_another_one_is_not_read() -> None:
    with pytest.raises(UNREADABLE):
        records.unpack_message(BASE + 2, records.pack_message(message(1), receivers=JOE))
    with pytest.raises(UNREADABLE):
        records.unpack_session("eve/1", records.pack_session(session("joe/1")))
    with pytest.raises(UNREADABLE):
        records.without_sum("/ret/b", records.with_sum("/ret/a", b"{}", NEWEST))


def test_until_the_upgrade_is_finished_records_have_no_checksums() -> None:
    form = written_form(OLDEST_LAYOUT)
    assert records.pack_message(message(1), form, JOE).startswith(b'{"v":1,"c":"/orders/new"')
    assert records.pack_session(session("joe/1"), form).startswith(b"{")
    assert records.pack_topic("/a", TOPIC, form).startswith(b"{")
    assert letter_records.pack_letter(letter(1), {}, form).partition(b"\n")[2].startswith(b"{")


async def test_a_message_that_was_changed_is_named_and_goes_to_nobody(
    at: StoreProcess, caplog: pytest.LogCaptureFixture
) -> None:
    at.store.save(session("joe/1"))
    at.store.save(session("ann/1"))
    for number in range(1, 41):
        at.keep(message(number), *(JOE if number % 2 else BOTH))
    await at.answered()
    chance = random.Random(20)
    for number in range(1, 21):
        record = at.server.ask("HGET", KEYS.bodies, BASE + number)
        place = chance.randrange(len(record))
        changed = bytes([record[place] ^ 1 << chance.randrange(8)])
        at.server.ask(
            "HSET", KEYS.bodies, BASE + number, record[:place] + changed + record[place + 1 :]
        )
    loaded = await at.loaded()
    for receiver, wanted in (("joe/1", range(21, 41)), ("ann/1", range(22, 41, 2))):
        found = [each for _, each in loaded[receiver].entries]
        assert [each.id - BASE for each in found] == [*wanted]
        assert all(each.wire == message(1).wire for each in found)
    for number in range(1, 21):
        assert f"message {BASE + number} is unreadable" in caplog.text
    # They stay, so that operators can look at them.
    assert at.bodies() == {*range(1, 41)}


async def test_a_message_whose_id_or_receivers_are_gone_is_named(
    at: StoreProcess, caplog: pytest.LogCaptureFixture
) -> None:
    at.store.save(session("joe/1"))
    for number in (1, 2, 3):
        at.keep(message(number), *(BOTH if number == 2 else JOE))
    await at.answered()
    at.server.ask("HSET", KEYS.bodies, "!763", at.server.ask("HGET", KEYS.bodies, BASE + 1))
    at.server.ask("HDEL", KEYS.bodies, BASE + 1)
    at.server.ask("DEL", KEYS.receivers(BASE + 2))
    loaded = await at.loaded()
    assert [each.id - BASE for _, each in loaded["joe/1"].entries] == [3]
    assert "message !763 has no id" in caplog.text
    assert f"message {BASE + 2} has lost its receivers" in caplog.text


async def test_a_receiver_whose_name_is_no_text_keeps_nobody_else_waiting(
    at: StoreProcess, caplog: pytest.LogCaptureFixture
) -> None:
    at.store.save(session("joe/1"))
    at.keep(message(1), *BOTH)
    await at.answered()
    at.server.ask("SADD", KEYS.receivers(BASE + 1), b"\xff/1")
    loaded = await at.loaded()
    assert [each.id - BASE for _, each in loaded["joe/1"].entries] == [1]
    assert f"message {BASE + 1} has a receiver whose name is unreadable" in caplog.text
