"""Histories in which something went wrong, and which invariant it breaks."""

from tests.chaos.checker import Invariant
from tests.chaos.history import Phase, What
from tests.chaos.stories import JOE, Story, Tale

ERROR, HOLDBACK = "user.update.error", "user.update.holdback"
# The options of receivers that only give verdicts.
TIMEOUT_MS = 2000


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


def a_replica_lacks_what_it_has_confirmed(story: Story) -> None:
    story.publish_while_a_replica_lags("p-1", may_lose=False)
    story.scan()


def a_replica_lacks_what_was_confirmed_before_it_lagged(story: Story) -> None:
    story.publish("p-1")
    story.pause(1)
    story.publish_while_a_replica_lags("p-2", may_lose=True)
    story.scan()


def a_replica_lacks_what_was_confirmed_since_it_took_over(story: Story) -> None:
    story.publish_while_a_replica_lags("p-1", may_lose=True)
    story.pause(1)
    story.publish("p-2")
    story.scan()


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
    # What the store kept later says that it had read of the hand-over.
    story.publish("p-2")
    story.fault("kill server")
    story.get("p-1", "p-2")


def what_a_silent_store_never_read_was_handed_out_for_too_long(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.answer("p-1")
    story.pause(300)
    story.answer("p-2")
    story.fault("kill server")
    story.get("p-1", "p-2")


def a_stall_at_another_time_excuses_nobody_who_hands_out_for_too_long(story: Story) -> None:
    story.stall(1000)
    what_a_silent_store_never_read_was_handed_out_for_too_long(story)
    story.stall(1000)


def one_comes_again_after_an_orderly_restart(story: Story) -> None:
    story.publish("p-1")
    story.get("p-1")
    story.fault("restart server")
    story.answer("p-1", redelivered=1)


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


def without_acks_what_was_lost_comes_behind_newer_ones(story: Story) -> None:
    story.publish("p-1")
    story.lose_in("eat responses")
    story.publish("p-2")
    story.get("p-2", timeout_ms=TIMEOUT_MS)
    story.get("p-1", redelivered=1, timeout_ms=TIMEOUT_MS)


def without_acks_a_restart_leaves_what_was_lost_silently_behind(story: Story) -> None:
    story.publish("p-1")
    story.lose_in("black hole")
    story.publish("p-2")
    story.fault("restart server")
    story.get("p-2", timeout_ms=TIMEOUT_MS)
    story.get("p-1", redelivered=1, timeout_ms=TIMEOUT_MS)


def without_acks_one_overtakes_what_was_published_after_the_silence(story: Story) -> None:
    story.lose_in("black hole")
    story.pause(1)
    story.publish("p-1", "p-2")
    story.get("p-2", timeout_ms=TIMEOUT_MS)
    story.get("p-1", timeout_ms=TIMEOUT_MS)


def without_acks_they_are_accepted_in_another_order(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.answer("p-1", "p-2", timeout_ms=TIMEOUT_MS)
    story.settle("p-2")
    story.answer("p-1", redelivered=1, timeout_ms=TIMEOUT_MS)
    story.settle("p-1")


def without_acks_a_restart_flags_only_the_first(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.answer("p-1", "p-2", timeout_ms=TIMEOUT_MS)
    story.fault("restart server")
    story.answer("p-1", redelivered=1, timeout_ms=TIMEOUT_MS)
    story.answer("p-2", asked=story.operations[-1].fields["asked"], timeout_ms=TIMEOUT_MS)
    story.settle("p-1", "p-2")


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
    story.pause(300)
    story.scan(pending={JOE: [{"tag": "p-1", "attempts": 0}]})


def a_replica_that_took_over_never_hears_of_a_hand_over(story: Story) -> None:
    story.publish("p-1")
    story.answer_while_a_replica_takes_over("p-1")
    story.pause(2100)
    story.scan(pending={JOE: [{"tag": "p-1", "attempts": 0}]})


def a_stall_at_another_time_excuses_no_missing_attempt(story: Story) -> None:
    story.stall(1000)
    an_attempt_is_not_in_the_queue(story)
    story.stall(1000)


def a_short_stall_excuses_no_missing_attempt(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.stall(50)
    story.pause(250)
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


def one_arrives_although_the_store_knew_what_was_refused(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    # It answers, so it has read of the hand-over.
    story.publish("p-2")
    story.fault("kill server")
    story.settle("p-1", code=HOLDBACK)
    story.hold(by="verdict")
    story.get("p-1", "p-2", redelivered=1)
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


# What is addressed


def one_for_a_subject_reaches_nobody(story: Story) -> None:
    story.address("p-1", "p-2", to=("joe",))
    story.get("p-1")
    story.scan()


def one_for_a_session_is_lost_when_its_subject_has_another_copy(story: Story) -> None:
    story.address("p-1", to=(JOE, "joe"))
    story.get("p-1", subscriber="joe/2")
    story.scan()


def one_for_a_subject_comes_to_another(story: Story) -> None:
    story.address("p-1", to=("ann",))
    story.get("p-1")


def one_comes_to_a_session_that_did_not_take_it(story: Story) -> None:
    story.address("p-1", to=("joe/2", "ann"), taken=("ann",))
    story.get("p-1", subscriber="joe/2")


def one_for_a_subject_comes_again_after_it_was_accepted(story: Story) -> None:
    story.address("p-1", to=("joe",))
    story.get("p-1")
    story.end()
    story.answer("p-1", redelivered=1)


def one_that_came_back_does_not_say_so_to_the_next_session(story: Story) -> None:
    story.address("p-1", to=("joe",))
    story.answer("p-1")
    story.end()
    story.get("p-1")


def one_for_a_subject_overtakes_another(story: Story) -> None:
    story.address("p-1", "p-2", to=("joe",))
    story.get("p-2")
    story.end()
    story.get("p-1")


def a_subject_gets_the_less_urgent_first(story: Story) -> None:
    story.address("p-1", to=("joe",), received="1", priority=9)
    story.address("q-1", to=("joe",), received="2")
    story.get("q-1", "p-1")


def a_subject_gets_the_more_recent_first(story: Story) -> None:
    story.address("p-1", to=("joe",), received="1")
    story.address("q-1", to=("joe",), received="2")
    story.get("q-1", "p-1")


def one_for_a_subject_was_accepted_and_waits_for_the_next_session(story: Story) -> None:
    story.address("p-1", to=("joe",))
    story.get("p-1")
    story.pause(2000)
    story.scan(pending={"joe/0": [{"tag": "p-1", "attempts": 1}]})


def an_attempt_is_forgotten_on_the_way_back_to_the_subject(story: Story) -> None:
    story.address("p-1", to=("joe",))
    story.answer("p-1")
    story.end()
    story.pause(300)
    story.scan(pending={"joe/0": [{"tag": "p-1", "attempts": 0}]})


# Work


def work_reaches_nobody(story: Story) -> None:
    story.publish("p-1", is_work=True)
    story.scan()


def work_is_given_to_two(story: Story) -> None:
    story.subscribe("ann/1")
    story.publish("p-1", is_work=True)
    story.answer("p-1")
    story.answer("p-1", subscriber="ann/1", redelivered=1)
    story.settle("p-1")


def work_is_done_twice(story: Story) -> None:
    story.subscribe("ann/1")
    story.publish("p-1", is_work=True)
    story.get("p-1")
    story.get("p-1", subscriber="ann/1", redelivered=1)


def work_is_kept_for_two(story: Story) -> None:
    story.publish("p-1", is_work=True)
    story.scan(pending={key: [{"tag": "p-1", "attempts": 0}] for key in (JOE, "ann/1")})


def the_next_receiver_of_work_is_not_told_that_it_was_handed_over_before(story: Story) -> None:
    story.subscribe("ann/1")
    story.publish("p-1", is_work=True)
    story.answer("p-1")
    story.settle("p-1", code=ERROR)
    story.get("p-1", subscriber="ann/1")


# Histories


def one_published_between_two_sessions_is_missing(story: Story) -> None:
    story.subscribe("eve", cursor=-2)
    story.publish("p-1", received="7000")
    story.go_on("eve", recovered=True)
    story.get("p-1")


def one_is_missing_behind_what_may_be_missing(story: Story) -> None:
    story.subscribe("eve", cursor=-2)
    story.publish("p-1", received="7000")
    story.go_on("eve", recovered=False, lost={"/chaos": {"from": 2, "to": 6}})
    story.get("p-1")


TIMEOUT = "408:/ask:timeout"


def a_request_has_a_reply_and_an_error(story: Story) -> None:
    story.ask("amy-1")
    story.tell("amy-1", "1", by="pat/1")
    story.fault("kill server")
    story.tell("amy-1", "2", end=TIMEOUT)


def a_request_has_two_replies(story: Story) -> None:
    story.ask("amy-1")
    story.tell("amy-1", "1", by="pat/1")
    story.tell("amy-1", "2", by="pat/1")


def a_request_has_no_outcome(story: Story) -> None:
    story.ask("amy-1", "amy-2")
    story.tell("amy-1", "1", by="pat/1")


def a_request_of_unknown_fate_has_two_outcomes(story: Story) -> None:
    story.ask("amy-1", outcome=Phase.INFO)
    story.tell("amy-1", "1", by="pat/1")
    story.tell("amy-1", "2", end=TIMEOUT)


def a_refused_request_has_an_outcome(story: Story) -> None:
    story.ask("amy-1", outcome=Phase.FAIL)
    story.tell("amy-1", "1", end=TIMEOUT)


def somebody_replies_twice_to_a_request_to_all(story: Story) -> None:
    story.ask("amy-1", mode="all")
    story.tell("amy-1", "1", by="pat/1")
    story.tell("amy-1", "2", by="pat/1")
    story.tell("amy-1", "3", end="END", replies=2)


def a_reply_to_all_is_not_counted(story: Story) -> None:
    story.ask("amy-1", mode="all")
    story.tell("amy-1", "1", by="pat/1")
    story.tell("amy-1", "2", end=TIMEOUT)


def a_request_to_all_never_ends(story: Story) -> None:
    story.ask("amy-1", mode="all")
    story.tell("amy-1", "1", by="pat/1")


def an_outcome_comes_that_nobody_asked_for(story: Story) -> None:
    story.tell("amy-1", "1", by="pat/1")


BAD: list[tuple[Tale, Invariant]] = [
    (one_for_a_subject_reaches_nobody, Invariant.NO_LOSS),
    (one_for_a_session_is_lost_when_its_subject_has_another_copy, Invariant.NO_LOSS),
    (one_for_a_subject_comes_to_another, Invariant.FROM_SOMEWHERE),
    (one_comes_to_a_session_that_did_not_take_it, Invariant.FROM_SOMEWHERE),
    (one_for_a_subject_comes_again_after_it_was_accepted, Invariant.NO_DUPLICATE),
    (one_that_came_back_does_not_say_so_to_the_next_session, Invariant.NO_DUPLICATE),
    (one_for_a_subject_overtakes_another, Invariant.ORDER),
    (a_subject_gets_the_less_urgent_first, Invariant.ORDER),
    (a_subject_gets_the_more_recent_first, Invariant.ORDER),
    (one_for_a_subject_was_accepted_and_waits_for_the_next_session, Invariant.ONE_FATE),
    (an_attempt_is_forgotten_on_the_way_back_to_the_subject, Invariant.ATTEMPTS),
    (work_reaches_nobody, Invariant.NO_LOSS),
    (work_is_given_to_two, Invariant.ONE_RECEIVER),
    (work_is_done_twice, Invariant.ONE_RECEIVER),
    (work_is_kept_for_two, Invariant.ONE_RECEIVER),
    (the_next_receiver_of_work_is_not_told_that_it_was_handed_over_before, Invariant.ONE_RECEIVER),
    (one_published_between_two_sessions_is_missing, Invariant.NO_LOSS),
    (one_is_missing_behind_what_may_be_missing, Invariant.NO_LOSS),
    (the_last_is_missing, Invariant.NO_LOSS),
    (a_refused_one_is_nowhere, Invariant.NO_LOSS),
    (one_was_delivered_and_forgotten_when_the_receiver_said_nothing, Invariant.NO_LOSS),
    (a_replica_lacks_what_it_has_confirmed, Invariant.NO_LOSS),
    (a_replica_lacks_what_was_confirmed_before_it_lagged, Invariant.NO_LOSS),
    (a_replica_lacks_what_was_confirmed_since_it_took_over, Invariant.NO_LOSS),
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
    (what_a_silent_store_never_read_was_handed_out_for_too_long, Invariant.NO_DUPLICATE),
    (a_stall_at_another_time_excuses_nobody_who_hands_out_for_too_long, Invariant.NO_DUPLICATE),
    (one_comes_again_after_an_orderly_restart, Invariant.NO_DUPLICATE),
    (one_comes_again_after_it_was_accepted, Invariant.NO_DUPLICATE),
    (one_comes_again_in_the_answer_to_its_acceptance, Invariant.NO_DUPLICATE),
    (one_comes_again_long_after_it_was_accepted_when_the_server_dies, Invariant.NO_DUPLICATE),
    (one_overtakes_another, Invariant.ORDER),
    (what_was_held_back_comes_reversed, Invariant.ORDER),
    (they_are_accepted_in_another_order, Invariant.ORDER),
    (without_acks_what_was_lost_comes_behind_newer_ones, Invariant.ORDER),
    (without_acks_a_restart_leaves_what_was_lost_silently_behind, Invariant.ORDER),
    (without_acks_one_overtakes_what_was_published_after_the_silence, Invariant.ORDER),
    (without_acks_they_are_accepted_in_another_order, Invariant.ORDER),
    (without_acks_a_restart_flags_only_the_first, Invariant.NO_DUPLICATE),
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
    (a_stall_at_another_time_excuses_no_missing_attempt, Invariant.ATTEMPTS),
    (a_replica_that_took_over_never_hears_of_a_hand_over, Invariant.ATTEMPTS),
    (a_short_stall_excuses_no_missing_attempt, Invariant.ATTEMPTS),
    (a_replay_repeats_what_was_accepted, Invariant.REPLAY),
    (one_was_replayed_more_often_than_asked, Invariant.REPLAY),
    (one_arrives_while_held_back, Invariant.HOLD),
    (one_arrives_although_the_store_knew_what_was_refused, Invariant.HOLD),
    (one_arrives_late_on_a_request_from_before_the_hold, Invariant.HOLD),
    (one_that_was_sent_twice_is_two_messages, Invariant.ONE_MESSAGE),
    (one_that_was_sent_twice_is_another_to_somebody_else, Invariant.ONE_MESSAGE),
    (one_that_is_sent_again_is_taken_for_a_new_one, Invariant.ONE_MESSAGE),
    (a_request_has_a_reply_and_an_error, Invariant.ONE_OUTCOME),
    (a_request_has_two_replies, Invariant.ONE_OUTCOME),
    (a_request_has_no_outcome, Invariant.ONE_OUTCOME),
    (a_request_of_unknown_fate_has_two_outcomes, Invariant.ONE_OUTCOME),
    (a_refused_request_has_an_outcome, Invariant.ONE_OUTCOME),
    (somebody_replies_twice_to_a_request_to_all, Invariant.ONE_OUTCOME),
    (a_reply_to_all_is_not_counted, Invariant.ONE_OUTCOME),
    (a_request_to_all_never_ends, Invariant.ONE_OUTCOME),
    (an_outcome_comes_that_nobody_asked_for, Invariant.ONE_OUTCOME),
]
