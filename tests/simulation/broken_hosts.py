"""Hosts of several that are broken on purpose, to see that seeds find it."""

from contextlib import ExitStack

from holdfast import compose
from holdfast.compose.running_server import RunningServer
from holdfast.compose.storage import Storage
from holdfast.store.opening.lease import Lease
from holdfast.web.doors.leaving import Leaving
from holdfast.web.host_links.far_keeper import FarKeeper
from tests.simulation.breaking import by_name, nothing, replace, rewrite
from tests.simulation.small import set_limit


async def _nothing(*_: object, **__: object) -> None:
    """Instead of what should be done."""


def hosts_speak_after_their_leases(stack: ExitStack) -> None:
    set_limit(stack, "store.opening.lease", "SPEAK_S", 6.0)


def leases_of_hosts_count_from_the_answer(stack: ExitStack) -> None:
    raised = Lease.raised

    def later(self: Lease, _: float) -> None:
        raised(self, self.clock())

    replace(stack, Lease, "raised", later)


def shards_are_given_twice(stack: ExitStack) -> None:
    """Who has given a shard takes it back from the host that has opened it."""
    offer_to = Storage.offer_to

    async def in_vain(self: Storage, host: str) -> bool:
        await offer_to(self, host)
        return False

    replace(stack, Storage, "offer_to", in_vain)
    rewrite(stack, "(ARGV[17] == '1' and holder == ARGV[10])", "ARGV[17] == '1'")


def givers_go_on_speaking(stack: ExitStack) -> None:
    replace(stack, Leaving, "be_still", nothing)
    replace(stack, Lease, "leave", nothing)


def former_hosts_may_write(stack: ExitStack) -> None:
    """The fence does not check the epoch, and raising the lease neither."""
    rewrite(stack, "if string.sub(before, 1, #process) ~= process then", "if false then")
    rewrite(stack, "return epoch or ''", "return ARGV[1]")


def links_to_former_hosts_are_kept(stack: ExitStack) -> None:
    look = FarKeeper._look

    async def once(self: FarKeeper) -> bool:
        return False if self.host else await look(self)

    replace(stack, FarKeeper, "_look", once)


def workers_outlive_their_shards(stack: ExitStack) -> None:
    """A worker whose shard another host has goes on, and nobody else is started."""
    replace(stack, compose, "_stop_at_once", nothing)


def moves_end_sessions_without_names(stack: ExitStack) -> None:
    replace(stack, RunningServer, "_write_given", _nothing)


def moves_break_connections(stack: ExitStack) -> None:
    replace(stack, RunningServer, "hand_over", _nothing)


BUILDS_OF_HOSTS = by_name(
    hosts_speak_after_their_leases,
    leases_of_hosts_count_from_the_answer,
    shards_are_given_twice,
    givers_go_on_speaking,
    former_hosts_may_write,
    links_to_former_hosts_are_kept,
    workers_outlive_their_shards,
    moves_end_sessions_without_names,
    moves_break_connections,
)

_TAKEN_OVER = "freeze_host,part_from_store,suspend_server"
# What has to go wrong for each to show soon.
HOSTS_SHOWN_BY: dict[str, str] = {
    **dict.fromkeys(BUILDS_OF_HOSTS, _TAKEN_OVER),
    "leases_of_hosts_count_from_the_answer": "suspend_server_in_raise,freeze_host,part_from_store",
    "shards_are_given_twice": "drain_host",
    "givers_go_on_speaking": "drain_host",
    "links_to_former_hosts_are_kept": "drain_host",
    "moves_end_sessions_without_names": "drain_host",
    "moves_break_connections": "drain_host",
}
