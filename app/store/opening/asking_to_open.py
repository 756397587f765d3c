"""How a process opens a store."""

import secrets
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from holdfast.store.format.deployment import UNDIVIDED, Deployment, Division
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.opening.all_shards import Gate


def random_seed() -> str:
    """Return random text, with which the epochs of a store begin."""
    return secrets.token_hex(8)


OnWaiting = Callable[[], Awaitable[None]]


class ShardElsewhere(StoreUnavailable):
    """Another host has this shard, although it seemed to have none."""


class Claimed(NamedTuple):
    """Why this host may open a shard: no process has it, or one of these."""

    # The epoch and lease of a process that must be silent.
    unraised: str = ""
    # The epoch of a process that offers the shard to this host.
    offered: str = ""


class Opening(NamedTuple):
    """How this process opens the store."""

    # The name of this node, for people who inspect the store.
    node: str
    # For a store that has none, as the seed of its epochs is.
    deployment: Deployment
    # Names a lock that this process holds while it lives; empty if that lock keeps all others away
    # from the store. Otherwise the process has a lease.
    lock: str = ""
    # Whether to wait as long as another process has the store.
    is_standby: bool = False
    # Called when it begins to wait.
    on_waiting: OnWaiting | None = None
    # None if there is only one shard, or if no other server can have any.
    gate: Gate | None = None
    # How the deployment is divided, which the first of several shards keeps.
    division: Division = UNDIVIDED
    seed: Callable[[], str] = random_seed
    # The name of this host, and why it may open the store; none of both without a list of hosts.
    host: str = ""
    claimed: Claimed | None = None
