"""The expiry of messages in a queue, against lists that are searched."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from tests.effort import TIMES

numbers = st.integers(0, 40)
does = st.one_of(
    # A message: its end, if it has one, its id and its priority.
    st.tuples(st.just("offer"), st.integers(0, 12), st.tuples(numbers, st.sampled_from([5, 5, 9]))),
    st.tuples(st.just("hand over"), st.sampled_from([-1, 0, 1, 3]), st.none()),
    st.tuples(st.sampled_from(["give back", "settle"]), numbers, st.none()),
    st.tuples(st.just("expire"), st.integers(1, 30), st.none()),
)


def _waits(queue: CallbackQueue) -> list[Message]:
    return [*(entry.message for entry in queue.returned.values()), *queue.new]


@pytest.mark.slow
@given(st.lists(does, max_size=80))
@settings(max_examples=80 * TIMES)
def test_expired_messages_leave_a_queue_in_the_order_of_their_expiry(
    done: list[tuple[str, int, tuple[int, int] | None]],
) -> None:
    queue, now = CallbackQueue(QueueLimits(), Counters()), 0
    queue.settling = SettledBy.BATCH
    for what, number, message in done:
        match what:
            case "offer" if message is not None:
                offered = Message(b"x", id=message[0])
                offered.priority = message[1]
                offered.expires_ms = now + number if number else 0
                queue.offer(offered)
            case "hand over":
                queue.next_batch(now, number)
            case "give back":
                queue.return_from(number)
            case "settle":
                queue.settle([*queue.in_flight(), *queue.returned][:number])
            case _:
                now += 1
                _expire(queue, now, number)
        ends = [m.expires_ms for m in _waits(queue) if m.expires_ms]
        assert [m.expires_ms for m in queue.expiring or ()] == sorted(ends)
        assert queue.count == len(queue.in_flight()) + len(_waits(queue)) == queue.size


def _expire(queue: CallbackQueue, now: int, most: int) -> None:
    before = _waits(queue)
    over = [each for each in before if 0 < each.expires_ms <= now]
    left = queue.remove_expired(now, most)
    assert [each.expires_ms for each in left] == sorted(each.expires_ms for each in over)[:most]
    assert set(left) <= set(over)
    assert _waits(queue) == [each for each in before if each not in left]
