"""Servers that are broken on purpose, each in one way, to see that seeds find it."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from typing import Any

from holdfast.bayeux.publish import incoming, qos
from holdfast.bayeux.publish.qos import key_of
from holdfast.compose import storage
from holdfast.delivery.messages.publish_key import PublishKey
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.queues import in_flight
from holdfast.store.links.link import StoreLink
from holdfast.store.links.reader import Reader
from holdfast.store.opening import lease
from holdfast.store.opening.lease import Lease
from holdfast.store.opening.lease_keeper import LeaseKeeper
from holdfast.store.opening.write_right import WriteRight
from holdfast.store.store import Store
from tests.simulation.breaking import by_name, nothing, replace, rewrite
from tests.simulation.broken_batches import BUILDS_OF_BATCHES
from tests.simulation.broken_divisions import BUILDS_OF_DIVISIONS
from tests.simulation.broken_hosts import BUILDS_OF_HOSTS, HOSTS_SHOWN_BY
from tests.simulation.broken_logins import BUILDS_OF_LOGINS
from tests.simulation.broken_operations import BUILDS_OF_OPERATIONS
from tests.simulation.broken_promises import (
    BUILDS_OF_PROMISES,
    a_browser_may_have_any_number_of_names,
    a_client_may_ask_without_end,
    acks_of_former_clients_count,
)
from tests.simulation.broken_refusals import BUILDS_OF_REFUSALS
from tests.simulation.broken_shards import BUILDS_OF_SHARDS
from tests.simulation.broken_upgrades import BUILDS_OF_UPGRADES


@contextmanager
def damaged(name: str) -> Iterator[None]:
    """Let every server that is started meanwhile be broken in this way."""
    with ExitStack() as stack:
        ALL_BUILDS[name](stack)
        yield


def no_server_falls_silent(stack: ExitStack) -> None:
    replace(stack, Lease, "may_speak", lambda _: True)


def any_confirmed_raise_ends_a_silence(stack: ExitStack) -> None:
    """Also one that was sent before the silence began."""
    raised = Lease.raised

    def hastily(self: Lease, sent_at: float) -> None:
        raised(self, max(sent_at, self._silent_since))

    replace(stack, Lease, "raised", hastily)


def the_lease_stops_with_the_machine(stack: ExitStack) -> None:
    def monotonic() -> Callable[[], float]:
        return partial(time.clock_gettime, time.CLOCK_MONOTONIC)

    replace(stack, storage, "boot_clock", monotonic)


def a_lease_counts_from_the_answer(stack: ExitStack) -> None:
    """And not from the moment when its raise was sent."""
    raised = Lease.raised

    def later(self: Lease, _: float) -> None:
        raised(self, self.clock())

    replace(stack, Lease, "raised", later)


def a_raise_counts_without_a_replica(stack: ExitStack) -> None:
    """Nobody is asked whether one has taken the primary's place."""

    async def believe(_: LeaseKeeper) -> bool:
        return True

    replace(stack, LeaseKeeper, "_is_primary", believe)


def replicas_confirm_what_they_had(stack: ExitStack) -> None:
    """They get nothing new when the store refuses a raise."""
    attempt = Reader.attempt

    async def unchanged(self: Reader, *commands: Any) -> list[Any]:
        return await attempt(self, *(("PING",) if "PUBLISH" in each else each for each in commands))

    replace(stack, Reader, "attempt", unchanged)


def a_store_is_taken_back_from_any_epoch(stack: ExitStack) -> None:
    """Also from that of a standby, which has accepted what the former server does not know."""
    rewrite(stack, "(ARGV[17] == '1' and holder == ARGV[10])", "ARGV[17] == '1'")


def who_never_spoke_replaces_others(stack: ExitStack) -> None:
    """A standby that has opened a former primary takes the store from the server that lives."""

    def all_known(self: WriteRight) -> list[str]:
        return [*self._former, self.epoch]

    replace(stack, WriteRight, "_known", all_known)


def rivals_wait_too_short(stack: ExitStack) -> None:
    replace(stack, lease, "LEASE_S", 1.0)


def rivals_do_not_wait(stack: ExitStack) -> None:
    rewrite(stack, "if held ~= unraised then", "if false then")


def rivals_may_write(stack: ExitStack) -> None:
    """The fence does not check the epoch, and raising the lease neither."""
    rewrite(stack, "if string.sub(before, 1, #process) ~= process then", "if false then")
    rewrite(stack, "return epoch or ''", "return ARGV[1]")


def what_was_unanswered_is_not_repeated(stack: ExitStack) -> None:
    """A link that is restored forgets the calls on its former connection."""

    def forget(self: StoreLink) -> list[Any]:
        lost = [*self._sent]
        self._sent.clear()
        for call in lost:
            self._report(call.done, PersistOutcome.KEPT)
        return []

    replace(stack, StoreLink, "_to_be_repeated", forget)


def publishers_are_answered_before_the_store(stack: ExitStack) -> None:
    keep = Store.keep

    def hasty(
        self: Store, message: Any, keys: Any, done: Callable[[PersistOutcome], None], *rest: Any
    ) -> None:
        keep(self, message, keys, lambda _: None, *rest)
        self._loop.call_soon(done, PersistOutcome.KEPT)

    replace(stack, Store, "keep", hasty)


def subscribers_are_not_stored(stack: ExitStack) -> None:
    replace(stack, Store, "save", nothing)


def acks_do_not_reach_the_store(stack: ExitStack) -> None:
    replace(stack, Store, "settle", nothing)


def keys_are_ignored(stack: ExitStack) -> None:
    number = count()

    def always_new(session: Any, given: str) -> PublishKey:
        return key_of(session, f"{next(number)} {given}")

    for place in (qos, incoming):
        replace(stack, place, "key_of", always_new)


def keys_are_forgotten_at_a_restart(stack: ExitStack) -> None:
    def in_this_life(session: Any, given: str) -> PublishKey:
        return key_of(session, f"{_life()} {given}")

    for place in (qos, incoming):
        replace(stack, place, "key_of", in_this_life)


def bodies_go_with_their_first_entry(stack: ExitStack) -> None:
    rewrite(stack, "if redis.call('EXISTS', receivers) == 0 then", "if true then")


def what_returns_comes_reversed(stack: ExitStack) -> None:
    replace(stack, in_flight, "by_place", lambda entry: -entry.place)


BUILDS = by_name(
    no_server_falls_silent,
    any_confirmed_raise_ends_a_silence,
    a_lease_counts_from_the_answer,
    a_raise_counts_without_a_replica,
    replicas_confirm_what_they_had,
    a_store_is_taken_back_from_any_epoch,
    who_never_spoke_replaces_others,
    the_lease_stops_with_the_machine,
    rivals_wait_too_short,
    rivals_do_not_wait,
    rivals_may_write,
    what_was_unanswered_is_not_repeated,
    publishers_are_answered_before_the_store,
    subscribers_are_not_stored,
    acks_do_not_reach_the_store,
    keys_are_ignored,
    keys_are_forgotten_at_a_restart,
    bodies_go_with_their_first_entry,
    what_returns_comes_reversed,
    acks_of_former_clients_count,
    a_browser_may_have_any_number_of_names,
    a_client_may_ask_without_end,
)
# Those that need several shards, and all.
WITH_SHARDS = {**BUILDS_OF_SHARDS, **BUILDS_OF_PROMISES, **BUILDS_OF_REFUSALS}
ALL_BUILDS = {
    **BUILDS,
    **BUILDS_OF_OPERATIONS,
    **BUILDS_OF_UPGRADES,
    **BUILDS_OF_LOGINS,
    **BUILDS_OF_BATCHES,
    **WITH_SHARDS,
    **BUILDS_OF_DIVISIONS,
    **BUILDS_OF_HOSTS,
}

# Who notices others; where nothing is said, anybody does.
SHOWN_TO: dict[str, str] = {
    **dict.fromkeys(BUILDS_OF_REFUSALS, "refuses"),
    **dict.fromkeys(BUILDS_OF_OPERATIONS, "operates"),
    **dict.fromkeys(BUILDS_OF_UPGRADES, "upgrades,asks"),
    **dict.fromkeys(BUILDS_OF_LOGINS, "logs_in"),
    **dict.fromkeys(BUILDS_OF_BATCHES, "batches"),
    # Publishers and receivers suffice.
    **dict.fromkeys(BUILDS_OF_HOSTS, "none"),
    "histories_are_read_without_what_comes_meanwhile": "reads",
    "homes_answer_ahead_of_their_logs": "reads",
    "a_frozen_shard_blocks_agreement": "meets",
    "changes_of_presence_are_not_told": "meets",
    "members_of_others_never_leave": "meets",
    "who_starts_does_not_ask_who_is_there": "meets",
    "requests_end_without_others": "asks",
    "each_reply_counts": "asks",
    "who_was_asked_is_forgotten_at_a_restart": "asks",
    "lost_work_does_not_return": "works",
    "lost_work_returns_as_new": "works",
    "work_that_others_have_done_stays": "works",
    "refusals_stay_at_their_shard": "works",
    "who_starts_does_not_ask_who_has_work": "works",
    "work_is_taken_behind_a_loss_of_contact": "works,erases",
    "copies_are_counted_twice_if_a_restart_fails": "works",
    "erasures_stay_at_their_home": "erases",
    "lost_erasures_hide_subscriptions": "erases",
    "readonly_topics_take_every_message": "erases",
    "topics_end_without_others": "erases",
    "subscriptions_to_topics_are_not_told": "erases",
    "who_may_answer_is_not_divided": "asks",
    "requests_are_left_behind": "asks",
    "given_requests_are_forwarded_too": "asks",
}

# What shows below supervisors alone.
BELOW_SUPERVISORS = frozenset(
    {"a_store_is_taken_back_from_any_epoch", "who_never_spoke_replaces_others"}
)

# Which stores show others; where nothing is said, any does.
SHOWN_AT: dict[str, str] = {
    "a_raise_counts_without_a_replica": "pair",
    "replicas_confirm_what_they_had": "pair",
    "who_never_spoke_replaces_others": "pair",
    "passing_messages_need_the_store": "own",
    "histories_are_read_without_what_comes_meanwhile": "own",
}

# What has to go wrong for others to show soon; where nothing is said, anything shows it.
SHOWN_BY: dict[str, str] = {
    **HOSTS_SHOWN_BY,
    "letters_are_lost_at_a_restart": "restart,kill_server",
    "replays_end_with_their_server": "kill_server",
    "holds_end_with_their_server": "kill_server",
    "holds_of_channels_end_with_their_server": "kill_server",
    "renewed_logins_end_with_their_server": "kill_server",
    "ended_logins_prove_who_asks": "kill_server",
    "logins_never_end": "kill_server",
    "who_was_missed_gets_everything_at_once": "part_from_clients",
    "a_retry_forgets_its_clock": "restart",
    "any_confirmed_raise_ends_a_silence": "suspend_server_in_raise,freeze_server,part_from_store",
    "a_lease_counts_from_the_answer": "suspend_server_in_raise,freeze_server,part_from_store",
    "a_raise_counts_without_a_replica": "cut_off_server_with_primary",
    "replicas_confirm_what_they_had": "fill_disk_and_cut_off_server_with_primary",
    "a_store_is_taken_back_from_any_epoch": "restart_and_freeze",
    "who_never_spoke_replaces_others": "restart_and_freeze,restart_and_kill,fail_over,"
    "cut_off_server_with_primary",
    "rivals_wait_too_short": "part_from_store",
    "passing_messages_never_cross": "restart,set_clock",
    "passing_messages_swap_places": "restart,set_clock",
    "passing_messages_need_the_store": "fill_store",
    "logs_do_not_wait_for_links": "part_from_server,hold_connection",
    "links_do_not_wait_for_logs": "part_from_server,hold_connection",
    "histories_are_read_without_what_comes_meanwhile": "fill_store,slow_network",
    "who_starts_does_not_ask_who_is_there": "kill_server,kill_server_in_call",
    "who_was_asked_is_forgotten_at_a_restart": "kill_server,kill_server_in_call",
    "lost_work_does_not_return": "kill_server,freeze_server",
    "lost_work_returns_as_new": "kill_server,freeze_server",
    "who_starts_does_not_ask_who_has_work": "restart",
    "work_is_taken_behind_a_loss_of_contact": "part_from_store",
    "copies_are_counted_twice_if_a_restart_fails": "restart_in_vain",
    "lost_erasures_hide_subscriptions": "fill_store,fill_disk",
    "ids_of_killed_servers_are_given_again": "crash_server_often,set_clock",
    "frames_are_numbered_by_the_store": "cut_connection,crash_store_soon,freeze_server_in_call",
    "readers_begin_with_the_newest_incarnation": "kill_server,freeze_server,part_from_store",
    "subscribers_do_not_wait_for_others": "hold_reading,kill_server,terminate_server",
    "a_shard_is_left_out_at_the_first_look": "hold_reading,kill_server,terminate_server",
    "a_frozen_shard_blocks_agreement": "freeze_server_for_long",
    "what_the_store_refuses_counts_as_taken": "fill_store,fill_disk,crash_store_soon,kill_server",
    "places_are_not_compared": "fill_store,fill_disk",
    "logs_are_trimmed_behind_the_fastest": "kill_server,freeze_server,part_from_store",
    "restarts_forget_sessions_without_names": "restart",
    "sessions_of_absent_shards_are_unknown": "freeze_server,kill_server,part_from_server",
    "a_broken_link_repeats_everything": "kill_server_in_call,part_from_server",
}


def _life() -> str:
    """Tell the process that runs now from others."""
    return str(os.getpid())
