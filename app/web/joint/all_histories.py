"""Reads the histories of all shards: each at the home of its channel."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any, Final

import orjson
from pydantic import BaseModel

from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.admin.handlers import Ask, Handler
from holdfast.web.admin.route import Route
from holdfast.web.joint.asking import READ_S, Shards
from holdfast.web.joint.asking import Answer as Answered
from holdfast.web.streams.history_answers import Answer, Question, StreamsHere

_STREAM: Final = Route("GET", "/streams", "stream", "", BaseModel, None, None, False, {})
_QUESTION: Final = "question"
_ASKER: Final = "reader"
_OK: Final = 200
_RETRY_S: Final = 1.0


class JointStreams:
    """Answers questions about the histories of any shard.

    Args:
        next_turn: Waits until there is time for a reader.
    """

    def __init__(
        self, shards: Shards, bayeux: Bayeux, next_turn: Callable[[], Awaitable[None]]
    ) -> None:
        self._shards = shards
        self._homes = bayeux.state.homes
        self._streams = bayeux.streams
        self._here = StreamsHere(bayeux, next_turn)
        self._next_turn = next_turn

    def handler(self) -> Handler:
        """Return what answers other shards."""
        return Handler(_STREAM, self._answer_other)

    async def answer(self, question: Question) -> Answer:
        """Return the answer of the home. Raises `RequestRefused` if it does not answer."""
        home = None if self._homes is None else self._homes.home_of(question.channel)
        if home is None:
            return await self._here.answer(question)
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
                if not (answer.count or answer.error) and clock() < ends_at:
                    # The home leaves, and lets no reader wait. Readers that ask again at once would
                    # only keep it busy.
                    await asyncio.wait((leaving,), timeout=_RETRY_S)
                return answer
        finally:
            asking.cancel()
            leaving.cancel()
        return await self._ask(home, replace(question, wait_s=0.0))

    async def _until_leaving(self, question: Question) -> None:
        """Wait until readers may wait here no longer."""
        await self._here.until_woken(None, question.wait_s + READ_S)

    async def _ask(self, home: int, question: Question) -> Answer:
        given = {_QUESTION: orjson.dumps(asdict(question)).decode()}
        asked = Ask(_STREAM, given, _ASKER)
        found = await self._shards.ask(home, asked, question.wait_s + READ_S)
        # The answers for many readers may come together.
        await self._next_turn()
        if not isinstance(found, Answered) or found.status != _OK:
            raise RequestRefused(ErrorReply.SHARD_UNAVAILABLE, wait_s=_RETRY_S)
        return Answer(**found.json)

    async def _answer_other(self, ask: Ask) -> dict[str, Any]:
        return await self._here.answer_json(orjson.loads(ask.given[_QUESTION]))
