"""How a deployment is divided otherwise: its shards enter a new generation of keys.

The new generation is written beside the current one, which stays as it is. Then `prepared` notes in
each shard that it is complete. The first shard enters it in one step, and from then on it is the
current one: other shards follow, at the latest when their servers start.
"""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from holdfast.store.format.deployment import UNDIVIDED, Division
from holdfast.store.format.keys import NO_GENERATION, RedisKeys
from holdfast.store.format.scripts import source_of
from holdfast.store.links.reader import evaluation
from holdfast.store.links.resp import Word
from holdfast.store.links.script import Script

DIVIDE: Final = Script("divide", source_of("divide"))
# The first words of keys that belong to no generation.
_OF_ALL: Final = frozenset(
    {
        *("meta", "audit", "figures", "log", "facts", "inbox"),
        *("hosts", "lakes", "journal", "notes", "pipeline"),
    }
)


# Runs a command in a store; raises `StoreUnavailable`.
Ask = Callable[..., Awaitable[object]]


class Prepared(NamedTuple):
    """What a shard needs in its next generation besides its keys."""

    generation: int
    # The time of the store's clock, at least, and a number below the ids of new messages.
    clock: int
    stamped: int


def prepare(keys: RedisKeys, found: Prepared) -> tuple[Word, ...]:
    """Return the command that notes that a shard has all of its next generation."""
    text = f"{found.generation} {found.clock} {found.stamped:019d}"
    return ("HSET", keys.meta, "next", text)


def unprepare(keys: RedisKeys) -> tuple[Word, ...]:
    """Return the command that revokes the note."""
    return ("HDEL", keys.meta, "next")


async def enter_first(ask: Ask, keys: RedisKeys, division: Division, epoch: str) -> None:
    """Let the first shard enter the generation of these keys, which decides.

    Raises `StoreUnavailable`; its text has EPOCH if another process has opened the store.
    """
    await ask(*evaluation(DIVIDE, _keys(keys), [keys.generation, epoch, 1, *division]))


async def follow(ask: Ask, keys: RedisKeys, epoch: str = "") -> None:
    """Let another shard enter the generation of the first one. Raises `StoreUnavailable`.

    Args:
        epoch: The one that must be in force; empty for any.
    """
    await ask(*evaluation(DIVIDE, _keys(keys), [keys.generation, epoch, 0, *UNDIVIDED]))


def merged_audit(keys: RedisKeys) -> str:
    """Return the key of the audit that the first shard gets with this generation."""
    return f"{keys.prefix}audit"


def generation_of(keys: RedisKeys, key: str) -> int | None:
    """Return the generation of a key of this shard; None if it belongs to all."""
    rest = key.removeprefix(keys.tag)
    first, _, _ = rest.partition(":")
    if first[:1] == "g" and first[1:].isdecimal():
        return int(first[1:])
    return None if first in _OF_ALL else NO_GENERATION


def _keys(keys: RedisKeys) -> list[Word]:
    names = (keys.meta, keys.log, keys.facts, keys.links, keys.inbox, keys.audit)
    return [*names, merged_audit(keys)]
