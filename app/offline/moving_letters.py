"""Moves what operators see, such as dead letters and remarks; and publish keys."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from holdfast.delivery.guard.holds import GUARD
from holdfast.delivery.messages.publish_key import KEY_LIFE_S
from holdfast.offline.moving import Moving, step
from holdfast.offline.shard_side import Side
from holdfast.store.format import letter_records, records
from holdfast.store.format.records import UNREADABLE
from holdfast.store.links.resp import Word
from holdfast.store.opening.dividing import merged_audit
from holdfast.store.remarks import MOST as MOST_REMARKS
from holdfast.store.replays.job_records import Job, pack_job, unpack_job

# Of a replay, how many letters the store has counted.
_COUNTED: Final = b"replayed"


async def move_letters(moving: Moving) -> None:
    """Move dead letters, and list them in all indexes."""
    prints: Counter[tuple[int, str]] = Counter()
    for source in moving.sources:
        async for page in source.pages(source.keys.dead):
            for id, record in page.items():
                await _move_letter(moving, source, id.decode(), record, prints)
            moving.advance(len(page))
    for (shard, fingerprint), count in prints.items():
        writer = moving.writers[shard]
        await writer.write("ZADD", writer.keys.prints, count, fingerprint)


async def _move_letter(
    moving: Moving, source: Side, id: str, record: bytes, prints: Counter[tuple[int, str]]
) -> None:
    try:
        letter = letter_records.unpack_letter(record)
        shard = moving.places.of_receiver(letter.key, source.shard)
    except UNREADABLE:
        # It stays in the store, as servers leave it.
        shard = moving.places.of_source(source.shard)
        writer = moving.writers[shard]
        await writer.write("HSET", writer.keys.dead, id, record)
        await writer.write("ZADD", writer.keys.all_dead, 0, id)
        return
    writer = moving.writers[shard]
    await writer.write("HSET", writer.keys.dead, id, record)
    for index in writer.keys.indexes(letter):
        await writer.write("ZADD", index, 0, id)
    prints[shard, letter.fingerprint] += 1
    moving.letters[shard] += 1


class _Key(NamedTuple):
    """A publish key: when it was stored, by the latest clock, and the id of its message."""

    time: int
    id: int
    key: bytes


async def move_keys(moving: Moving) -> None:
    """Give all publish keys to all shards, with times by the latest clock."""
    latest = max([await clock_of(source) for source in moving.sources])
    newest: dict[bytes, _Key] = {}
    for source in moving.sources:
        ahead = latest - await clock_of(source)
        apart = await source.whole(source.keys.keyed_times)
        former: bytes = await source.store.ask("HGET", source.keys.meta, "former") or b"0"
        async for page in source.pages(source.keys.keyed):
            for key, value in page.items():
                id, _, time = value.partition(b":")
                stored = int(time or apart.get(key, former)) + ahead
                known = _Key(stored, int(id), key)
                newest[key] = max(known, newest.get(key, known))
            moving.advance(len(page))
    living = sorted(each for each in newest.values() if each.time + KEY_LIFE_S >= latest)
    for each in living[-moving.most_keys :]:
        await moving.write_all("keyed", "HSET", each.key, f"{each.id}:{each.time}")
        await moving.write_all("keyed_order", "RPUSH", b"%d:%b" % (each.id, each.key))


async def clock_of(source: Side) -> int:
    """Return the time of the store's clock."""
    return int(await source.store.ask("HGET", source.keys.meta, "clock") or 0)


async def move_holds(moving: Moving) -> None:
    """Give the holds of operators to all shards, and each hold of the guard to one."""
    for source in reversed(moving.sources):
        for channel, record in (await source.whole(source.keys.held)).items():
            if _is_of_guard(record):
                writer = moving.writers[moving.places.of_source(source.shard)]
                await writer.write("HSETNX", writer.keys.held, channel, record)
            else:
                await moving.write_all("held", "HSET", channel, record)


def _is_of_guard(record: bytes) -> bool:
    try:
        return records.unpack_held(record).who == GUARD
    except UNREADABLE:
        return False


async def move_remarks(moving: Moving) -> None:
    """Give the latest remark on each group of letters to all shards."""
    latest: dict[bytes, tuple[float, bytes]] = {}
    for source in moving.sources:
        if not (found := await source.whole(source.keys.remarks)):
            continue
        times = await source.store.ask_all(
            *(("ZSCORE", source.keys.remarked, fingerprint) for fingerprint in found)
        )
        for (fingerprint, record), time in zip(found.items(), times, strict=True):
            known = (float(time or 0), record)
            latest[fingerprint] = max(known, latest.get(fingerprint, known))
    ordered = sorted((at, fingerprint, record) for fingerprint, (at, record) in latest.items())
    for at, fingerprint, record in ordered[-MOST_REMARKS:]:
        await moving.write_all("remarks", "HSET", fingerprint, record)
        await moving.write_all("remarked", "ZADD", f"{at:.0f}", fingerprint)


async def move_replays(moving: Moving) -> None:
    """Move replays; what a shard that ends has of one is added in the first one."""
    parts: dict[tuple[int, str], list[Mapping[bytes, bytes]]] = {}
    for source in moving.sources:
        for job in await replays_of(source):
            fields = await source.whole(source.keys.replay(job))
            parts.setdefault((moving.places.of_source(source.shard), job), []).append(fields)
    for (shard, job), its in parts.items():
        writer = moving.writers[shard]
        words = _added(its)
        if words:
            await writer.write("HSET", writer.keys.replay(job), *words)
        await writer.write("ZADD", writer.keys.replays, 0, job)


async def replays_of(source: Side) -> list[str]:
    """Return the ids of the replays that a shard has."""
    found = await source.store.ask("ZRANGE", source.keys.replays, 0, -1)
    return [job.decode() for job in found]


def _added(parts: list[Mapping[bytes, bytes]]) -> list[Word]:
    """Return the fields of a replay in turn with their values: the sum of these parts."""
    words: list[Word] = [word for pair in parts[0].items() for word in pair]
    if len(parts) > 1:
        try:
            job, *more = map(unpack_job, parts)
        except UNREADABLE:
            return words
        for each in more:
            _add(job, each)
        # The later value of a field replaces the first one.
        words += [word for pair in pack_job(job).items() for word in pair]
        words += [_COUNTED, sum(int(part.get(_COUNTED, 0)) for part in parts)]
    return words


def _add(job: Job, other: Job) -> None:
    job.begun = max(job.until, other.until)
    job.total += other.total
    job.acked += other.acked
    job.failed += other.failed
    for name in ("channels", "receivers", "away", "skipped"):
        merged = Counter(getattr(job, name)) + Counter(getattr(other, name))
        setattr(job, name, dict(merged))


async def move_audit(moving: Moving) -> None:
    """Add the audit of shards that end to the audit of the first one."""
    if len(moving.sources) <= moving.places.count:
        return
    entries: list[tuple[int, int, list[bytes]]] = []
    for source in moving.sources:
        if moving.places.of_source(source.shard) == 0:
            found = await source.store.ask("XRANGE", source.keys.audit, "-", "+")
            entries += [(*map(int, id.split(b"-")), words) for id, words in found]
    writer = moving.writers[0]
    last = (0, 0)
    for time, number, words in sorted(entries):
        last = max((time, number), (last[0], last[1] + 1))
        key = merged_audit(writer.keys)
        await writer.write("XADD", key, f"{last[0]}-{last[1]}", *words)


LETTERS: Final = (
    step("dead prints all_dead letters_by", move_letters),
    step("keyed keyed_order", move_keys),
    step("held", move_holds),
    step("remarks remarked", move_remarks),
    step("replays replay", move_replays),
    step("audit", move_audit),
)
