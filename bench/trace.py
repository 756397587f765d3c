"""Counts what a server calls for one message: `python -m bench.trace`."""

import argparse
import asyncio
import json
import logging
import statistics
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from unittest.mock import patch

from aiohttp import ClientSession

from docs.tracing import Step, Trace, Walk, busy
from docs.walks import IDLE_S, Client, Json, prepared
from holdfast.compose import serving
from holdfast.settings import Settings

ROUNDS = 8
# Long enough for the store's answers.
SETTLE_S = 0.25
HELD_MS = 600_000
CHANNEL = "/orders"
FIGURES = ("calls", "functions", "modules")

Walks = dict[str, list[Walk]]
Medians = dict[str, dict[str, float]]


class Rounds:
    """Traces a publish, the ack of its receiver, and a refusal, again and again.

    Message and receiver are durable, so the store has both; a connect waits for the message.
    """

    def __init__(self, receiver: Client, publisher: Client) -> None:
        self._receiver = receiver
        self._publisher = publisher
        self._held = asyncio.create_task(receiver.connect(HELD_MS))
        # What an idle server does.
        self._idle: set[Step] = set()
        self.walks: Walks = {"publish": [], "ack": [], "refusal": []}

    async def take(self, rounds: int) -> None:
        await asyncio.sleep(SETTLE_S)
        with Trace().recording() as idle:
            await asyncio.sleep(IDLE_S)
        self._idle = set(idle.steps())
        for _ in range(rounds):
            await self._take_one()
        self._held.cancel()

    async def _take_one(self) -> None:
        async with self._traced("publish"):
            messages = await self._publish("new")
        async with self._traced("ack"):
            self._connect(ack=messages[-1]["ext"]["ack"])
        messages = await self._publish("bad")
        [seq] = [each["ext"]["delivery"]["seq"] for each in messages if "data" in each]
        verdict = {"seq": seq, "errorCode": "user.update.illegalArgument"}
        async with self._traced("refusal"):
            self._connect(delivery={"verdicts": [verdict]})
        messages = await self._publish("last")
        self._connect(ack=messages[-1]["ext"]["ack"])

    async def _publish(self, data: str) -> list[Json]:
        """Publish; return what the connect that waits is answered."""
        await self._publisher.ask(CHANNEL, data=data, ext={"delivery": {"persistent": True}})
        return await self._held

    def _connect(self, **ext: object) -> None:
        self._held = asyncio.create_task(self._receiver.connect(HELD_MS, **ext))

    @asynccontextmanager
    async def _traced(self, name: str) -> AsyncIterator[None]:
        await asyncio.sleep(SETTLE_S)
        with Trace().recording() as trace:
            yield
            await asyncio.sleep(SETTLE_S)
        self.walks[name].append(busy(trace, self._idle))


async def take(rounds: int) -> Walks:
    # Frames tell what happened to all messages of a second: none leaves.
    never = patch.multiple("holdfast.journal.journal", LONGEST_WAIT_S=3600.0, BOOKS_S=3600.0)
    async with prepared() as (settings, http):
        with never:
            return await _take(settings, http, rounds)


async def _take(settings: Settings, http: ClientSession, rounds: int) -> Walks:
    async with serving(settings) as url:
        receiver, publisher = Client(url, http), Client(url, http)
        await receiver.handshake(session="joe/1")
        await receiver.ask("/meta/subscribe", subscription=CHANNEL)
        # The first connect is answered at once.
        await receiver.connect(HELD_MS)
        await publisher.handshake()
        traced = Rounds(receiver, publisher)
        await traced.take(rounds)
    return traced.walks


def medians(walks: Walks) -> Medians:
    """The figures of each walk, as the median of its rounds."""
    found = {}
    for name, rounds in walks.items():
        each = [(walk.size, *walk.numbers) for walk in rounds]
        columns = zip(FIGURES, zip(*each, strict=True), strict=False)
        found[name] = {figure: statistics.median(values) for figure, values in columns}
    return found


def table(found: Medians) -> str:
    lines = [f"| walk | {' | '.join(FIGURES)} |", f"| --- |{' --- |' * len(FIGURES)}"]
    for name, figures in found.items():
        lines.append(f"| {name} | {' | '.join(f'{figures[each]:g}' for each in FIGURES)} |")
    return "\n".join(lines)


def listed(rounds: Sequence[Walk]) -> str:
    """What the round in the middle called, with how often, the most frequent first."""
    middle = sorted(rounds, key=lambda walk: walk.size)[(len(rounds) - 1) // 2]
    times = Counter(f"{function.module}.py {function.name}" for function in middle.functions)
    return "\n".join(f"{count:4} {name}" for name, count in times.most_common())


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.trace", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=ROUNDS)
    add("--json", action="store_true", help="print the figures as one line of JSON")
    add("--list", metavar="WALK", help="print what this walk called, too: publish, ack or refusal")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    logging.disable()
    walks = asyncio.run(take(options.rounds))
    found = medians(walks)
    print(json.dumps(found) if options.json else table(found))
    if options.list:
        print(listed(walks[options.list]))


if __name__ == "__main__":
    main()
