"""Writes all that shards have into another generation, as it is to be divided."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.delivery.basics.ignoring import ignore
from holdfast.offline.division import Places
from holdfast.offline.moving_work import left_by, mark_at_queue
from holdfast.offline.shard_side import Side, Writer
from holdfast.store.format import records
from holdfast.store.format.records import UNREADABLE


class Moving:
    """What one move reads and writes.

    Args:
        sources: All shards in the current generation.
        targets: All shards in the next one, whose keys there are empty.
        advance: Called with numbers of sessions, messages, letters and keys that are done.
    """

    def __init__(
        self,
        sources: Sequence[Side],
        targets: Sequence[Side],
        places: Places,
        *,
        most_keys: int,
        advance: Callable[[int], None] = ignore,
        is_dry: bool = False,
    ) -> None:
        self.sources = sources
        self.writers = [Writer(each, is_dry=is_dry) for each in targets]
        self.places = places
        self.most_keys = most_keys
        self.advance = advance
        # By shard, what it gets.
        self.sessions: Counter[int] = Counter()
        self.entries: Counter[int] = Counter()
        self.letters: Counter[int] = Counter()
        # How many bodies have been read: a message in several shards counts in each.
        self.messages = 0
        # How often bodies are written: one whose receivers get to several shards is in each.
        self.copies = 0

    async def flush(self) -> None:
        """Write everything now."""
        for writer in self.writers:
            await writer.flush()

    async def write_all(self, kind: str, *words: bytes | str | int) -> None:
        """Write to a key of this kind in all shards: the command, then what follows the key."""
        command, *rest = words
        for writer in self.writers:
            await writer.write(command, getattr(writer.keys, kind), *rest)


async def move_sessions(moving: Moving) -> None:
    """Move sessions, with their last batches."""
    for source in moving.sources:
        async for page in source.pages(source.keys.sessions):
            names = list(page)
            batches = await source.store.ask("HMGET", source.keys.handed, *names)
            for name, batch in zip(names, batches, strict=True):
                shard = _place_of_session(moving.places, source, name, page[name])
                writer = moving.writers[shard]
                await writer.write("HSET", writer.keys.sessions, name, page[name])
                if batch is not None:
                    await writer.write("HSET", writer.keys.handed, name, batch)
                moving.sessions[shard] += 1
            moving.advance(len(page))


def _place_of_session(places: Places, source: Side, name: bytes, record: bytes) -> int:
    try:
        return places.of_session(records.unpack_session(name.decode(), record))
    except UNREADABLE:
        return places.of_receiver(name.decode(), source.shard)


async def move_messages(moving: Moving) -> None:
    """Move messages to the shards in which somebody waits for them, with marks of entries."""
    for source in moving.sources:
        receivers: set[str] = set()
        # By session, ids of work that it leaves to others.
        returned: dict[str, set[bytes]] = {}
        async for page in source.pages(source.keys.bodies):
            found = await source.store.ask_all(
                *(("SMEMBERS", source.keys.receivers(int(id))) for id in page)
            )
            for (name, record), its in zip(page.items(), found, strict=True):
                id, receiver = int(name), records.receiver_in(record)
                names = [each.decode() for each in (its if receiver is None else (receiver,))]
                names = await _return_work(moving, source, id, record, names, returned)
                receivers.update(names)
                await _move_message(moving, source, id, records.with_set(record), names)
            moving.messages += len(page)
            moving.advance(len(page))
        await _move_marks(moving, source, sorted(receivers), returned)


async def _return_work(
    moving: Moving,
    source: Side,
    id: int,
    body: bytes,
    receivers: Sequence[str],
    returned: dict[str, set[bytes]],
) -> list[str]:
    """Let work that sessions leave wait in its queue. Returns who then has the message."""
    left = left_by(moving.places, source.shard, id, body, receivers)
    if left is None:
        return [*receivers]
    writer = moving.writers[moving.places.of_receiver(left.queue, source.shard)]
    for session in left.sessions:
        returned.setdefault(session, set()).add(b"%d" % id)
        mark = await mark_at_queue(source, session, id)
        if mark:
            await writer.write("HSET", writer.keys.marks(left.queue), id, mark)
    return [left.queue, *(each for each in receivers if each not in left.sessions)]


async def _move_message(
    moving: Moving, source: Side, id: int, body: bytes, receivers: Sequence[str]
) -> None:
    by_shard: dict[int, list[str]] = {}
    for receiver in receivers:
        shard = moving.places.of_receiver(receiver, source.shard)
        by_shard.setdefault(shard, []).append(receiver)
    for shard, names in by_shard.items():
        writer = moving.writers[shard]
        await writer.write("HSETNX", writer.keys.bodies, id, body)
        await writer.write("SADD", writer.keys.receivers(id), *names)
        moving.entries[shard] += len(names)
        moving.copies += 1


async def _move_marks(
    moving: Moving,
    source: Side,
    receivers: Sequence[str],
    returned: Mapping[str, Collection[bytes]],
) -> None:
    for receiver in receivers:
        key, gone = source.keys.marks(receiver), returned.get(receiver, ())
        async for page in source.pages(key):
            shard = moving.places.of_receiver(receiver, source.shard)
            writer = moving.writers[shard]
            words = [word for pair in page.items() if pair[0] not in gone for word in pair]
            if words:
                await writer.write("HSET", writer.keys.marks(receiver), *words)


async def move_topics(moving: Moving) -> None:
    """Move topics to the homes of their channels."""
    for source in moving.sources:
        async for page in source.pages(source.keys.topics):
            for name, record in page.items():
                writer = moving.writers[moving.places.of_channel(name.decode())]
                await writer.write("HSET", writer.keys.topics, name, record)


class Step(NamedTuple):
    """One step of a move."""

    # The kinds of keys that it writes, and what it does.
    kinds: frozenset[str]
    run: Callable[[Moving], Awaitable[None]]


def step(kinds: str, run: Callable[[Moving], Awaitable[None]]) -> Step:
    """Return a step that writes these kinds of keys."""
    return Step(frozenset(kinds.split()), run)


MESSAGES: Final = (
    # First, because others go where sessions are.
    step("sessions handed", move_sessions),
    step("bodies receivers marks", move_messages),
    step("topics", move_topics),
)


async def size_of(sources: Sequence[Side]) -> int:
    """Return how much there is of what takes time to move."""
    kinds = ("sessions", "bodies", "dead", "keyed")
    found = [
        await source.store.ask("HLEN", getattr(source.keys, kind))
        for source in sources
        for kind in kinds
    ]
    return sum(found)
