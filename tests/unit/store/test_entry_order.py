"""A queue is loaded in the order in which its messages came, whatever clocks gave their ids."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.messages.arrival_numbers import note_arrival
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from holdfast.store.entry_order import line_up
from holdfast.store.records import pack_message, unpack_message

Entries = list[tuple[Mark, Message]]


def came(id: int, number: int | None = None, *, priority: int = 5) -> tuple[Mark, Message]:
    """A waiting entry as it was stored; with a number if it came from another shard."""
    message = Message(b"{}", id=id, channel="/a")
    message.priority = priority
    if number is not None:
        note_arrival(message, number)
    return Mark(id), unpack_message(id, pack_message(message))


def lined_up(entries: Sequence[tuple[Mark, Message]]) -> list[int]:
    found = [*entries]
    line_up(found)
    return [message.id for _, message in found]


def test_messages_of_this_shard_stand_in_the_order_of_their_ids() -> None:
    assert lined_up([came(3000), came(1000), came(2000)]) == [1000, 2000, 3000]


def test_a_message_of_another_shard_stands_where_it_came() -> None:
    fast, slow = came(9001, number=1500), came(12, number=2500)
    assert lined_up([slow, came(1000), came(2000), fast]) == [1000, 9001, 2000, 12]


def test_priorities_come_first() -> None:
    urgent = came(9001, number=2500, priority=9)
    assert lined_up([came(1000), urgent, came(12, number=500)]) == [9001, 12, 1000]


def test_entries_in_flight_keep_their_positions() -> None:
    mark, message = came(9001, number=1)
    in_flight = Mark(mark.id, 2, 1, 1, 0, 2), message
    assert lined_up([came(1000), in_flight, came(12, number=500)]) == [9001, 12, 1000]


def test_the_record_of_a_message_of_this_shard_is_as_before() -> None:
    assert pack_message(Message(b"{}", id=1, channel="/a")) == b'{"v":1,"c":"/a"}\n{}'


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.integers(0, 50), st.none() | st.integers(0, 50), st.integers(4, 5)
        ),
        unique_by=lambda each: each[:2],
    )
)
def test_messages_that_one_shard_has_given_ids_to_never_change_their_order(
    drawn: list[tuple[int, int, int | None, int]],
) -> None:
    entries = [
        came(1000 * us + shard, number and 1000 * number, priority=priority)
        for shard, us, number, priority in drawn
    ]
    found = [*entries]
    line_up(found)
    assert sorted(each.id for each, _ in found) == sorted(each.id for each, _ in entries)
    for shard in range(4):
        for priority in (4, 5):
            its = [m.id for _, m in found if m.id % 1000 == shard and m.priority == priority]
            assert its == sorted(its)
