"""Measures what a message costs that other shards read: in the sender, in a reader, in the store.

`python -m bench.logs` starts a Valkey for itself. The figures are microseconds of processor time,
medians of some rounds; those of the store include what it takes to read and answer the calls.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from redis import Redis

from holdfast.cluster.frames import DURABLE, MESSAGE, LogEntry, read, write
from holdfast.delivery.messages.message import Message
from holdfast.store.format import log_scripts, scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.log_scripts import Parts, Step
from holdfast.store.format.scripts import ScriptCall
from tests.store.model import NONCE, opening
from tests.store.numbering import Numbering
from tests.store.servers import ValkeyServer

KEYS = RedisKeys("test")
SIZES = (1, 4, 34, 100)
ROUNDS = 9
CALLS = 500
DATA = b'{"channel":"/chat/room","data":{"text":"' + b"x" * 205 + b'"}}'


def entries(count: int, first: int = 0) -> list[LogEntry]:
    """Messages on a hundred channels, each of 250 bytes."""
    return [
        LogEntry(
            MESSAGE, f"/chat/room{n % 100:03d}", first + n, f"client/{n % 40}/1", DURABLE, DATA
        )
        for n in range(count)
    ]


def measured(run: Callable[[], object], times: int) -> float:
    """The microseconds of processor time of one call."""
    rounds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(times):
            run()
        rounds.append((time.process_time() - begin) / times * 1e6)
    return statistics.median(rounds)


def local(count: int) -> dict[str, float]:
    """What writing and reading a frame costs, and sorting its entries by two kinds of routes."""
    given, times = entries(count), max(10, 20_000 // count)
    frame = write(given)
    half = {f"/chat/room{n:03d}": (n,) for n in range(50)}

    def sort(routes: Mapping[str, object]) -> object:
        found = read(frame)
        return found.entries([routes.get(channel) for channel in found.channels])

    return {
        "write": measured(lambda: write(given), times),
        "read, no route": measured(lambda: sort({}), times),
        "read, half": measured(lambda: sort(half), times),
    }


class Store:
    """Calls scripts, and says how much processor time the store used for them."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis
        self._numbering = Numbering(NONCE)

    def begin(self) -> None:
        self._redis.flushall()
        self._numbering = Numbering(NONCE)
        self.calls([opening(NONCE)])

    def calls(self, calls: list[ScriptCall]) -> float:
        """Make the calls; returns the microseconds of one."""
        pipeline = self._redis.pipeline(transaction=False)
        for call in calls:
            self._redis.script_load(call.script.source)
        for call in calls:
            words = self._numbering.words(call)
            pipeline.evalsha(call.script.sha, len(call.keys), *call.keys, *words)
        begin = self.busy()
        pipeline.execute()
        return (self.busy() - begin) / len(calls)

    def busy(self) -> float:
        found = self._redis.info("cpu")
        return float(found["used_cpu_user"] + found["used_cpu_sys"]) * 1e6

    def read(self, frames: int, at_once: int) -> float:
        begin, after = self.busy(), "0-0"
        while found := self._redis.xread({KEYS.log: after}, count=at_once):
            after = found[0][1][-1][0]
        return (self.busy() - begin) / frames


def message_of(entry: LogEntry) -> Message:
    message = Message(entry.data, id=entry.id, channel=entry.channel, sender=entry.publisher)
    message.is_durable = True
    return message


def stored(store: Store, count: int) -> dict[str, float]:
    """What the store does for a frame: with its messages and alone, read, and taken."""
    turns = [entries(count, first=1 + count * n) for n in range(CALLS)]
    frames = [Parts(count, {"all": write(each)}) for each in turns]
    messages = [[(message_of(each), ["joe/1"]) for each in turn] for turn in turns]
    found = {}
    store.begin()
    found["keep"] = store.calls([scripts.keep(KEYS, each) for each in messages])
    store.begin()
    found["keep with a frame"] = store.calls(
        [
            log_scripts.with_frame(KEYS, scripts.keep(KEYS, each), frame)
            for each, frame in zip(messages, frames, strict=True)
        ]
    )
    found["xread, one"] = store.read(CALLS, 1)
    found["xread, ten"] = store.read(CALLS, 10)
    store.begin()
    found["append"] = store.calls([log_scripts.append(KEYS, frame) for frame in frames])
    steps = [Step(3, str(n) if n else "", str(n + 1)) for n in range(CALLS)]
    store.begin()
    found["take"] = store.calls(
        [log_scripts.take(KEYS, [s], m) for s, m in zip(steps, messages, strict=True)]
    )
    store.begin()
    found["follow"] = store.calls([log_scripts.take(KEYS, [step], []) for step in steps])
    return found


def main() -> None:
    with ValkeyServer() as server, Redis.from_url(server.url) as redis:
        store = Store(redis)
        for count in SIZES:
            rounds = [stored(store, count) for _ in range(5)]
            found = local(count) | {
                name: statistics.median(each[name] for each in rounds) for name in rounds[0]
            }
            print(f"{count} messages in a frame of {len(write(entries(count)))} bytes")
            for name, per_frame in found.items():
                print(f"  {name:20} {per_frame:8.1f} us a frame {per_frame / count:7.2f} a message")


if __name__ == "__main__":
    main()
