"""A store with something of every kind: what a release writes, for the releases after it.

`python -m tests.store.stored_scene VERSION` describes the store of this release in
`tests/store/releases`; `make release` runs it.
"""

import sys
from pathlib import Path
from typing import Any

import orjson
from redis import Redis

from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.messages.former_attempts import FormerAttempts
from holdfast.delivery.messages.former_attempts import tried as moved
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.outcomes import Move
from holdfast.delivery.messages.trails import Attempt
from holdfast.delivery.topics.configured import TopicConfig, TopicRecord
from holdfast.store.format import scripts
from holdfast.store.format.publish_keys import KeyLimits
from tests.store.model import Room, opening
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, KEYS, batch, letter, message, session

RELEASES = Path(__file__).parent / "releases"
Stored = dict[str, list[Any]]


def furnish(room: Room) -> None:
    """Put everything into an empty store."""
    room.open()
    failed = Attempt(n=1, time=1_763_000_000_000, node="test", transport="websocket")
    records = [
        session("joe/1", subscriptions=["/orders/*"], batch=1, seq=1, timeout_s=60.0),
        session("ann/1", subscriptions=["/orders/new"], subscription_qos={"/orders/new": {}}),
    ]
    room.call(scripts.save(KEYS, records))
    rich = message(2, {"total": 7})
    rich.priority, rich.properties = 9, {"shop": "north"}
    rich.limit_life(60_000, is_forced=True)
    pairs = [
        (message(1), ["joe/1", "ann/1", "/orders/new"]),
        (rich, ["joe/1"]),
        (message(3), ["ann/1"]),
        (message(4, channel="/work"), ["work/0"]),
    ]
    room.call(scripts.keep(KEYS, pairs))
    keyed = [(message(5, key="key"), ["joe/1"])]
    room.call(scripts.keep_keyed(KEYS, keyed, KeyLimits(clock=7, most=9)))
    room.call(scripts.mark_batches(KEYS, {"joe/1": batch(1, number=1, seq=1)}))
    returned = Mark(BASE + 3, -4, 2, 3, 1, 2, (failed,))
    room.call(scripts.mark(KEYS, {"ann/1": {BASE + 3: returned}}))
    tried = moved(message(4, channel="/work"), FormerAttempts(2, 1, (failed,), True))
    room.call(scripts.move(KEYS, [Move(tried, "work/0", ["ann/1"], 1, 1)]))
    room.call(scripts.dead_letter(KEYS, [(letter(6, of=1), None)]))
    hold = ChannelHold(1_763_000_000_000, "a reason", "operator/ann", 1_763_000_060_000)
    room.call(scripts.save_channel_holds(KEYS, {"/orders/new": hold}))
    topics = {
        "/own": TopicRecord(TopicConfig(-1, True, HistoryDepth(3, 5000))),
        "/erased": TopicRecord(is_erased=True),
    }
    room.call(scripts.save_topics(KEYS, topics))


def stored(redis: Redis) -> Stored:
    """What is in the store: the type and the value of each key."""
    names: Any = redis.keys("*")
    return {name.decode(): _value(redis, name) for name in sorted(names)}


def _value(redis: Redis, name: bytes) -> list[Any]:
    found: Any = redis.type(name)
    kind = found.decode()
    match kind:
        case "hash":
            found = redis.hgetall(name)
            # Checksums are no text, so each byte becomes a character.
            return [kind, {each.decode(): found[each].decode("latin-1") for each in sorted(found)}]
        case "list":
            found = redis.lrange(name, 0, -1)
        case "set":
            found = sorted(redis.smembers(name))
        case "zset":
            found = redis.zrange(name, 0, -1, withscores=True)
            return [kind, {each.decode(): score for each, score in found}]
        case _:
            raise ValueError(f"{name!r} is a {kind}")
    return [kind, [each.decode() for each in found]]


def put(redis: Redis, given: Stored) -> None:
    """Fill an empty store with it."""
    for name, (kind, value) in given.items():
        match kind:
            case "hash":
                for field, text in value.items():
                    redis.hset(name, field, text.encode("latin-1"))
            case "list":
                redis.rpush(name, *value)
            case "set":
                redis.sadd(name, *value)
            case _:
                redis.zadd(name, value)


def main(version: str) -> None:
    """Describe this release."""
    with ValkeyServer() as server, Redis.from_url(server.url) as redis:
        furnish(Room(redis))
        opens = opening("nonce000")
        described = {
            "open": {
                "script": opens.script.source.splitlines(),
                "keys": opens.keys,
                "args": [each.decode() if isinstance(each, bytes) else each for each in opens.args],
            },
            "stored": stored(redis),
        }
    text = orjson.dumps(described, option=orjson.OPT_INDENT_2)
    (RELEASES / f"{version}.json").write_bytes(text + b"\n")


if __name__ == "__main__":
    main(sys.argv[1])
