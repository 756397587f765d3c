"""A dead letter lists the attempts to deliver its message."""

import pytest

from holdfast.delivery.basics import error_codes
from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.queues.dispatcher import Policy
from tests.unit.delivery.settling.test_settlement import BUSY, REFUSED, Court, no, ok

FOR_EVER = Policy(retries=-1, delay_s=1.0)


def history(court: Court, number: int = 0) -> list[tuple[int, str]]:
    return [(each.n, each.outcome) for each in court.keeper.letters[number].attempts]


def again(court: Court) -> None:
    """Lose the reply, and hand everything over again, a second later."""
    court.now += 1.0
    assert court.receiver.dispatcher is not None
    court.receiver.dispatcher.due(court.now)
    court.hand_overs.lost(court.receiver, court.now)
    court.hand_over()


def test_a_lost_reply_is_an_attempt() -> None:
    court = Court()
    court.hand_over("a")
    again(court)
    again(court)
    court.judge(no(3))
    (letter,) = court.keeper.letters
    assert history(court) == [(1, "lost reply"), (2, "lost reply"), (3, REFUSED.text)]
    assert [each.latency for each in letter.attempts] == [1000, 1000, 0]
    assert (letter.attempt_count, letter.redelivered) == (3, 2)


def test_a_lost_reply_is_no_attempt_of_a_pending_entry() -> None:
    court = Court()
    court.hand_over("a", "b")
    court.queue.keep_pending({1})
    again(court)
    assert {entry.seq: len(entry.trail) for entry in court.queue.in_flight().values()} == {
        1: 0,
        3: 1,
    }


def test_a_lost_reply_is_no_attempt_in_a_session_with_verdicts_alone() -> None:
    court = Court()
    court.queue.settling = SettledBy.VERDICT
    court.hand_over("a")
    again(court)
    assert court.queue.in_flight()[1].trail == ()


def test_letters_of_a_session_that_is_given_up_keep_their_attempts() -> None:
    court = Court(policy=Policy(retries=0))
    court.hand_over("a", "b")
    court.offer("c")
    court.judge(no(1, BUSY, "no disk"))
    assert history(court, 0) == history(court, 1) == [(1, BUSY.text)]
    assert history(court, 2) == []
    assert [letter.attempt_count for letter in court.keeper.letters] == [1, 1, 0]


def test_ending_a_session_adds_an_attempt_to_the_letter_of_an_entry_in_flight() -> None:
    court = Court()
    court.hand_over("a")
    court.undelivered.dead_letter_all(
        court.receiver, error_codes.DELIVERY_ENDED, "by ops", court.now
    )
    (attempt,) = court.keeper.letters[0].attempts
    assert (attempt.n, attempt.code, attempt.text) == (1, error_codes.DELIVERY_ENDED.text, "by ops")


def test_each_attempt_has_the_code_and_the_text_of_its_verdict() -> None:
    court = Court(policy=FOR_EVER)
    court.hand_over("a")
    court.judge(no(1, BUSY, "disk full"))
    again(court)
    court.judge(no(2, REFUSED, "no such order"))
    (letter,) = court.keeper.letters
    assert [(each.code, each.text) for each in letter.attempts] == [
        (BUSY.text, "disk full"),
        (REFUSED.text, "no such order"),
    ]


def test_an_entry_returned_because_of_another_is_noted_as_returned() -> None:
    court = Court(policy=FOR_EVER)
    court.hand_over("a", "b")
    court.judge(no(1, BUSY))
    again(court)
    court.judge(no(4))
    assert history(court) == [(1, "returned"), (2, REFUSED.text)]


def test_a_takeover_is_noted_as_an_attempt() -> None:
    court = Court()
    court.hand_over("a")
    court.hand_overs.return_for_takeover(court.receiver, court.now)
    again(court)
    court.judge(no(2))
    assert history(court) == [(1, "taken over"), (2, REFUSED.text)]


@pytest.mark.parametrize("settling", [SettledBy.BATCH, SettledBy.WRITTEN])
def test_a_failed_write_is_an_attempt_in_a_session_with_acks_but_not_in_a_plain_one(
    settling: SettledBy,
) -> None:
    court = Court()
    court.queue.settling = settling
    court.hand_over("a")
    assert court.hand_overs.return_unwritten(court.receiver, court.batch, court.now)
    (entry,) = court.queue.returned.values()
    outcomes = [each.outcome for each in entry.trail]
    assert outcomes == (["not written"] if settling is SettledBy.BATCH else [])
    assert not court.hand_overs.return_unwritten(court.receiver, court.batch, court.now)


def test_entries_handed_over_together_share_one_trail() -> None:
    court = Court()
    court.hand_over("a", "b", "c")
    again(court)
    again(court)
    first, *others = [entry.trail for entry in court.queue.in_flight().values()]
    assert len(first) == 2
    assert all(trail is first for trail in others)


def test_the_store_has_the_trail_of_an_entry_that_was_redelivered() -> None:
    court = Court(policy=FOR_EVER)
    court.hand_over("a")
    court.judge(no(1, BUSY))
    again(court)
    assert [each.outcome for each in court.kept()["a"].trail] == [BUSY.text]


# Messages that are handed over again and again


def next_client(court: Court) -> list[str]:
    """The client died over its batch; return what its successor is handed."""
    court.hand_overs.return_for_takeover(court.receiver, court.now)
    room = court.hand_overs.limit_attempts(court.receiver, -1)
    return text_of(court.queue.next_batch(court.now, room))


def text_of(batch: Batch) -> list[str]:
    return [message.wire.decode() for message in batch.messages]


def test_a_message_that_kills_as_many_clients_as_attempts_are_allowed_is_dead() -> None:
    court = Court()
    court.most = 3
    court.hand_over("a")
    assert [next_client(court), next_client(court)] == [["a"], ["a"]]
    court.offer("b")
    assert next_client(court) == ["b"]
    (letter,) = court.keeper.letters
    assert (letter.code, letter.attempt_count, letter.redelivered) == ("user.update.error", 3, 3)
    assert history(court) == [(1, "taken over"), (2, "taken over"), (3, "taken over")]
    assert court.kept().keys() == {"b"}
    assert court.balances()


@pytest.mark.parametrize("poison", [0, 1, 41, 98, 99])
@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_messages_in_a_batch_with_a_poison_message_do_not_die_with_it(
    poison: int, most: int
) -> None:
    court = Court(policy=FOR_EVER)
    court.most = most
    texts = [chr(0x100 + number) for number in range(100)]
    court.offer(*texts)
    deaths, done = 0, []
    while court.queue.count:
        batch = next_client(court)
        while batch and texts[poison] not in batch:
            done += batch
            court.settlement.acknowledge(court.receiver, court.queue.batch, court.now)
            room = court.hand_overs.limit_attempts(court.receiver, -1)
            batch = text_of(court.queue.next_batch(court.now, room))
        deaths += bool(batch)
    assert court.letters() == [(texts[poison], "user.update.error")]
    assert done == texts[:poison] + texts[poison + 1 :]
    assert deaths == max(most, 2)
    assert court.balances()


def test_an_entry_at_its_last_attempt_is_handed_over_alone() -> None:
    court = Court(policy=FOR_EVER)
    court.most = 2
    court.hand_over("a", "b")
    assert next_client(court) == ["a"]
    (seq,) = court.queue.in_flight()
    court.queue.keep_pending({seq})
    assert not court.queue.has_news()
    assert court.hand_overs.limit_attempts(court.receiver, -1) == 0
    court.judge(ok(seq))
    assert court.queue.has_news()
    assert court.hand_overs.limit_attempts(court.receiver, -1) == 1


def test_an_entry_without_a_limit_of_attempts_is_redelivered_without_end() -> None:
    court = Court()
    court.hand_over("a")
    assert [next_client(court) for _ in range(20)] == [["a"]] * 20


def test_a_lost_reply_counts_as_an_attempt_unless_its_entry_is_pending() -> None:
    court = Court()
    court.most = 1
    court.hand_over("a")
    court.queue.keep_pending({1})
    court.hand_overs.lost(court.receiver, court.now)
    court.hand_overs.limit_attempts(court.receiver, -1)
    assert court.letters() == []
    court.queue.keep_pending(())
    court.hand_overs.lost(court.receiver, court.now)
    court.hand_overs.limit_attempts(court.receiver, -1)
    assert court.letters() == [("a", "user.update.error")]


def test_a_failed_write_counts_as_no_attempt_in_a_plain_session() -> None:
    court = Court()
    court.most = 1
    court.queue.settling = SettledBy.WRITTEN
    court.hand_over("a")
    court.hand_overs.return_unwritten(court.receiver, court.batch, court.now)
    court.hand_overs.limit_attempts(court.receiver, -1)
    assert court.letters() == []


def test_an_entry_at_its_limit_is_redelivered_while_the_store_takes_no_letter() -> None:
    court = Court()
    court.most = 1
    court.hand_over("a")
    court.keeper.is_full = True
    assert next_client(court) == ["a"]
    court.keeper.is_full = False
    assert next_client(court) == []
    assert court.letters() == [("a", "user.update.error")]


def test_an_entry_at_its_limit_does_not_die_while_its_channel_is_held() -> None:
    court = Court()
    court.most = 1
    court.hand_over("a")
    court.guard.restore("/a", ChannelHold(0, "most refuse it"), court.now)
    court.hand_overs.return_for_takeover(court.receiver, court.now)
    court.hand_overs.limit_attempts(court.receiver, -1)
    assert court.letters() == []
    assert text_of(court.queue.next_batch(court.now, -1, court.guard.held)) == []
