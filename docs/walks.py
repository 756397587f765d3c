"""Draws the pictures in `walks.md` from traces of a server with a store of its own.

`python -m docs.walks` renews the pictures and prints the numbers. With `--check` it fails if a
picture has an arrow for which no call was seen, or numbers that are no longer about right: what
timers bring along differs a little from trace to trace.
"""

import asyncio
import logging
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, CookieJar

from docs.generate import DOCS, replaced
from docs.tracing import Step, Trace, Walk, busy
from holdfast.compose import serving
from holdfast.settings import Settings
from holdfast.web.admin import alert_watch

PAGE = DOCS / "building" / "walks.md"
ROUNDS = 3
# The journal writes a frame after a second at the latest.
IDLE_S, QUIET_S, PAUSE_S = 2.0, 1.2, 0.3
TOLERANCE = 0.2

Json = dict[str, Any]
# Whether these rounds of a walk are enough.
IsEnough = Callable[[str, Sequence[Walk]], bool]


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
    """Takes each walk several times, until it is enough."""

    def __init__(self, settings: Settings, http: ClientSession, is_enough: IsEnough) -> None:
        self._settings = settings
        self._http = http
        self._is_enough = is_enough
        # What an idle server does.
        self._idle: set[Step] = set()

    async def walks(self) -> dict[str, list[Walk]]:
        walks: dict[str, list[Walk]] = {}
        async with serving(self._settings) as url:
            receiver, publisher = Client(url, self._http), Client(url, self._http)
            await receiver.handshake(session="joe/1")
            await receiver.ask("/meta/subscribe", subscription="/orders")
            await publisher.handshake()
            await asyncio.sleep(QUIET_S)
            with Trace().recording() as idle:
                await asyncio.sleep(IDLE_S)
            self._idle = set(idle.steps())
            for name, take in (("publish", self._publish), ("refusal", self._refuse)):
                walks[name] = await self._rounds(name, partial(take, receiver, publisher))
            await publisher.ask("/orders", data="left")
        walks["restart"] = await self._rounds("restart", self._restart)
        return walks

    async def _rounds(self, name: str, take: Callable[[], Awaitable[Trace]]) -> list[Walk]:
        rounds: list[Walk] = []
        while len(rounds) < ROUNDS and not (rounds and self._is_enough(name, rounds)):
            rounds.append(busy(await take(), self._idle))
        return rounds

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
                # Not all of them: thousands of new objects are work for the server's collector.
                steps = trace.steps(seen)
                if not self._idle.issuperset(steps):
                    waited_s = 0.0
                seen += len(steps)


@asynccontextmanager
async def prepared() -> AsyncIterator[tuple[Settings, ClientSession]]:
    """Settings of a server with a store of its own, and what its clients ask with."""
    with tempfile.TemporaryDirectory(prefix="holdfast-") as data:
        # Sessions do not expire between the rounds.
        given: Json = {"port": 0, "data": Path(data), "node": "walks", "max_interval": 600_000}
        # Alerts have nothing to do with any of the walks, and would come into one of them.
        alert_watch.EVERY_S = 3600.0
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as http:
            yield Settings(**given), http


async def take(is_enough: IsEnough) -> dict[str, list[Walk]]:
    """The rounds of each walk."""
    async with prepared() as (settings, http):
        return await Tracer(settings, http, is_enough).walks()


def drawn(name: str, page: str) -> str:
    """The picture that the page has of a walk, with its numbers."""
    return page.partition(f"<!-- made by docs.walks: {name} -->\n")[2].partition("<!-- end -->")[0]


def shortest(rounds: Sequence[Walk]) -> Walk:
    """Others have more of what timers bring along."""
    return min(rounds, key=lambda each: each.size)


def outdated(picture: str, rounds: Sequence[Walk]) -> Iterator[str]:
    """What a picture says that no round shows."""
    yield from sorted(set.intersection(*(each.lacks(picture) for each in rounds)))
    said = [int(number) for number in re.findall(r"\d+", picture.rpartition("```")[2])]
    for number, old in zip_longest(shortest(rounds).numbers, said, fillvalue=0):
        if abs(number - old) > TOLERANCE * number:
            yield f"{old} is {number} now"


def complaints(page: str, name: str, rounds: Sequence[Walk]) -> list[str]:
    """What the page says of a walk that no round shows."""
    return [f"{name}: {what}" for what in outdated(drawn(name, page), rounds)]


def main() -> None:
    logging.disable()
    page = PAGE.read_text("utf-8")
    if "--check" in sys.argv[1:]:
        check(page)
    else:
        PAGE.write_text(with_pictures(page), "utf-8")


def check(page: str) -> None:
    """One round is enough if it shows all that the page says."""
    walks = asyncio.run(take(lambda name, rounds: not complaints(page, name, rounds)))
    found = [what for name, rounds in walks.items() for what in complaints(page, name, rounds)]
    if found:
        sys.exit("\n".join(["python -m docs.walks renews the pictures:", *found]))


def with_pictures(page: str) -> str:
    """Draw all walks anew."""
    for name, rounds in asyncio.run(take(lambda *_: False)).items():
        walk = shortest(rounds)
        functions, modules, changes = walk.numbers
        summary = (
            f"{functions} functions in {modules} modules; {changes} calls enter another layer."
        )
        sys.stdout.write(f"{name}: {summary}\n")
        page = replaced(page, f"docs.walks: {name}", f"{walk.picture(rounds)}\n{summary}\n")
    return page


if __name__ == "__main__":
    main()
