"""Reads the histories of all shards: each at the home of its channel."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, Generic, TypeVar

import orjson
from pydantic import BaseModel

from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.streams.history_parts import Streams
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.admin.handlers import Ask, Handler
from holdfast.web.admin.route import Route
from holdfast.web.joint.asking import READ_S, Shards
from holdfast.web.joint.asking import Answer as Answered
from holdfast.web.streams.event_answers import EventAnswer, EventQuestion, EventsHere
from holdfast.web.streams.history_answers import Answer, Question, StreamsHere
from holdfast.web.streams.homes_asked import Asking
from holdfast.web.streams.readers_here import ReadersHere

_QUESTION: Final = "question"
_ASKER: Final = "reader"
_OK: Final = 200
_RETRY_S: Final = 1.0

Q = TypeVar("Q", bound=Question | EventQuestion)
A = TypeVar("A", bound=Answer | EventAnswer)


class AtHomes(Generic[Q, A]):
    """Answers questions about the histories of any shard.

    Args:
        name: Tells the questions from others that shards ask.
        here: Answers those about this shard.
        readers: The readers that wait at this shard.
    """

    def __init__(
        self,
        name: str,
        shards: Shards,
        here: Callable[[Q], Awaitable[A]],
        readers: ReadersHere,
        streams: Streams,
        *,
        question: type[Q],
        answer: type[A],
    ) -> None:
        self._route = Route("GET", "/streams", name, "", BaseModel, None, None, False, {})
        self._shards = shards
        self._streams = streams
        self._here, self._readers = here, readers
        self._question, self._answer = question, answer

    def handler(self) -> Handler:
        """Return what answers other shards."""
        return Handler(self._route, self._answer_other)

    async def answer(self, home: int, question: Q) -> A:
        """Return the answer of the home. Raises `RequestRefused` if it does not answer."""
        if self._shards.is_own(home):
            return await self._here(question)
        if not (question.wait_s and self._streams.may_wait):
            return await self._ask(home, replace(question, wait_s=0.0))
        clock = asyncio.get_running_loop().time
        ends_at = clock() + question.wait_s
        asking = asyncio.ensure_future(self._ask(home, question))
        leaving = asyncio.ensure_future(self._until_leaving(question))
        try:
            await asyncio.wait((asking, leaving), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                answer = asking.result()
                if _is_empty(answer) and clock() < ends_at:
                    # The home leaves, and lets no reader wait. Readers that ask again at once would
                    # only keep it busy.
                    await asyncio.wait((leaving,), timeout=_RETRY_S)
                return answer
        finally:
            asking.cancel()
            leaving.cancel()
        return await self._ask(home, replace(question, wait_s=0.0))

    async def _until_leaving(self, question: Q) -> None:
        """Wait until readers may wait here no longer."""
        await self._readers.until_woken((), question.wait_s + READ_S)

    async def _ask(self, home: int, question: Q) -> A:
        given = {_QUESTION: orjson.dumps(asdict(question)).decode()}
        asked = Ask(self._route, given, _ASKER)
        found = await self._shards.ask(home, asked, question.wait_s + READ_S)
        # The answers for many readers may come together.
        await self._readers.next_turn()
        if not isinstance(found, Answered) or found.status != _OK:
            raise RequestRefused(ErrorReply.SHARD_UNAVAILABLE, wait_s=_RETRY_S)
        return self._answer(**found.json)

    async def _answer_other(self, ask: Ask) -> dict[str, Any]:
        # Another shard may ask for many readers at once.
        await self._readers.next_turn()
        return asdict(await self._here(self._question(**orjson.loads(ask.given[_QUESTION]))))


def _is_empty(answer: Answer | EventAnswer) -> bool:
    """Return whether a reader that waited has got nothing."""
    found = answer.count if isinstance(answer, Answer) else answer.events or answer.lost
    return not (found or answer.error)


class _HomesByRule:
    """The homes of channels as a door without a shard knows them: as rules say."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    def homes_of(self, pattern: str) -> Sequence[int]:
        """Return the shards that may order channels of the pattern, or any if none has to."""
        shards = self._shards
        if not pattern.endswith("*"):
            home = shards.homes.of_channel(pattern)
            return (shards.number if home is None else home,)
        found = shards.homes.of_pattern(pattern)
        # There may be channels without a home.
        return found if len(found) == 1 else sorted({shards.number, *found})


class JointStreams:
    """Reads the histories of all shards.

    Args:
        division: What differs if any channel has another home.
        next_turn: Waits until there is time for a reader.
    """

    def __init__(
        self,
        shards: Shards,
        division: str,
        bayeux: Bayeux,
        next_turn: Callable[[], Awaitable[None]],
    ) -> None:
        readers = ReadersHere(bayeux, next_turn)
        self._histories = AtHomes(
            *("stream", shards, StreamsHere(bayeux, readers).answer, readers, bayeux.streams),
            question=Question,
            answer=Answer,
        )
        self._events = AtHomes(
            *("events", shards, EventsHere(bayeux, readers).answer, readers, bayeux.streams),
            question=EventQuestion,
            answer=EventAnswer,
        )
        self.asking = Asking(
            *(self._histories.answer, self._events.answer),
            bayeux.state.homes if shards.has_own else _HomesByRule(shards),
            *(shards.number, division),
        )

    def handlers(self) -> Sequence[Handler]:
        """Return what answers other shards."""
        return self._histories.handler(), self._events.handler()
