"""Messages on their way to the server."""

import asyncio
from typing import Any

import pytest

from holdfast.client.errors import ClientError, ConnectionLost, ReplyError
from holdfast.client.outgoing import MOST_IN_REQUEST, Outgoing, OutgoingQueue, Repeat


@pytest.fixture
def queue() -> OutgoingQueue:
    return OutgoingQueue()


def added(queue: OutgoingQueue, id: int, **fields: Any) -> Outgoing:
    reply = asyncio.get_running_loop().create_future()
    outgoing = Outgoing({"channel": "/a", "id": str(id)}, reply, **fields)
    queue.add(outgoing)
    return outgoing


def reply_to(outgoing: Outgoing, **fields: Any) -> dict[str, Any]:
    return {**outgoing.message, "successful": True, **fields}


async def test_a_request_takes_waiting_messages_up_to_its_limits(queue: OutgoingQueue) -> None:
    for number in range(MOST_IN_REQUEST + 1):
        added(queue, number)
    assert len(queue.take(knows_keys=True)) == MOST_IN_REQUEST
    assert len(queue.take(knows_keys=True)) == 1

    added(queue, 1, size=10_000_000)
    added(queue, 2)
    assert len(queue.take(knows_keys=True)) == 1


async def test_a_message_that_its_sender_gave_up_is_not_sent(queue: OutgoingQueue) -> None:
    added(queue, 1).reply.cancel()
    kept = added(queue, 2)
    assert queue.take(knows_keys=True) == [kept]


async def test_each_reply_goes_to_its_message(queue: OutgoingQueue) -> None:
    first, second = added(queue, 1), added(queue, 2)
    sent = queue.take(knows_keys=True)
    refusal = reply_to(first, successful=False, error="403:/a:publish_denied")
    assert queue.answered(sent, [reply_to(second, timestamp=5), refusal])
    assert second.reply.result()["timestamp"] == 5
    with pytest.raises(ReplyError) as refused:
        first.reply.result()
    error = refused.value
    assert (error.code, error.arguments, error.text) == (403, ("/a",), "publish_denied")


async def test_messages_that_never_left_are_sent_again_in_their_place(queue: OutgoingQueue) -> None:
    first, second = added(queue, 1), added(queue, 2)
    sent = queue.take(knows_keys=True)
    third = added(queue, 3)
    queue.lost(sent, was_sent=False, knows_keys=True)
    assert queue.take(knows_keys=True) == [first, second, third]


async def test_a_message_that_may_have_arrived_is_sent_again_only_if_it_is_repeatable(
    queue: OutgoingQueue,
) -> None:
    once, again = added(queue, 1), added(queue, 2, repeat=Repeat.ALWAYS)
    queue.lost(queue.take(knows_keys=True), was_sent=True, knows_keys=True)
    assert queue.take(knows_keys=True) == [again]
    with pytest.raises(ConnectionLost):
        once.reply.result()


async def test_a_message_with_a_key_goes_again_to_servers_that_know_keys_only(
    queue: OutgoingQueue,
) -> None:
    keyed = added(queue, 1, repeat=Repeat.BY_KEY)
    queue.lost(queue.take(knows_keys=True), was_sent=True, knows_keys=True)
    assert queue.take(knows_keys=True) == [keyed]

    queue.lost([keyed], was_sent=True, knows_keys=False)
    with pytest.raises(ConnectionLost, match="does not know publish keys"):
        keyed.reply.result()
    assert queue.take(knows_keys=False) == []


async def test_a_message_with_a_key_that_never_left_goes_to_any_server(
    queue: OutgoingQueue,
) -> None:
    keyed = added(queue, 1, repeat=Repeat.BY_KEY)
    queue.lost(queue.take(knows_keys=False), was_sent=False, knows_keys=False)
    assert queue.take(knows_keys=False) == [keyed]


async def test_what_a_server_with_keys_may_have_does_not_go_to_one_without(
    queue: OutgoingQueue,
) -> None:
    keyed = added(queue, 1, repeat=Repeat.BY_KEY)
    asked = added(queue, 2, repeat=Repeat.ALWAYS)
    queue.lost(queue.take(knows_keys=True), was_sent=True, knows_keys=True)
    assert queue.take(knows_keys=False) == [asked]
    with pytest.raises(ConnectionLost):
        keyed.reply.result()


async def test_a_message_refused_for_an_unknown_session_is_sent_five_times(
    queue: OutgoingQueue,
) -> None:
    outgoing = added(queue, 1)
    times = 0
    while sent := queue.take(knows_keys=True):
        times += 1
        queue.answered(sent, [reply_to(outgoing, successful=False, error="402::session_unknown")])
    assert times == 5
    assert isinstance(outgoing.reply.exception(), ReplyError)


async def test_messages_of_a_refused_request_are_sent_one_by_one_to_find_the_refused_one(
    queue: OutgoingQueue,
) -> None:
    good, bad = added(queue, 1), added(queue, 2)
    queue.refused(queue.take(knows_keys=True), "413:HTTP 413:request_too_large")
    assert queue.take(knows_keys=True) == [good]
    assert queue.take(knows_keys=True) == [bad]
    queue.refused([bad], "413:HTTP 413:request_too_large")
    with pytest.raises(ReplyError, match="HTTP 413"):
        bad.reply.result()


async def test_a_message_that_makes_the_server_fail_is_sent_five_times_alone_and_given_up(
    queue: OutgoingQueue,
) -> None:
    good = added(queue, 1, repeat=Repeat.ALWAYS)
    bad = added(queue, 2, repeat=Repeat.ALWAYS)
    once = added(queue, 3)
    queue.failed(queue.take(knows_keys=True), "HTTP 500", knows_keys=True)
    assert isinstance(once.reply.exception(), ConnectionLost)
    assert queue.take(knows_keys=True) == [good]
    times = 0
    while (sent := queue.take(knows_keys=True)) == [bad]:
        times += 1
        queue.failed(sent, "HTTP 500", knows_keys=True)
    assert times == 5
    with pytest.raises(ConnectionLost, match="HTTP 500"):
        bad.reply.result()


async def test_a_message_without_a_reply_among_those_of_its_request_is_lost(
    queue: OutgoingQueue,
) -> None:
    outgoing = added(queue, 1)
    queue.answered(queue.take(knows_keys=True), [])
    with pytest.raises(ConnectionLost):
        outgoing.reply.result()


async def test_outgoing_messages_fail_when_nothing_more_is_sent(queue: OutgoingQueue) -> None:
    outgoing = added(queue, 1)
    queue.fail_all(ClientError("closed"))
    with pytest.raises(ClientError, match="closed"):
        outgoing.reply.result()
