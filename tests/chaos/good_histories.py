"""Histories in which all went well, although much happened."""

from tests.chaos.history import Phase, What
from tests.chaos.stories import JOE, MS, Story, Tale

ERROR, HOLDBACK = "user.update.error", "user.update.holdback"
# The options of receivers that only give verdicts.
TIMEOUT_MS = 2000


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
    story.answer("p-1", "p-2", timeout_ms=TIMEOUT_MS)
    story.pause(TIMEOUT_MS)
    story.answer("p-1", redelivered=1, timeout_ms=TIMEOUT_MS)
    story.answer("p-2", asked=story.operations[-1].fields["asked"], timeout_ms=TIMEOUT_MS)
    story.settle("p-1", "p-2")


def a_connect_was_held_until_the_resumption(story: Story) -> None:
    story.publish("p-1")
    story.hold()
    asked_ns = story.now_ns
    story.resume()
    story.get("p-1", asked=asked_ns)


def without_acks_what_was_lost_silently_comes_later(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.lose_in("black hole")
    story.get("p-2", timeout_ms=TIMEOUT_MS)
    story.get("p-1", redelivered=1, timeout_ms=TIMEOUT_MS)


def without_acks_what_was_lost_comes_first(story: Story) -> None:
    story.publish("p-1")
    story.lose_in("eat responses")
    story.publish("p-2")
    story.get("p-1", redelivered=1, timeout_ms=TIMEOUT_MS)
    story.get("p-2", timeout_ms=TIMEOUT_MS)


def without_acks_a_restart_brings_everything_flagged(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.answer("p-1", "p-2", timeout_ms=TIMEOUT_MS)
    story.fault("restart server")
    story.publish("p-3")
    story.get("p-1", "p-2", redelivered=1, timeout_ms=TIMEOUT_MS)
    story.get("p-3", timeout_ms=TIMEOUT_MS)


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


def a_frozen_store_was_ended_with_its_server_and_had_not_read_everything(story: Story) -> None:
    story.publish("p-1")
    story.fault("pause store", lasts_ms=10_000)
    story.fault("restart server", lasts_ms=10_000)
    story.operations[-1].begun_ns = story.operations[-2].begun_ns
    story.now_ns = story.operations[-2].begun_ns + 1 * MS
    story.answer("p-1")
    story.settle("p-1")
    story.pause(20_000)
    story.answer("p-1")
    story.settle("p-1")
    story.scan()


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


def a_replica_lacked_what_was_confirmed_last(story: Story) -> None:
    story.publish("p-1")
    story.publish_while_a_replica_lags("p-2", "p-3", may_lose=True)
    story.publish("p-4")
    story.get("p-1", "p-3", "p-4")
    story.scan()


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


def so_is_the_hold_of_a_refusal_of_what_the_store_forgot(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.fault("lose power")
    story.settle("p-1", code=HOLDBACK)
    story.hold(by="verdict")
    story.get("p-1")
    story.resume()
    story.scan()


def a_kill_takes_the_last_instant_with_the_acks_in_it(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.settle("p-1")
    story.pause(30)
    story.fault("kill server")
    story.get("p-1")
    story.scan()


def one_that_died_after_it_was_accepted_in_vain(story: Story) -> None:
    story.address("p-1", to=(JOE,))
    story.answer("p-1")
    story.fault("lose power")
    story.settle("p-1")
    story.answer("p-1")
    story.end()
    story.pause(2000)
    story.scan(dead=("p-1",))


def nobody_read_of_the_hand_over_any_more(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.fault("kill server")
    story.settle("p-1")
    story.get("p-1")


def the_store_is_about_to_read_of_a_hand_over(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.scan(pending={JOE: [{"tag": "p-1", "attempts": 0}]})
    story.settle("p-1")


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
        accepted=7, acked=1, waiting=1, in_flight=1, dead=1, expired=1, discarded=1, moved=1
    )
    story.count(accepted=1, restored=2, acked=2, waiting=1)


def what_a_session_left_comes_to_the_next_one(story: Story) -> None:
    story.address("p-1", "p-2", "p-3", to=("joe",))
    story.get("p-1")
    story.answer("p-2")
    story.end()
    story.scan(pending={"joe/0": [{"tag": f"p-{n}", "attempts": 1} for n in (2, 3)]})
    story.answer("p-2", redelivered=1, seq=1)
    story.answer("p-3", seq=2)
    story.settle("p-2", "p-3")
    story.scan()


def sessions_of_one_subject_have_copies_of_their_own(story: Story) -> None:
    story.address("p-1", "p-2", to=("joe",))
    story.get("p-1", "p-2")
    story.answer("p-2", subscriber="joe/2")
    story.end("joe/2")
    # A message that another session left may come late, and after it was accepted.
    story.get("p-2", redelivered=1)
    story.scan()


def addressed_ones_are_refused_expire_or_find_nobody(story: Story) -> None:
    story.address("p-1", to=(JOE,))
    story.address("p-2", to=(JOE, "ann/1"), taken=(JOE,), life_ms=10)
    story.address("p-3", to=("ann/1",), outcome=Phase.FAIL)
    story.answer("p-1")
    story.settle("p-1", code=ERROR)
    story.pause(20)
    story.scan(dead=("p-1",))


def the_more_recent_of_what_is_addressed_otherwise_comes_first(story: Story) -> None:
    story.address("p-1", to=("joe",))
    story.address("p-2", to=(JOE,))
    story.get("p-2", "p-1")


def refused_work_goes_to_the_next(story: Story) -> None:
    story.subscribe("ann/1")
    story.publish("p-1", "p-2", is_work=True)
    story.answer("p-1")
    story.settle("p-1", code=ERROR)
    story.get("p-1", subscriber="ann/1", redelivered=1)
    story.scan(pending={"work:/chaos/0": [{"tag": "p-2", "attempts": 0}]})


def work_of_one_who_vanished_goes_to_the_next(story: Story) -> None:
    story.subscribe("ann/1")
    story.publish("p-1", "p-2", is_work=True)
    story.answer("p-1")
    story.end()
    story.answer("p-1", subscriber="ann/1", redelivered=1)
    story.lose()
    story.settle("p-1", subscriber="ann/1")
    story.get("p-2")


def who_goes_on_gets_some_again_and_is_told_what_is_missing(story: Story) -> None:
    story.subscribe("eve", cursor=-2)
    story.publish("p-1", "p-2", received="7000")
    story.get("p-1", "p-2")
    story.get("p-2", subscriber="eve", redelivered=None)
    story.go_on("eve", recovered=False, lost={"/chaos": {"from": 6, "to": 7}})
    story.answer("p-2", subscriber="eve", redelivered=None)


def a_slow_machine_is_about_to_read_of_a_hand_over(story: Story) -> None:
    story.publish("p-1")
    story.answer("p-1")
    story.stall(150)
    story.pause(100)
    story.stall(50)
    story.scan(pending={JOE: [{"tag": "p-1", "attempts": 0}]})
    story.pause(1000)
    story.stall(50)


def a_slow_machine_hands_out_for_longer_what_a_silent_store_never_read(story: Story) -> None:
    story.publish("p-1", "p-2")
    story.answer("p-1")
    story.pause(150)
    story.stall(150)
    story.answer("p-2")
    story.fault("kill server")
    story.get("p-1", "p-2")


def a_replica_that_took_over_is_about_to_hear_of_a_hand_over(story: Story) -> None:
    story.publish("p-1")
    story.answer_while_a_replica_takes_over("p-1")
    story.scan(pending={JOE: [{"tag": "p-1", "attempts": 0}]})
    story.pause(2000)
    story.scan(pending={JOE: [{"tag": "p-1", "attempts": 1}]})
    story.settle("p-1")


def requests_are_answered_or_end(story: Story) -> None:
    story.ask("amy-1", "amy-2")
    story.ask("amy-3", outcome=Phase.FAIL)
    story.ask("amy-4", "amy-5", outcome=Phase.INFO)
    story.tell("amy-2", "1", end="404:/ask:no_responders")
    story.tell("amy-1", "2", by="pat/1")
    # The reply to the connect was lost.
    story.tell("amy-1", "2", by="pat/1")
    story.tell("amy-5", "3", by="pat/1")


def requests_to_all_end_behind_their_replies(story: Story) -> None:
    story.ask("amy-1", "amy-2", mode="all")
    story.tell("amy-1", "1", by="pat/1")
    story.tell("amy-1", "2", by="pam/1")
    story.tell("amy-1", "2", by="pam/1")
    story.tell("amy-1", "3", end="END", replies=2)
    story.tell("amy-2", "4", end="408:/ask:timeout")


GOOD: list[Tale] = [
    what_a_session_left_comes_to_the_next_one,
    sessions_of_one_subject_have_copies_of_their_own,
    addressed_ones_are_refused_expire_or_find_nobody,
    the_more_recent_of_what_is_addressed_otherwise_comes_first,
    refused_work_goes_to_the_next,
    work_of_one_who_vanished_goes_to_the_next,
    who_goes_on_gets_some_again_and_is_told_what_is_missing,
    everything_arrives,
    a_reply_was_lost,
    unknown_publishes_turn_up_or_do_not,
    a_refused_one_is_dead,
    held_back_and_resumed,
    behind_one_that_was_not_answered_in_time,
    a_connect_was_held_until_the_resumption,
    without_acks_what_was_lost_silently_comes_later,
    without_acks_what_was_lost_comes_first,
    without_acks_a_restart_brings_everything_flagged,
    the_store_is_about_to_read_of_a_hand_over,
    a_slow_machine_is_about_to_read_of_a_hand_over,
    a_slow_machine_hands_out_for_longer_what_a_silent_store_never_read,
    a_replica_that_took_over_is_about_to_hear_of_a_hand_over,
    held_back_for_ever,
    a_death_undid_an_acceptance,
    a_death_behind_a_pause_of_the_store_undid_an_acceptance,
    a_frozen_store_was_ended_with_its_server_and_had_not_read_everything,
    a_session_that_promises_nothing_ended,
    some_expired,
    others_are_owed_nothing,
    a_letter_was_replayed,
    the_store_forgot_what_was_not_on_disk,
    a_replica_lacked_what_was_confirmed_last,
    an_acceptance_of_what_the_store_forgot_is_void,
    so_is_the_hold_of_a_refusal_of_what_the_store_forgot,
    a_kill_takes_the_last_instant_with_the_acks_in_it,
    one_that_died_after_it_was_accepted_in_vain,
    nobody_read_of_the_hand_over_any_more,
    urgent_ones_overtake,
    one_was_sent_again_with_its_key,
    what_finds_no_room_is_on_its_way_out,
    the_books_balance,
    requests_are_answered_or_end,
    requests_to_all_end_behind_their_replies,
]
