"""Calls by which a process gets a store, and lets it go."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from holdfast.store.format.deployment import UNDIVIDED, Deployment, Division
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT, OLDEST_LAYOUT
from holdfast.store.format.scripts import FINISH, OPEN, RELEASE, ScriptCall

if TYPE_CHECKING:
    from holdfast.store.links.resp import Word


def open_store(
    keys: RedisKeys,
    *,
    seed: str,
    node: str,
    nonce: str,
    deployment: Deployment,
    instead_of: Collection[str] = (),
    lock: str = "",
    unraised: str = "",
    above: int = 0,
    division: Division = UNDIVIDED,
    stamp: int | None = None,
    takes_back: bool = False,
    host: str = "",
    offered: str = "",
) -> ScriptCall:
    """Become the only process that may write; instead of one with such an epoch, if given.

    Args:
        lock: Names a lock that this process holds while it lives; empty if that lock keeps all
            others away from the store.
        unraised: The epoch and lease of another process that has not raised it for long enough.
        above: A number below the epoch's.
        division: How the deployment is divided, for a store that has none.
        stamp: An id of now, if this process gives any.
        takes_back: Whether another process with this lock, which has ended, may be replaced, too.
        host: The name of this host; empty if the deployment has no list of hosts.
        offered: The epoch whose holder offers the store to this host; empty without an offer.
    """
    args: list[Word] = [LAYOUT, OLDEST_LAYOUT, seed, node, nonce, " ".join(instead_of)]
    name = deployment.name if deployment.is_known else ""
    args += (name, deployment.name, deployment.key.hex(), lock, unraised, above, keys.generation)
    args += (*division, "" if stamp is None else f"{stamp:019d}", int(takes_back))
    args += (host, offered)
    return ScriptCall(OPEN, [keys.meta, keys.handed, *keys.unknown_to_former], args)


def finish_upgrade(keys: RedisKeys) -> ScriptCall:
    """Put the store into the newest layout."""
    return ScriptCall(FINISH, [keys.meta], [LAYOUT])


def release(keys: RedisKeys) -> ScriptCall:
    """End the lease of this process, which speaks and writes no more."""
    return ScriptCall(RELEASE, [keys.meta], [])
