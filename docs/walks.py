"""Draws the walks of `architecture.md` from traces of a server with a store of its own.

`python -m docs.walks` renews the pictures and prints the numbers. With `--check` it fails if a
picture has an arrow for which no call was seen, or numbers that are no longer about right: what
timers bring along differs a little from trace to trace.
"""

import asyncio
import logging
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, CookieJar

from docs.generate import DOCS, replaced
from docs.tracing import Step, Trace, Walk, busy
from holdfast.compose import serving
from holdfast.settings import Settings

PAGE = DOCS / "architecture.md"
ROUNDS = 3
# The journal writes a frame after a second at the latest.
IDLE_S, QUIET_S, PAUSE_S = 2.0, 1.2, 0.3
TOLERANCE = 0.2

Json = dict[str, Any]


class Client:
    """A client that polls."""

    def __init__(self, url: str, http: ClientSession) -> None:
        self._url = f"{url.rstrip('/')}/cometd"
        self._http = http
        self._identity: Json = {}

    async def ask(self, channel: str, **fields: object) -> list[Json]:
        message = {"channel": channel, **self._identity, **fields}
        async with self._http.post(self._url, json=[message]) as response:
            messages: list[Json] = await response.json()
        return messages

    async def handshake(self, **delivery: object) -> None:
        ext = {"ack": True, "delivery": delivery or True}
        reply = await self.ask(
            "/meta/handshake", version="1.0", supportedConnectionTypes=["long-polling"], ext=ext
        )
        self._identity = {"clientId": reply[0]["clientId"]}

    async def connect(self, timeout_ms: int = 0, **ext: object) -> list[Json]:
        advice = {"timeout": timeout_ms}
        return await self.ask(
            "/meta/connect", connectionType="long-polling", advice=advice, ext=ext
        )


class Tracer:
    """Takes each walk several times."""

    def __init__(self, settings: Settings, http: ClientSession) -> None:
        self._settings = settings
        self._http = http
        # What an idle server does; known after `traces`.
        self.idle: set[Step] = set()

    async def traces(self) -> dict[str, list[Trace]]:
        traces: dict[str, list[Trace]] = {"publish": [], "refusal": [], "restart": []}
        async with serving(self._settings) as url:
            receiver, publisher = Client(url, self._http), Client(url, self._http)
            await receiver.handshake(session="joe/1")
            await receiver.ask("/meta/subscribe", subscription="/orders")
            await publisher.handshake()
            await asyncio.sleep(QUIET_S)
            with Trace().recording() as idle:
                await asyncio.sleep(IDLE_S)
            self.idle = set(idle.steps())
            for _ in range(ROUNDS):
                traces["publish"].append(await self._publish(receiver, publisher))
                traces["refusal"].append(await self._refuse(receiver, publisher))
            await publisher.ask("/orders", data="left")
        for _ in range(ROUNDS):
            traces["restart"].append(await self._restart())
        return traces

    async def _publish(self, receiver: Client, publisher: Client) -> Trace:
        """A message answers a held connect; the next connect acknowledges it."""
        ack = (await receiver.connect())[-1]["ext"]["ack"]
        held = asyncio.create_task(receiver.connect(20_000, ack=ack))
        async with self._traced() as trace:
            await publisher.ask("/orders", data="new")
            messages = await held
            await asyncio.sleep(PAUSE_S)
            await receiver.connect(ack=messages[-1]["ext"]["ack"])
        return trace

    async def _refuse(self, receiver: Client, publisher: Client) -> Trace:
        """A connect carries the verdict that makes a message a dead letter."""
        await publisher.ask("/orders", data="bad")
        messages = await receiver.connect()
        seq = messages[0]["ext"]["delivery"]["seq"]
        verdict = {"seq": seq, "errorCode": "user.update.illegalArgument"}
        async with self._traced() as trace:
            await receiver.connect(delivery={"verdicts": [verdict]})
        return trace

    async def _restart(self) -> Trace:
        """A server loads what the store has; the client of a named session returns."""
        async with AsyncExitStack() as stack, self._traced() as trace:
            url = await stack.enter_async_context(serving(self._settings))
            receiver = Client(url, self._http)
            await receiver.handshake(session="joe/1")
            await receiver.connect()
        return trace

    @asynccontextmanager
    async def _traced(self) -> AsyncIterator[Trace]:
        """Record until the server does only what an idle one does; so does it when this begins."""
        await asyncio.sleep(QUIET_S)
        with Trace().recording() as trace:
            yield trace
            seen, waited_s = 0, 0.0
            while waited_s < QUIET_S:
                await asyncio.sleep(PAUSE_S)
                waited_s += PAUSE_S
                steps = trace.steps()
                if not self.idle.issuperset(steps[seen:]):
                    waited_s = 0.0
                seen = len(steps)


async def take() -> tuple[dict[str, list[Trace]], set[Step]]:
    """All traces, and what an idle server does."""
    with tempfile.TemporaryDirectory(prefix="holdfast-") as data:
        # Sessions do not expire between the rounds.
        given: Json = {"port": 0, "data": Path(data), "node": "walks", "max_interval": 600_000}
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as http:
            tracer = Tracer(Settings(**given), http)
            return await tracer.traces(), tracer.idle


def drawn(name: str, page: str) -> str:
    """The picture that the page has of a walk, with its numbers."""
    return page.partition(f"<!-- made by docs.walks: {name} -->\n")[2].partition("<!-- end -->")[0]


def outdated(picture: str, walk: Walk, rounds: Sequence[Walk]) -> Iterator[str]:
    """What a picture says that no round shows."""
    yield from sorted(set.intersection(*(each.lacks(picture) for each in rounds)))
    said = [int(number) for number in re.findall(r"\d+", picture.rpartition("```")[2])]
    for number, old in zip_longest(walk.numbers, said, fillvalue=0):
        if abs(number - old) > TOLERANCE * number:
            yield f"{old} is {number} now"


def main() -> None:
    logging.disable()
    page = PAGE.read_text("utf-8")
    traces, idle = asyncio.run(take())
    complaints = []
    for name, taken in traces.items():
        rounds = [busy(trace, idle) for trace in taken]
        # Others have more of what timers bring along.
        walk = min(rounds, key=lambda each: each.size)
        functions, modules, changes = walk.numbers
        summary = (
            f"{functions} functions in {modules} modules; {changes} calls enter another layer."
        )
        sys.stdout.write(f"{name}: {summary}\n")
        complaints += [f"{name}: {what}" for what in outdated(drawn(name, page), walk, rounds)]
        page = replaced(page, f"docs.walks: {name}", f"{walk.picture(rounds)}\n{summary}\n")
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page, "utf-8")
    elif complaints:
        sys.exit("\n".join(["python -m docs.walks renews the pictures:", *complaints]))


if __name__ == "__main__":
    main()
