"""Asks the administrations of all shards, over the links that lead to others."""

import asyncio
import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from pydantic import BaseModel

from holdfast.cluster.shards import Shards as Homes
from holdfast.web.admin.faults import fault_of
from holdfast.web.admin.handlers import Ask, Handler
from holdfast.web.admin.ndjson import lines_in
from holdfast.web.admin.request_keys import GIVEN
from holdfast.web.admin.resources import ROUTES
from holdfast.web.admin.route import Lines, Route
from holdfast.web.admin.routing import Handlers
from holdfast.web.forwarding.asks import MOST_OF_PART, AsksOut, Unreachable

Json = dict[str, Any]
Parts = AsyncGenerator[bytes]

ROUTE: Final = {each.handler: each for each in ROUTES}
METRICS: Final = Route("GET", "/metrics", "metrics", "", BaseModel, None, None, False, {})

# How long a reading waits for other shards, and for this one: with millions of entries, its own
# answer may take longer.
READ_S = 1.0
_OWN_S = 10.0
# How long changes wait; a change waits for its store up to 5 s. Sweeps change many things.
CHANGE_S = 10.0
SWEEP_S = 60.0
UNREACHABLE: Final = "it cannot be reached"
# The digits of the status of an answer, with which it begins.
_STATUS: Final = 3


def asking(ask: Ask, **given: object) -> Ask:
    """Return the request with other parameters; None removes one."""
    kept = {name: value for name, value in ask.given.items() if name not in given}
    new = {name: str(value) for name, value in given.items() if value is not None}
    return replace(ask, given={**kept, **new})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a shard has answered."""

    shard: int
    status: int
    json: Json


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A shard has not answered."""

    shard: int
    reason: str
    # Whether its process may live: it was reached.
    is_silent: bool = False


class Here:
    """Answers for this shard, to itself and to others.

    Args:
        handlers: What answers each route.
        speaking: Waits while another process may have opened the store of this shard.
    """

    def __init__(self, handlers: Handlers, speaking: Callable[[], Awaitable[None]]) -> None:
        self._handlers, self._speaking = handlers, speaking
        # What answers besides, once there is something.
        self.besides: Sequence[Handler] = ()

    async def _handler(self, name: str) -> Handler:
        all_of = (*self.besides, *await self._handlers())
        return next(each for each in all_of if each.route.handler == name)

    async def answer_other(self, head: bytes, body: Parts) -> Parts:
        """Answer another shard, which has let in the sender of the request."""
        name, given, who, id = json.loads(head)
        route = (await self._handler(name)).route
        content: bytes | AsyncIterator[bytes] | None = None
        if route.body is not None and issubclass(route.body, Lines):
            content = lines_in(body)
        elif route.body is not None:
            content = b"".join([part async for part in body])
        async with aclosing(self.answer(Ask(route, given, who, content), id)) as parts:
            async for part in parts:
                yield part

    async def answer(self, ask: Ask, id: str) -> Parts:
        """Yield the status of an answer and what it has, in parts."""
        GIVEN.set(id)
        lines: AsyncIterator[bytes] | None = None
        try:
            found = await (await self._handler(ask.route.handler)).answering(ask)
            if isinstance(found, AsyncIterator):
                lines = _portions(found)
                written = await anext(lines, b"")
            else:
                written = b"" if found is None else orjson.dumps(found)
            status = 200
        except Exception as error:
            failed = fault_of(error)
            written, status = failed.body, failed.status
        await self._speaking()
        yield b"%d" % status + written
        if lines is not None:
            async for portion in lines:
                await self._speaking()
                yield portion


class Shards:
    """The administrations of all shards, this one among them.

    Args:
        number: This shard; none has a negative number, and then this is a door without a shard.
        links: Ask the other ones.
        here: Answers for this one.
        new_id: Returns an id that no shard gives to anything else.
        homes: Says which shard has what.
    """

    def __init__(
        self,
        number: int,
        links: Mapping[int, AsksOut],
        here: Here,
        new_id: Callable[[], str],
        homes: Homes,
    ) -> None:
        self._number, self.new_id, self.homes = number, new_id, homes
        self._links, self._here = links, here
        self.has_own = number >= 0
        # Held while an answer is made that is so large that there should be one at a time.
        self.making_large = asyncio.Lock()

    @property
    def number(self) -> int:
        """This shard, or else one that can be reached."""
        if self.has_own:
            return self._number
        return next((shard for shard, link in self._links.items() if link.is_linked), 0)

    @property
    def numbers(self) -> range:
        return range(self.has_own + len(self._links))

    def is_own(self, shard: int) -> bool:
        """Return whether this process has the shard."""
        return shard == self._number

    async def ask_all(
        self, ask: Ask, limit_s: float | None = None, id: str = ""
    ) -> list[Answer | NoAnswer]:
        """Ask all shards at the same time."""
        asked = [self.ask(shard, ask, limit_s, id) for shard in self.numbers]
        return [*await asyncio.gather(*asked)]

    async def ask(
        self, shard: int, ask: Ask, limit_s: float | None = None, id: str = ""
    ) -> Answer | NoAnswer:
        """Ask one shard.

        Args:
            limit_s: How long to wait: forever, if it is infinite.
            id: What the shard calls that which it begins.
        """
        if limit_s is None:
            limit_s = READ_S if ask.route.method == "GET" else CHANGE_S
        if self.is_own(shard):
            limit_s = max(limit_s, _OWN_S)
        try:
            async with asyncio.timeout(None if limit_s == math.inf else limit_s):
                status, parts = await self.open(shard, ask, id)
                return Answer(shard, status, await json_of(parts))
        except TimeoutError:
            return NoAnswer(shard, f"it did not answer within {limit_s:g} s", is_silent=True)
        except Unreachable:
            return NoAnswer(shard, UNREACHABLE)

    async def open(self, shard: int, ask: Ask, id: str = "") -> tuple[int, Parts]:
        """Return the status of an answer, and its parts, to be closed. Raises `Unreachable`."""
        if self.is_own(shard):
            parts = self._here.answer(ask, id)
        else:
            head = json.dumps([ask.route.handler, {**ask.given}, ask.who, id]).encode()
            parts = self._links[shard].ask(head, _body_of(ask))
        first = await anext(parts)
        return int(first[:_STATUS]), _begun(first[_STATUS:], parts)


async def json_of(parts: Parts) -> Json:
    """Return an answer that is an object."""
    async with aclosing(parts):
        found: Json = orjson.loads(b"".join([part async for part in parts]) or b"{}")
    return found


async def _begun(first: bytes, parts: Parts) -> Parts:
    async with aclosing(parts):
        yield first
        async for part in parts:
            yield part


async def _body_of(ask: Ask) -> Parts:
    if isinstance(ask.body, bytes):
        for at in range(0, len(ask.body), MOST_OF_PART):
            yield ask.body[at : at + MOST_OF_PART]
    elif ask.body is not None:
        async for portion in _portions(ask.body):
            for at in range(0, len(portion), MOST_OF_PART):
                yield portion[at : at + MOST_OF_PART]


async def _portions(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield lines together, as many as a part of an answer may have."""
    portion = bytearray()
    async for line in lines:
        portion += line + b"\n"
        if len(portion) >= MOST_OF_PART:
            yield bytes(portion)
            portion.clear()
    if portion:
        yield bytes(portion)
