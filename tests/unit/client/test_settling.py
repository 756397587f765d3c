"""The acks and verdicts of the client, and when it sends them."""

from typing import Any

import pytest

from holdfast.client.errors import Refuse
from holdfast.client.messages import Message
from holdfast.client.settling import Settling


def message(seq: int, id: str | None = None, **delivery: Any) -> Message:
    delivery = {"seq": seq, "id": id or f"n-{seq}", **delivery}
    return Message({"channel": "/a", "data": seq, "ext": {"delivery": delivery}})


@pytest.fixture
def settling() -> Settling:
    settling = Settling(lambda: None)
    settling.begin(has_acks=True, has_verdicts=True)
    return settling


def received(settling: Settling, *messages: Message) -> None:
    for each in messages:
        assert settling.receive(each)


def refuse(settling: Settling, message: Message, code: str) -> None:
    message.refusal = Refuse(code, "no")
    settling.finish(message)


def test_messages_finished_before_the_next_connect_need_only_its_ack(
    settling: Settling,
) -> None:
    first, second = message(1), message(2)
    received(settling, first, second)
    settling.finish(first)
    settling.finish(second)
    settling.end_batch(7)
    ext, _ = settling.connect_ext()
    assert ext == {"ack": 7}
    assert settling.open_count == 0


def test_a_message_open_at_the_next_connect_is_pending_and_gets_a_verdict_later(
    settling: Settling,
) -> None:
    slow, quick = message(1), message(2)
    received(settling, slow, quick)
    settling.finish(quick)
    settling.end_batch(1)
    ext, _ = settling.connect_ext()
    assert ext == {"ack": 1, "delivery": {"pending": [1]}}
    assert not settling.has_news

    settling.finish(slow)
    assert settling.has_news
    assert settling.take_verdicts().verdicts == [{"seq": 1, "state": "OK"}]


def test_a_refusal_becomes_a_verdict_with_its_code_and_text(settling: Settling) -> None:
    refused = message(1)
    received(settling, refused)
    refuse(settling, refused, "user.update.error")
    settling.end_batch(1)
    ext, _ = settling.connect_ext()
    verdict = {"seq": 1, "errorCode": "user.update.error", "message": "no"}
    assert ext == {"ack": 1, "delivery": {"verdicts": [verdict]}}


def test_an_unexpected_exception_is_an_internal_error(settling: Settling) -> None:
    refused = message(1)
    received(settling, refused)
    refused.refusal = KeyError("price")
    settling.finish(refused)
    [verdict] = settling.take_verdicts().verdicts
    assert verdict["errorCode"] == "user.update.internalError"
    assert verdict["message"] == "KeyError: 'price'"


@pytest.mark.parametrize(
    "code",
    ["user.update.holdback", "user.update.holdback.disk", "communication", "communication.printer"],
)
def test_messages_beside_one_that_stays_get_verdicts_of_their_own(
    settling: Settling, code: str
) -> None:
    before, stays, after = message(1), message(2), message(3)
    received(settling, before, stays, after)
    settling.finish(before)
    refuse(settling, stays, code)
    settling.finish(after)
    states = [verdict.get("state") for verdict in settling.take_verdicts().verdicts]
    assert states == [None, "OK", "OK"]
    settling.end_batch(1)
    later = message(4)
    received(settling, later)
    settling.finish(later)
    assert not settling.has_news


@pytest.mark.parametrize("code", ["user.update.holdback", "communication.busy"])
def test_what_nobody_has_begun_returns_behind_a_message_that_stays(
    settling: Settling, code: str
) -> None:
    before, stays, begun, waits = (message(number) for number in (1, 2, 3, 4))
    for each in (before, stays, begun, waits):
        received(settling, each)
        each.left = 1
    settling.end_batch(1)
    assert settling.connect_ext()[0] == {"ack": 1, "delivery": {"pending": [1, 2, 3, 4]}}
    begun.has_begun = True
    refuse(settling, stays, code)
    assert [each.is_returned for each in (before, begun, waits)] == [False, False, True]
    assert settling.open_count == 2
    ext, _ = settling.connect_ext()
    assert ext["delivery"]["pending"] == [1, 3]
    # It is a new message when it comes again.
    received(settling, message(5, id="n-2"), message(6, id="n-4"))


def test_a_message_that_is_gone_returns_nothing(settling: Settling) -> None:
    gone, waits = message(1), message(2)
    received(settling, gone, waits)
    waits.left = 1
    refuse(settling, gone, "user.update.error")
    assert not waits.is_returned


def test_verdicts_that_may_be_lost_are_sent_again_before_later_ones(settling: Settling) -> None:
    first, second = message(1), message(2)
    received(settling, first, second)
    refuse(settling, first, "user.update.error")
    sent = settling.take_verdicts()
    refuse(settling, second, "user.update.error")
    settling.failed(sent)
    assert [verdict["seq"] for verdict in settling.take_verdicts().verdicts] == [1, 2]


def test_an_ack_does_not_settle_a_message_that_an_unanswered_report_refuses(
    settling: Settling,
) -> None:
    refused = message(1)
    received(settling, refused)
    settling.end_batch(1)
    refuse(settling, refused, "user.update.error")
    sent = settling.take_verdicts()
    assert settling.connect_ext()[0] == {"ack": 1, "delivery": {"pending": [1]}}
    settling.arrived(sent)
    assert settling.connect_ext()[0] == {"ack": 1}


def test_verdicts_of_an_earlier_session_are_never_sent_in_a_later_one(settling: Settling) -> None:
    refused, open = message(1), message(2)
    received(settling, refused, open)
    refuse(settling, refused, "user.update.error")
    sent = settling.take_verdicts()
    settling.begin(has_acks=True, has_verdicts=True)
    settling.failed(sent)
    refuse(settling, open, "user.update.error")
    assert settling.take_verdicts().verdicts == []


def test_a_redelivered_finished_message_gets_a_verdict_and_is_not_processed(
    settling: Settling,
) -> None:
    first = message(1, "n-a")
    received(settling, first)
    settling.finish(first)
    settling.begin(has_acks=False, has_verdicts=True)
    assert not settling.receive(message(5, "n-a", redelivered=1))
    assert settling.take_verdicts().verdicts == [{"seq": 5, "state": "OK"}]


def test_a_refused_message_is_processed_again_when_it_is_replayed(settling: Settling) -> None:
    first = message(1, "n-a")
    received(settling, first)
    refuse(settling, first, "user.update.error")
    assert settling.receive(message(2, "n-a", generation=1))


def test_history_that_was_asked_for_again_is_processed_again(settling: Settling) -> None:
    first = message(1, "n-a")
    received(settling, first)
    settling.finish(first)
    assert settling.receive(message(2, "n-a", initial=True))
    assert not settling.receive(message(3, "n-a", initial=True, redelivered=1))


def test_a_message_redelivered_while_it_is_open_gets_a_verdict_by_its_latest_number(
    settling: Settling,
) -> None:
    first = message(1, "n-a")
    received(settling, first)
    settling.connect_ext()
    settling.begin(has_acks=True, has_verdicts=True)
    assert not settling.receive(message(9, "n-a", redelivered=1))
    refuse(settling, first, "user.update.error")
    assert [verdict["seq"] for verdict in settling.take_verdicts().verdicts] == [9]


def test_a_disconnect_confirms_only_finished_messages(settling: Settling) -> None:
    first, second, third = message(1), message(2), message(3)
    received(settling, first, second, third)
    settling.finish(first)
    refuse(settling, second, "user.update.error")
    settling.end_batch(1)
    verdicts = settling.disconnect_ext()["delivery"]["verdicts"]
    assert [verdict["seq"] for verdict in verdicts] == [2, 1]
    assert "ack" not in settling.disconnect_ext()


def test_a_session_with_acks_alone_acks_batches_and_sends_no_verdicts() -> None:
    settling = Settling(lambda: None)
    settling.begin(has_acks=True, has_verdicts=False)
    plain = Message({"channel": "/a", "data": 1})
    assert settling.receive(plain)
    settling.end_batch(3)
    assert settling.disconnect_ext() == {}
    plain.refusal = Refuse("user.update.error")
    settling.finish(plain)
    assert settling.connect_ext()[0] == {"ack": 3}
    assert settling.disconnect_ext() == {"ack": 3}


def test_a_plain_session_sends_neither_acks_nor_verdicts() -> None:
    settling = Settling(lambda: None)
    settling.begin(has_acks=False, has_verdicts=False)
    plain = Message({"channel": "/a", "data": 1})
    assert settling.receive(plain)
    settling.finish(plain)
    assert settling.connect_ext()[0] == {}
    assert settling.disconnect_ext() == {}
