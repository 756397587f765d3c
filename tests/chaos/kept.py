"""What the store has at one moment, read without the server."""

from pathlib import Path
from typing import Any

import orjson
from redis.asyncio import Redis

from holdfast.store.format.keys import RedisKeys, is_history
from holdfast.store.format.letter_records import unpack_letter
from holdfast.store.format.records import unpack_batch, unpack_entry

_KEYS = RedisKeys("holdfast")

Record = dict[str, Any]


# Atomically for every entry: its session, message, body, mark, and its session's last batch.
_LOOK = """
local found, bodies = {}, redis.call('HGETALL', KEYS[1])
for i = 1, #bodies, 2 do
    local body = bodies[i + 1]
    local ends = string.byte(body) == 64 and string.find(body, '\\n', 14, true)
    local single = ends and string.sub(body, 14, ends - 1)
    for _, key in ipairs(single and { single } or redis.call('SMEMBERS', ARGV[1] .. bodies[i])) do
        local mark = redis.call('HGET', ARGV[2] .. key, bodies[i]) or ''
        local batch = redis.call('HGET', KEYS[2], key) or ''
        found[#found + 1] = { key, bodies[i], body, mark, batch }
    end
end
return { found, redis.call('HGETALL', KEYS[3]) }
"""


async def look(socket: Path, keys: RedisKeys = _KEYS) -> dict[str, Any]:
    """The fields of a scan: entries that wait, and dead letters."""
    redis = Redis(unix_socket_path=str(socket))
    names = (keys.bodies, keys.handed, keys.dead)
    try:
        receivers, marks = f"{keys.prefix}to:", keys.marks("")
        entries, letters = await redis.eval(_LOOK, len(names), *names, receivers, marks)
    finally:
        await redis.aclose()
    pending: dict[str, list[Record]] = {}
    for key, id, body, mark, batch in sorted(entries):
        if is_history(key.decode()):
            continue
        entry = _entry(int(id), body, mark, batch)
        pending.setdefault(key.decode(), []).append(entry)
    dead = zip(letters[::2], letters[1::2], strict=True)
    return {"pending": pending, "dead": [_dead(letter.decode(), record) for letter, record in dead]}


def _entry(id: int, body: bytes, mark: bytes, batch: bytes) -> Record:
    found, generation = unpack_entry(id, mark)
    was_handed = not mark and batch and id in unpack_batch(batch).ids
    tag = tag_of(body.rpartition(b"\n")[2])
    return {
        "tag": tag,
        "generation": max(generation, 0),
        "attempts": 1 if was_handed else found.attempts,
    }


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
    """The tag of the message in this event."""
    data = orjson.loads(wire).get("data")
    tag = data.get("tag") if isinstance(data, dict) else None
    return tag if isinstance(tag, str) else ""
