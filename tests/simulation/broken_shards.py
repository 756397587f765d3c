"""Servers of several shards that are broken on purpose, to see that seeds find it."""

from collections.abc import Sequence
from contextlib import ExitStack
from math import inf
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.bayeux.far_work import borrowing
from holdfast.bayeux.far_work.everywhere import WorkEverywhere
from holdfast.bayeux.publish.requests_everywhere import RequestsEverywhere
from holdfast.bayeux.publish.topic_effects import TopicPublishing
from holdfast.bayeux.services.far_presence import FarPresence
from holdfast.bayeux.services.far_topics import FarTopics
from holdfast.bayeux.state import kept_requests
from holdfast.bayeux.state.shared import Shared
from holdfast.bayeux.subscribe.far_histories import FarReading
from holdfast.cluster import agreement, reading
from holdfast.cluster.places import Incarnation, Place
from holdfast.cluster.trimming import Trimming
from holdfast.delivery.messages.outcomes import Lending
from holdfast.delivery.requests.outstanding import Requests
from holdfast.delivery.requests.stored_fields import OF_OTHERS
from holdfast.delivery.shared_queues.lent_work import LentWork
from holdfast.delivery.shared_queues.work import borrowed_of
from holdfast.sharding import arrivals
from holdfast.sharding.direct import DirectArrivals
from holdfast.sharding.homes import ShardHomes
from holdfast.sharding.kept_first import KeptFirst
from holdfast.sharding.member import Member
from holdfast.sharding.own_rows import OwnRows
from holdfast.sharding.passing import Passing
from holdfast.store.framing.shard_log import Taking
from holdfast.web.forwarding import far_shard
from holdfast.web.giving.giver import Giver
from tests.simulation.breaking import by_name, nothing, replace, rewrite
from tests.simulation.small import set_limit


def frames_are_numbered_by_the_store(stack: ExitStack) -> None:
    """A call that is repeated after a lost answer appends its frame again."""
    rewrite(stack, "is_repeat = number <= last", "is_repeat = false")
    counted = "redis.call('HINCRBY', KEYS[1], 'frames', 1)"
    rewrite(stack, "found[2] .. '-' .. n\n", f"found[2] .. '-' .. {counted}\n")


def ids_of_killed_servers_are_given_again(stack: ExitStack) -> None:
    """If they were killed before they wrote how far they were."""
    rewrite(stack, "later(above, 1e8)", "above")


def what_crosses_is_appended_afterwards(stack: ExitStack) -> None:
    """In a step of its own, behind the one that stores the message."""
    frame_of = Member.frame_of

    def later(self: Member, messages: Any) -> None:
        frame = frame_of(self, messages)
        if frame is not None:
            self._store.append(frame.entries, frame.parts, nothing)

    replace(stack, Member, "frame_of", later)


def passing_messages_never_cross(stack: ExitStack) -> None:
    """Their publishers hear that they were accepted, and nobody at other shards gets them."""
    replace(stack, Passing, "add", nothing)


def passing_messages_swap_places(stack: ExitStack) -> None:
    """Each second one leaves before the first one."""
    add = Passing.add
    waiting: WeakKeyDictionary[Passing, Any] = WeakKeyDictionary()

    def swap(self: Passing, entry: Any, **more: Any) -> None:
        first = waiting.pop(self, None)
        if first is None:
            waiting[self] = entry
        else:
            add(self, entry, **more)
            add(self, first)

    replace(stack, Passing, "add", swap)


def passing_messages_need_the_store(stack: ExitStack) -> None:
    """They take the log alone, and what that does not get is lost."""
    replace(stack, Passing, "_has_links", lambda _: False)
    replace(stack, Passing, "give_up", lambda _, entries: len(entries))


def logs_do_not_wait_for_links(stack: ExitStack) -> None:
    """What is stored is shown before what another shard had sent directly."""
    replace(stack, DirectArrivals, "has_come", lambda *_: True)


def links_do_not_wait_for_logs(stack: ExitStack) -> None:
    """What comes directly is shown before what another shard had stored."""
    replace(stack, DirectArrivals, "_is_read", lambda *_: True)
    replace(stack, KeptFirst, "holds", lambda *_: False)


def what_others_have_is_not_stored(stack: ExitStack) -> None:
    """A shard shows what it reads in the logs of others, and moves on."""
    replace(stack, arrivals, "_is_kept", lambda _: False)


def readers_begin_with_the_newest_incarnation(stack: ExitStack) -> None:
    """They skip what they had not read of the one before."""

    def newest(place: Place, _: Sequence[Incarnation], listed: Sequence[Incarnation]) -> str:
        if listed and listed[-1].nonce != place.nonce:
            return f"{listed[-1].fence}-{listed[-1].n - 1}"
        return place.id

    replace(stack, reading, "go_on", newest)


def places_are_forgotten_at_a_restart(stack: ExitStack) -> None:
    """Readers begin with the end of each log."""
    learn_all = Member.learn_all

    def at_the_end(self: Member, shard: int, found: Any) -> None:
        known = {**self._taken}
        if shard in known:
            self._taken[shard] = known[shard]._replace(place=found.end)
        learn_all(self, shard, found)

    replace(stack, Member, "learn_all", at_the_end)


def what_the_store_refuses_counts_as_taken(stack: ExitStack) -> None:
    replace(stack, arrivals, "_NOT_TAKEN", dict.fromkeys(Taking))


def logs_are_trimmed_at_once(stack: ExitStack) -> None:
    """Whatever others have taken of them."""
    replace(stack, Trimming, "_long_ago", lambda self, *_: self._end)


def openings_are_not_listed(stack: ExitStack) -> None:
    rewrite(stack, "if string.sub(before, 1, #nonce) ~= nonce then", "if false then")


def _keep_briefly(stack: ExitStack) -> None:
    """Keep what nobody is known to need for a second: who needs it later misses it soon."""
    set_limit(stack, "cluster.trimming", "KEEP_S", 1.0)


def subscribers_do_not_wait_for_others(stack: ExitStack) -> None:
    _keep_briefly(stack)
    replace(stack, OwnRows, "when_known", lambda _, __, done: done(True))


def a_shard_is_left_out_at_the_first_look(stack: ExitStack) -> None:
    """Although its lease was raised a moment ago."""
    _keep_briefly(stack)
    read = agreement._Holder.read

    def at_once(self: Any, lease: str | None, now: float) -> bool:
        return read(self, lease, now) or lease is not None

    replace(stack, agreement._Holder, "read", at_once)


def a_frozen_shard_blocks_agreement(stack: ExitStack) -> None:
    """However long its lease stands."""
    replace(stack, agreement, "SILENT_S", inf)


def a_broken_link_repeats_everything(stack: ExitStack) -> None:
    """Also what the home may have handled, and not connects alone."""
    replace(stack, far_shard, "is_lone_connect", lambda _: True)


def calls_stay_in_the_inbox(stack: ExitStack) -> None:
    """Whoever opens the store does them again."""
    rewrite(
        stack,
        "    if letters > 0 then\n        redis.call('HDEL'",
        "    if false then\n        redis.call('HDEL'",
    )


def histories_are_read_without_what_comes_meanwhile(stack: ExitStack) -> None:
    replace(stack, FarReading, "include", nothing)


def homes_answer_ahead_of_their_logs(stack: ExitStack) -> None:
    """What is on its way to the log then comes a second time, or too early."""
    replace(stack, ShardHomes, "answer_behind", ShardHomes.answer)


def changes_of_presence_are_not_told(stack: ExitStack) -> None:
    replace(stack, FarPresence, "changed", nothing)


def members_of_others_never_leave(stack: ExitStack) -> None:
    replace(stack, FarPresence, "_leave", nothing)


def who_starts_does_not_ask_who_is_there(stack: ExitStack) -> None:
    hear = Shared._hear

    def never_asked(self: Shared[Any], told: Any, asker: Any, now: float) -> None:
        hear(self, told | {"asks": False}, asker, now)

    replace(stack, Shared, "_hear", never_asked)


def requests_end_without_others(stack: ExitStack) -> None:
    """Their shard does not wait until all others have said who may answer."""
    replace(stack, RequestsEverywhere, "expect", nothing)


def each_reply_counts(stack: ExitStack) -> None:
    """Also of a session of another shard that has replied before, or behind another one."""
    accept = Requests.accept_from

    def any_time(self: Any, address: str, key: str) -> Any:
        request, fault = accept(self, address, key)
        return request, None if request is not None else fault

    replace(stack, Requests, "accept_from", any_time)


def who_was_asked_is_forgotten_at_a_restart(stack: ExitStack) -> None:
    reopened = kept_requests._reopened

    def of_this_shard(state: Any, sessions: Any, name: str, *rest: Any, **now: Any) -> Any:
        is_of_others = name.startswith(OF_OTHERS)
        return None if is_of_others else reopened(state, sessions, name, *rest, **now)

    replace(stack, kept_requests, "_reopened", of_this_shard)


def lost_work_does_not_return(stack: ExitStack) -> None:
    replace(stack, LentWork, "return_lost", nothing)


def lost_work_returns_as_new(stack: ExitStack) -> None:
    def as_new(self: LentWork[Any], channel: str, key: str, entry: Any) -> None:
        self._requeue(channel, key, entry, message=entry.message, how=Lending.TAKEN_BACK)

    replace(stack, LentWork, "return_lost", as_new)


def work_that_others_have_done_stays(stack: ExitStack) -> None:
    replace(stack, LentWork, "finish", nothing)


def refusals_stay_at_their_shard(stack: ExitStack) -> None:
    replace(stack, borrowing, "rows_of_refusals", lambda _: [])


def who_starts_does_not_ask_who_has_work(stack: ExitStack) -> None:
    replace(stack, WorkEverywhere, "is_unsure", property(lambda _: False))


def work_is_taken_behind_a_loss_of_contact(stack: ExitStack) -> None:
    """Although others may have got it meanwhile."""
    replace(stack, borrowing, "_DOUBT_S", inf)


def copies_are_counted_twice_if_a_restart_fails(stack: ExitStack) -> None:
    go_on = WorkEverywhere.go_on

    def again(self: WorkEverywhere) -> None:
        for session in self._state.sessions:
            for record in filter(None, map(borrowed_of, session.queue.messages())):
                record.borrower = None
        go_on(self)

    replace(stack, WorkEverywhere, "go_on", again)


def erasures_stay_at_their_home(stack: ExitStack) -> None:
    """Other shards say that they have erased the topic."""

    def only_say_so(self: FarTopics, _: Any, asker: Any, __: float) -> None:
        self._tell_erased(asker)

    replace(stack, FarTopics, "_carry_out_erasure", only_say_so)


def lost_erasures_hide_subscriptions(stack: ExitStack) -> None:
    """The home leaves out what another shard has until that one says that it has erased it."""
    answered = FarTopics._erased_at

    def only_if_done(self: FarTopics, answer: Any, **what: Any) -> None:
        key = what["name"], what["shard"]
        answered(self, answer, **what)
        if answer is None:
            self._erasing[key] = what["erased_at"]

    replace(stack, FarTopics, "_erased_at", only_if_done)


def readonly_topics_take_every_message(stack: ExitStack) -> None:
    replace(stack, TopicPublishing, "_check_readonly", nothing)


def topics_end_without_others(stack: ExitStack) -> None:
    replace(stack, FarTopics, "end_unless_used", lambda _, topic: topic.end())


def subscriptions_to_topics_are_not_told(stack: ExitStack) -> None:
    replace(
        stack, FarTopics, "subscriptions_changed", lambda self, name: self.topic(name) is not None
    )


def given_requests_are_forwarded_too(stack: ExitStack) -> None:
    give = Giver.gives

    def give_and_forward(self: Giver, *request: Any) -> bool:
        give(self, *request)
        return False

    replace(stack, Giver, "gives", give_and_forward)


BUILDS_OF_SHARDS = by_name(
    frames_are_numbered_by_the_store,
    ids_of_killed_servers_are_given_again,
    what_crosses_is_appended_afterwards,
    passing_messages_never_cross,
    passing_messages_swap_places,
    passing_messages_need_the_store,
    logs_do_not_wait_for_links,
    links_do_not_wait_for_logs,
    what_others_have_is_not_stored,
    readers_begin_with_the_newest_incarnation,
    places_are_forgotten_at_a_restart,
    what_the_store_refuses_counts_as_taken,
    logs_are_trimmed_at_once,
    openings_are_not_listed,
    subscribers_do_not_wait_for_others,
    a_shard_is_left_out_at_the_first_look,
    a_frozen_shard_blocks_agreement,
    a_broken_link_repeats_everything,
    calls_stay_in_the_inbox,
    histories_are_read_without_what_comes_meanwhile,
    homes_answer_ahead_of_their_logs,
    changes_of_presence_are_not_told,
    members_of_others_never_leave,
    who_starts_does_not_ask_who_is_there,
    requests_end_without_others,
    each_reply_counts,
    who_was_asked_is_forgotten_at_a_restart,
    lost_work_does_not_return,
    lost_work_returns_as_new,
    work_that_others_have_done_stays,
    refusals_stay_at_their_shard,
    who_starts_does_not_ask_who_has_work,
    work_is_taken_behind_a_loss_of_contact,
    copies_are_counted_twice_if_a_restart_fails,
    erasures_stay_at_their_home,
    lost_erasures_hide_subscriptions,
    readonly_topics_take_every_message,
    topics_end_without_others,
    subscriptions_to_topics_are_not_told,
    given_requests_are_forwarded_too,
)
