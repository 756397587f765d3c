"""The checker finds everything that can go wrong, and nothing where all went well."""

from collections.abc import Callable

import pytest

from tests.chaos.checker import EXAMPLES, Invariant, check
from tests.chaos.history import Phase, What
from tests.chaos.stories import JOE, MS, Story, told

Tale = Callable[[Story], None]

ERROR, HOLDBACK = "user.update.error", "user.update.holdback"


# Good histories


def everything_arrives(story: Story) -> None:
    story.publish("p-1", "p-2", "q-1")
    story.get("p-1", "q-1", "p-2")
    story.scan()


def a_reply_was_lost(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.answer("p-1")
    story.settle("p-1", outcome=Phase.INFO)
    story.answer("p-1", "p-2", redelivered=1)
    story.settle("p-1", "p-2")


def unknown_publishes_turn_up_or_do_not(story: Story) -> None:
    story.publish("p-1")
    story.publish("p-2", "p-3", outcome=Phase.INFO)
    story.publish("p-4")
    story.get("p-1", "p-4", "p-3")


def a_refused_one_is_dead(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.answer("p-1", "p-2")
    story.settle("p-1", code=ERROR)
    story.settle("p-2")
    story.scan(dead=("p-1",))


def held_back_and_resumed(story: Story) -> None:
    story.publish("p-1", "p-2", "p-3")
    story.answer("p-1", "p-2", "p-3")
    story.settle("p-1")
    story.settle("p-2", code=HOLDBACK, seq=2)
    story.hold()
    story.publish("p-4")
    story.resume()
    story.answer("p-2", redelivered=1)
    story.answer("p-3", "p-4")
    story.settle("p-2", "p-3", "p-4")
    story.scan()


def behind_one_that_was_not_answered_in_time(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.answer("p-1", "p-2", has_acks=False)
    story.answer("p-1", redelivered=1, has_acks=False)
    story.operations[-1].fields["asked"] += 1
    story.answer("p-2", asked=story.operations[-1].fields["asked"], has_acks=False)
    story.settle("p-1", "p-2")


def a_connect_was_held_until_the_resumption(story: Story) -> None:
    story.publish("p-1")
    story.hold()
    asked_ns = story.now_ns
    story.resume()
    story.get("p-1", asked=asked_ns)


def without_acks_a_lost_answer_comes_later(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.get("p-2", has_acks=False)
    story.get("p-1", redelivered=1, has_acks=False)


def held_back_for_ever(story: Story) -> None:
    story.hold()
    story.publish("p-1")
    story.scan(waiting=("p-1",))


def a_death_undid_an_acceptance(story: Story) -> None:
    story.publish("p-1")
    story.get("p-1")
    story.fault("kill server")
    story.answer("p-1", redelivered=1)
    story.settle("p-1")


def a_death_behind_a_pause_of_the_store_undid_an_acceptance(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.fault("pause store", lasts_ms=10_000)
    story.operations[-1].begun_ns -= 1 * MS
    story.settle("p-1")
    story.fault("kill server")
    story.answer("p-1", redelivered=1)
    story.settle("p-1")


def a_session_that_promises_nothing_ended(story: Story) -> None:
    story.operations.clear()
    story.subscribe(is_durable=False)
    story.publish("p-1")
    story.add(What.SESSION_LOST, subscriber=JOE)
    story.publish("p-2")
    story.subscribe(is_durable=False)
    story.publish("p-3")
    story.get("p-3", redelivered=None)


def some_expired(story: Story) -> None:
    story.publish("p-1", life_ms=10)
    story.pause(20)
    story.scan()


def others_are_owed_nothing(story: Story) -> None:
    story.publish("p-1", channel="/elsewhere")
    story.add(What.UNSUBSCRIBE, subscriber=JOE, channel="/chaos")
    story.publish("p-2")


def a_letter_was_replayed(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.settle("p-1", code=ERROR)
    story.scan(dead=("p-1",))
    story.add(What.REPLAY)
    story.get("p-1", generation=1)
    story.scan(dead=({"tag": "p-1", "state": "replayed"},))


def the_store_forgot_what_was_not_on_disk(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1", seq=7)
    story.fault("kill store")
    story.answer("p-1", seq=7)
    story.settle("p-1")
    story.scan()


def an_acceptance_of_what_the_store_forgot_is_void(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.fault("lose power")
    story.scan(pending={JOE: [{"tag": "p-1", "attempts": 0}]})
    story.settle("p-1")
    story.get("p-1")
    story.scan()


def nobody_read_of_the_hand_over_any_more(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.fault("kill server")
    story.settle("p-1")
    story.get("p-1")


def urgent_ones_overtake(story: Story) -> None:
    story.publish("p-1")
    story.publish("p-2", priority=9)
    story.get("p-2", "p-1")


def one_was_sent_again_with_its_key(story: Story) -> None:
    story.publish("p-1", received="7")
    story.get("p-1", received="7")
    story.add(What.REPEAT, "p", tag="p-1", received="7")
    story.add(What.REPEAT, "p", Phase.INFO, tag="p-1")


def what_finds_no_room_is_on_its_way_out(story: Story) -> None:
    story.publish("p-1")
    story.pause(100)
    story.publish("p-2")
    story.scan(waiting=("p-1", "p-2"), limits={JOE: 1})
    story.scan(waiting=("p-1",), dead=("p-2",), limits={JOE: 1})


def the_books_balance(story: Story) -> None:
    story.count(
        accepted=7, acked=1, waiting=1, handed=1, dead=1, expired=1, discarded=1, returned=1
    )


GOOD: list[Tale] = [
    everything_arrives,
    a_reply_was_lost,
    unknown_publishes_turn_up_or_do_not,
    a_refused_one_is_dead,
    held_back_and_resumed,
    behind_one_that_was_not_answered_in_time,
    a_connect_was_held_until_the_resumption,
    without_acks_a_lost_answer_comes_later,
    held_back_for_ever,
    a_death_undid_an_acceptance,
    a_death_behind_a_pause_of_the_store_undid_an_acceptance,
    a_session_that_promises_nothing_ended,
    some_expired,
    others_are_owed_nothing,
    a_letter_was_replayed,
    the_store_forgot_what_was_not_on_disk,
    an_acceptance_of_what_the_store_forgot_is_void,
    nobody_read_of_the_hand_over_any_more,
    urgent_ones_overtake,
    one_was_sent_again_with_its_key,
    what_finds_no_room_is_on_its_way_out,
    the_books_balance,
]


@pytest.mark.parametrize("tale", GOOD)
def test_a_good_history_is_valid(tale: Tale) -> None:
    result = told(tale).result()
    assert result.is_valid, result.report()


# Bad histories


def the_last_is_missing(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.get("p-1")
    story.scan()


def a_refused_one_is_nowhere(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.settle("p-1", code=ERROR)
    story.pause(2000)
    story.scan()


def one_was_delivered_and_forgotten_when_the_receiver_said_nothing(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.settle("p-1", outcome=Phase.FAIL)
    story.scan()


def one_that_was_held_is_missing(story: Story) -> None:
    story.hold()
    story.publish("p-1", "p-2")
    story.scan(waiting=("p-2",))


def the_acknowledging_session_lost_one_while_it_lived(story: Story) -> None:
    story.subscribe("ann/-1", is_durable=False)
    story.publish("p-1")
    story.get("p-1")


def one_that_nobody_published_arrives(story: Story) -> None:
    story.get("p-1")


def one_arrives_changed(story: Story) -> None:
    story.publish("p-1")
    story.get("p-1", sha="another")


def one_arrives_on_another_channel(story: Story) -> None:
    story.subscribe(channel="/other")
    story.publish("p-1", channel="/other")
    story.get("p-1")


def one_arrives_unasked(story: Story) -> None:
    story.publish("p-1", channel="/other")
    story.get("p-1", channel="/other")


def one_arrives_before_it_was_published(story: Story) -> None:
    story.get("p-1")
    story.publish("p-1")


def one_arrives_although_it_was_refused(story: Story) -> None:
    story.publish("p-1", outcome=Phase.FAIL)
    story.get("p-1")


def one_comes_again_and_does_not_say_so(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.get("p-1")


def one_comes_again_after_a_death_and_does_not_say_so(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.pause(100)
    story.fault("kill server")
    story.get("p-1")


def one_comes_again_after_it_was_accepted(story: Story) -> None:
    story.publish("p-1")
    story.get("p-1")
    story.answer("p-1", redelivered=1)


def one_comes_again_in_the_answer_to_its_acceptance(story: Story) -> None:
    story.publish("p-1")
    story.get("p-1")
    story.answer("p-1", redelivered=1, asked=story.operations[-1].begun_ns)


def one_comes_again_long_after_it_was_accepted_when_the_server_dies(story: Story) -> None:
    story.publish("p-1")
    story.get("p-1")
    story.pause(5000)
    story.fault("kill server")
    story.answer("p-1", redelivered=1)


def one_overtakes_another(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.get("p-2")
    story.get("p-1")


def what_was_held_back_comes_reversed(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.answer("p-1", "p-2")
    story.settle("p-1", code=HOLDBACK, seq=1)
    story.answer("p-2", "p-1", redelivered=1)
    story.settle("p-1", "p-2")


def they_are_accepted_in_another_order(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.answer("p-1", "p-2")
    story.settle("p-2")
    story.answer("p-1", redelivered=1)
    story.settle("p-1")


def a_batch_number_comes_twice(story: Story) -> None:
    story.connect(1)
    story.connect(2)
    story.connect(1, client="2")
    story.connect(2)


def a_queue_is_longer_than_its_limit(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.pause(100)
    story.scan(waiting=("p-1", "p-2"), limits={JOE: 1})


def an_entry_is_missing_from_the_books(story: Story) -> None:
    story.count(accepted=2, acked=1)


def one_is_dead_and_waits(story: Story) -> None:
    story.publish("p-1")
    story.scan(waiting=("p-1",), dead=("p-1",))
    story.scan(dead=("p-1",))


def one_died_twice(story: Story) -> None:
    story.publish("p-1")
    story.scan(dead=("p-1", "p-1"))


def one_was_accepted_and_is_dead(story: Story) -> None:
    story.publish("p-1")
    story.get("p-1")
    story.scan(dead=("p-1",))


def one_was_accepted_and_still_waits(story: Story) -> None:
    story.publish("p-1")
    story.get("p-1")
    story.pause(2000)
    story.scan(waiting=("p-1",))


def a_seq_comes_twice(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.get("p-1", seq=5)
    story.get("p-2", seq=5)


def redeliveries_are_counted_down(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1", redelivered=2)
    story.get("p-1", redelivered=1)


def an_attempt_is_not_in_the_letter(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.answer("p-1", redelivered=1)
    story.settle("p-1", code=ERROR)
    story.scan(dead=({"tag": "p-1", "attempts": 1},))


def an_attempt_is_not_in_the_queue(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.scan(pending={JOE: [{"tag": "p-1", "attempts": 0}]})


def a_replay_repeats_what_was_accepted(story: Story) -> None:
    story.publish("p-1")
    story.add(What.REPLAY)
    story.add(What.REPLAY)
    story.get("p-1", generation=1)
    story.get("p-1", generation=2)


def one_was_replayed_more_often_than_asked(story: Story) -> None:
    story.publish("p-1")
    story.add(What.REPLAY)
    story.answer("p-1", generation=1)
    story.get("p-1", generation=2)


def one_arrives_while_held_back(story: Story) -> None:
    story.publish("p-1")
    story.hold()
    story.get("p-1")
    story.resume()


def one_arrives_late_on_a_request_from_before_the_hold(story: Story) -> None:
    story.publish("p-1")
    asked_ns = story.now_ns
    story.hold()
    story.pause(2000)
    story.get("p-1", asked=asked_ns)


def one_that_was_sent_twice_is_two_messages(story: Story) -> None:
    story.publish("p-1", received="8")
    story.get("p-1", received="7")
    story.get("p-1", received="8", redelivered=1)


def one_that_was_sent_twice_is_another_to_somebody_else(story: Story) -> None:
    story.subscribe("ann/1")
    story.publish("p-1", outcome=Phase.INFO)
    story.get("p-1", received="7")
    story.get("p-1", received="8", subscriber="ann/1")


def one_that_is_sent_again_is_taken_for_a_new_one(story: Story) -> None:
    story.publish("p-1", received="7")
    story.get("p-1", received="7")
    story.add(What.REPEAT, "p", tag="p-1", received="8")


BAD: list[tuple[Tale, Invariant]] = [
    (the_last_is_missing, Invariant.NO_LOSS),
    (a_refused_one_is_nowhere, Invariant.NO_LOSS),
    (one_was_delivered_and_forgotten_when_the_receiver_said_nothing, Invariant.NO_LOSS),
    (one_that_was_held_is_missing, Invariant.NO_LOSS),
    (the_acknowledging_session_lost_one_while_it_lived, Invariant.NO_LOSS),
    (one_that_nobody_published_arrives, Invariant.FROM_SOMEWHERE),
    (one_arrives_changed, Invariant.FROM_SOMEWHERE),
    (one_arrives_on_another_channel, Invariant.FROM_SOMEWHERE),
    (one_arrives_unasked, Invariant.FROM_SOMEWHERE),
    (one_arrives_before_it_was_published, Invariant.FROM_SOMEWHERE),
    (one_arrives_although_it_was_refused, Invariant.FROM_SOMEWHERE),
    (one_comes_again_and_does_not_say_so, Invariant.NO_DUPLICATE),
    (one_comes_again_after_a_death_and_does_not_say_so, Invariant.NO_DUPLICATE),
    (one_comes_again_after_it_was_accepted, Invariant.NO_DUPLICATE),
    (one_comes_again_in_the_answer_to_its_acceptance, Invariant.NO_DUPLICATE),
    (one_comes_again_long_after_it_was_accepted_when_the_server_dies, Invariant.NO_DUPLICATE),
    (one_overtakes_another, Invariant.ORDER),
    (what_was_held_back_comes_reversed, Invariant.ORDER),
    (they_are_accepted_in_another_order, Invariant.ORDER),
    (a_batch_number_comes_twice, Invariant.ACKS),
    (a_queue_is_longer_than_its_limit, Invariant.ACKS),
    (an_entry_is_missing_from_the_books, Invariant.ACCOUNTS),
    (a_refused_one_is_nowhere, Invariant.ONE_FATE),
    (one_is_dead_and_waits, Invariant.ONE_FATE),
    (one_died_twice, Invariant.ONE_FATE),
    (one_was_accepted_and_is_dead, Invariant.ONE_FATE),
    (one_was_accepted_and_still_waits, Invariant.ONE_FATE),
    (a_seq_comes_twice, Invariant.ATTEMPTS),
    (redeliveries_are_counted_down, Invariant.ATTEMPTS),
    (an_attempt_is_not_in_the_letter, Invariant.ATTEMPTS),
    (an_attempt_is_not_in_the_queue, Invariant.ATTEMPTS),
    (a_replay_repeats_what_was_accepted, Invariant.REPLAY),
    (one_was_replayed_more_often_than_asked, Invariant.REPLAY),
    (one_arrives_while_held_back, Invariant.HOLD),
    (one_arrives_late_on_a_request_from_before_the_hold, Invariant.HOLD),
    (one_that_was_sent_twice_is_two_messages, Invariant.ONE_MESSAGE),
    (one_that_was_sent_twice_is_another_to_somebody_else, Invariant.ONE_MESSAGE),
    (one_that_is_sent_again_is_taken_for_a_new_one, Invariant.ONE_MESSAGE),
]


@pytest.mark.parametrize(("tale", "invariant"), BAD)
def test_a_bad_history_is_caught(tale: Tale, invariant: Invariant) -> None:
    result = told(tale).result()
    assert invariant in result.broken, result.report()


def test_every_invariant_has_been_broken() -> None:
    assert {invariant for _, invariant in BAD} == set(Invariant)


# What it says


def test_it_counts() -> None:
    story = told(lambda story: None)
    story.publish("p-1", "p-2", "p-4")
    story.publish("p-3", outcome=Phase.INFO)
    story.publish("p-5", life_ms=1)
    story.answer("p-1", "p-2", "p-3")
    story.settle("p-1")
    story.settle("p-2", code=ERROR)
    story.answer("p-3", redelivered=1)
    story.fault("kill server")
    story.hold()
    story.scan(waiting=("p-3",), dead=("p-2",))
    result = story.result()
    assert (result.attempts, result.acked, result.recovered) == (5, 4, 1)
    assert (result.delivered, result.processed, result.duplicated) == (3, 1, 1)
    assert (result.dead, result.pending, result.held, result.expired) == (1, 1, 1, 1)
    assert (result.lost, result.faults) == (1, 1)


@pytest.mark.parametrize(
    ("missing", "part"),
    [({1}, "prefix"), ({2}, "middle"), ({3}, "postfix"), ({1, 2, 3}, "postfix")],
)
def test_it_says_where_messages_are_missing(missing: set[int], part: str) -> None:
    story = told(lambda story: None)
    story.publish("p-1", "p-2", "p-3")
    story.get(*(f"p-{serial}" for serial in (1, 2, 3) if serial not in missing))
    assert f"in the {part} of" in story.result().report()


def test_its_report_has_the_counts_and_some_examples() -> None:
    story = told(lambda story: None)
    story.publish(*(f"p-{serial}" for serial in range(1, 100)))
    lines = story.result().report().splitlines()
    assert lines[0].startswith("valid? false: attempts 99 acked 99")
    assert "lost 99" in lines[0]
    assert lines[1].startswith("99 x I1")
    assert len(lines) == 2 + EXAMPLES


def test_an_empty_history_is_valid() -> None:
    assert check([]).is_valid
