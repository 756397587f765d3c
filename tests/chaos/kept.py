"""What the store has at one moment, read past the server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from redis.asyncio import Redis

from app.store.keys import Keys
from app.store.records import unpack_entry, unpack_letter

_KEYS = Keys("holdfast")

Record = dict[str, Any]


async def look(socket: Path) -> dict[str, Any]:
    """The fields of a scan: what waits for whom, and what is dead."""
    redis = Redis(unix_socket_path=str(socket))
    try:
        prefix = _KEYS.queue("")
        queues = [key.decode() async for key in redis.scan_iter(match=f"{prefix}*", count=1000)]
        async with redis.pipeline(transaction=True) as moment:
            for key in (*queues, _KEYS.bodies, _KEYS.dead):
                moment.execute_command("HGETALL", key)
            *entries, bodies, dead = await moment.execute()
    finally:
        await redis.aclose()
    return {
        "pending": {
            queue.removeprefix(prefix): _pending(found, bodies)
            for queue, found in zip(queues, entries, strict=True)
        },
        "dead": [_dead(letter.decode(), record) for letter, record in dead.items()],
    }


def _pending(entries: Mapping[bytes, bytes], bodies: Mapping[bytes, bytes]) -> list[Record]:
    return [_entry(int(id), entry, bodies.get(id)) for id, entry in sorted(entries.items())]


def _entry(id: int, entry: bytes, body: bytes | None) -> Record:
    mark, generation = unpack_entry(id, entry)
    # An entry whose body is gone is nobody's message; then it is missing.
    tag = "" if body is None else tag_of(body.partition(b"\n")[2])
    return {"tag": tag, "generation": generation, "attempts": mark.attempts}


def _dead(letter: str, record: bytes) -> Record:
    found = unpack_letter(record)
    return {
        "letter": letter,
        "subscriber": found.key,
        "tag": tag_of(found.wire),
        "generation": found.generation,
        "code": found.code,
        "attempts": found.attempt_count,
        "state": found.state.value,
    }


def tag_of(wire: bytes) -> str:
    """Which message this event is."""
    data = orjson.loads(wire).get("data")
    tag = data.get("tag") if isinstance(data, dict) else None
    return tag if isinstance(tag, str) else ""
