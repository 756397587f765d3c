"""A dead letter tells the whole history of its message with its receiver."""

import pytest

from holdfast.delivery import error_codes
from holdfast.delivery.batch import Batch
from holdfast.delivery.dispatcher import Policy
from holdfast.delivery.entries import SettledBy
from holdfast.delivery.guard import ChannelHold
from tests.unit.delivery.test_settlement import BUSY, REFUSED, Court, no, ok

FOR_EVER = Policy(retries=-1, delay_s=1.0)


def history(court: Court, number: int = 0) -> list[tuple[int, str]]:
    return [(each.n, each.outcome) for each in court.keeper.letters[number].attempts]


def again(court: Court) -> None:
    """A second later everything that may is handed over again."""
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


def test_what_the_receiver_works_on_is_not_lost() -> None:
    court = Court()
    court.hand_over("a", "b")
    court.queue.keep_pending({1})
    again(court)
    assert {entry.seq: len(entry.trail) for entry in court.queue.in_flight().values()} == {
        1: 0,
        3: 1,
    }


def test_who_only_gives_verdicts_loses_no_replies() -> None:
    court = Court()
    court.queue.settling = SettledBy.VERDICT
    court.hand_over("a")
    again(court)
    assert court.queue.in_flight()[1].trail == ()


def test_of_a_session_that_is_given_up_everything_keeps_its_attempts() -> None:
    court = Court(policy=Policy(retries=0))
    court.hand_over("a", "b")
    court.offer("c")
    court.judge(no(1, BUSY, "no disk"))
    assert history(court, 0) == history(court, 1) == [(1, BUSY.text)]
    assert history(court, 2) == []
    assert [letter.attempt_count for letter in court.keeper.letters] == [1, 1, 0]


def test_a_session_that_somebody_ends_leaves_what_was_in_hands_with_its_attempts() -> None:
    court = Court()
    court.hand_over("a")
    court.settlement.undelivered.dead_letter_all(
        court.receiver, error_codes.DELIVERY_ENDED, "by ops", court.now
    )
    (attempt,) = court.keeper.letters[0].attempts
    assert (attempt.n, attempt.code, attempt.text) == (1, error_codes.DELIVERY_ENDED.text, "by ops")


def test_each_attempt_tells_what_the_receiver_said() -> None:
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


def test_what_is_returned_because_of_another_message_says_so() -> None:
    court = Court(policy=FOR_EVER)
    court.hand_over("a", "b")
    court.judge(no(1, BUSY))
    again(court)
    court.judge(no(4))
    assert history(court) == [(1, "returned"), (2, REFUSED.text)]


def test_what_another_client_gets_was_tried_before() -> None:
    court = Court()
    court.hand_over("a")
    court.hand_overs.change_hands(court.receiver, court.now)
    again(court)
    court.judge(no(2))
    assert history(court) == [(1, "taken over"), (2, REFUSED.text)]


@pytest.mark.parametrize("settling", [SettledBy.BATCH, SettledBy.WRITTEN])
def test_what_could_not_be_written_was_tried_if_somebody_will_speak_of_it(
    settling: SettledBy,
) -> None:
    court = Court()
    court.queue.settling = settling
    court.hand_over("a")
    assert court.hand_overs.not_written(court.receiver, court.batch, court.now)
    (entry,) = court.queue.returned.values()
    told = [each.outcome for each in entry.trail]
    assert told == (["not written"] if settling is SettledBy.BATCH else [])
    assert not court.hand_overs.not_written(court.receiver, court.batch, court.now)


def test_what_was_handed_over_together_has_its_history_in_common() -> None:
    court = Court()
    court.hand_over("a", "b", "c")
    again(court)
    again(court)
    first, *others = [entry.trail for entry in court.queue.in_flight().values()]
    assert len(first) == 2
    assert all(trail is first for trail in others)


def test_the_store_knows_the_history_of_what_may_come_again() -> None:
    court = Court(policy=FOR_EVER)
    court.hand_over("a")
    court.judge(no(1, BUSY))
    again(court)
    assert [each.outcome for each in court.kept()["a"].trail] == [BUSY.text]


# Messages that are handed over again and again


def next_client(court: Court) -> list[str]:
    """The receiver died over what it had; what its successor is handed."""
    court.hand_overs.change_hands(court.receiver, court.now)
    room = court.hand_overs.limit_attempts(court.receiver, -1)
    return text_of(court.queue.next_batch(court.now, room))


def text_of(batch: Batch) -> list[str]:
    return [message.wire.decode() for message in batch.messages]


def test_a_message_that_kills_its_receiver_again_and_again_is_dead() -> None:
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


def test_what_is_tried_for_the_last_time_is_alone_in_its_receivers_hands() -> None:
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


def test_without_a_limit_it_comes_for_ever() -> None:
    court = Court()
    court.hand_over("a")
    assert [next_client(court) for _ in range(20)] == [["a"]] * 20


def test_a_lost_reply_counts_but_not_what_the_receiver_still_works_on() -> None:
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


def test_what_only_needs_to_be_written_is_never_handed_over_too_often() -> None:
    court = Court()
    court.most = 1
    court.queue.settling = SettledBy.WRITTEN
    court.hand_over("a")
    court.hand_overs.not_written(court.receiver, court.batch, court.now)
    court.hand_overs.limit_attempts(court.receiver, -1)
    assert court.letters() == []


def test_what_could_not_be_written_down_as_dead_is_tried_once_more() -> None:
    court = Court()
    court.most = 1
    court.hand_over("a")
    court.keeper.is_full = True
    assert next_client(court) == ["a"]
    court.keeper.is_full = False
    assert next_client(court) == []
    assert court.letters() == [("a", "user.update.error")]


def test_a_channel_that_is_held_back_loses_nothing_meanwhile() -> None:
    court = Court()
    court.most = 1
    court.hand_over("a")
    court.guard.restore("/a", ChannelHold(0, "most refuse it"), court.now)
    court.hand_overs.change_hands(court.receiver, court.now)
    court.hand_overs.limit_attempts(court.receiver, -1)
    assert court.letters() == []
    assert text_of(court.queue.next_batch(court.now, -1, court.guard.held)) == []
