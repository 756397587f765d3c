"""Imports dead letters, each into the shard that has its receiver."""

import asyncio
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import orjson

from holdfast.bayeux.state.session_registry import SHARDS
from holdfast.cluster.shards import Shards as Homes
from holdfast.delivery.letters.dead import subject_of
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.delivery.shared_queues.work import PREFIX
from holdfast.web.admin.handlers import Ask
from holdfast.web.joint.asking import SWEEP_S, Answer, Json, NoAnswer, Shards
from holdfast.web.joint.hearing import heard
from holdfast.web.joint.rules import all_there

# Lines that wait for a slow shard.
_MOST_WAITING = 16
_REFUSALS = 20


def shard_of_line(line: bytes, homes: Homes) -> int:
    """Return the shard of a letter. What is no letter goes to the first one, which refuses it."""
    try:
        letter = orjson.loads(line)
        receiver, id = str(letter["receiver"]), int(letter["id"])
    except (ValueError, KeyError, TypeError):
        return 0
    return _shard_of(receiver, id, homes)


def _shard_of(receiver: str, id: int, homes: Homes) -> int:
    subject = subject_of(receiver)
    if subject and subject != NOBODY and not subject.startswith(PREFIX):
        return homes.of_subject(subject)
    if subject.startswith(PREFIX):
        home = homes.of_channel(subject.removeprefix(PREFIX))
        if home is not None:
            return home
    # The number of a session that the server has named says which shard did so. So does the id of
    # a letter, unless another deployment gave it.
    number = receiver.rpartition("/-")[2]
    shard = (int(number) if number.isdecimal() else id) % SHARDS
    return shard if shard < homes.map.count else 0


@dataclass(frozen=True, slots=True)
class Imported:
    """Each shard imports its letters, which are read once."""

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        await all_there(shards, ask, "Nothing was imported")
        parts: dict[int, _Part] = {}

        def part_of(shard: int) -> _Part:
            if shard not in parts:
                parts[shard] = _Part(shards, ask, shard)
            return parts[shard]

        try:
            number = 0
            async for line in ask.lines:
                number += 1
                await part_of(shard_of_line(line, shards.homes)).add(number, line)
            if not parts:
                part_of(shards.number)
            found = [await part.end() for part in parts.values()]
        finally:
            for part in parts.values():
                part.cancel()
        answers = heard(found)
        imported = [_in_whole(answer, parts[n].numbers) for n, answer in answers.answers.items()]
        return answers.whole(_sum(imported))


class _Part:
    """What one shard imports: a request whose body grows."""

    def __init__(self, shards: Shards, ask: Ask, shard: int) -> None:
        self._shard = shard
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_WAITING)
        # Of each line, its number in the whole. Only the first lines that are refused are shown.
        self.numbers = array("Q")
        its = replace(ask, body=self._lines_given())
        self._asked = asyncio.ensure_future(shards.ask(shard, its, inf))

    async def add(self, number: int, line: bytes) -> None:
        """Give it a line; one that has answered early gets no more."""
        self.numbers.append(number)
        await self._give(line)

    async def _give(self, line: bytes | None) -> None:
        with suppress(asyncio.QueueFull):
            self._lines.put_nowait(line)
            return
        giving = asyncio.ensure_future(self._lines.put(line))
        await asyncio.wait({giving, self._asked}, return_when=asyncio.FIRST_COMPLETED)
        giving.cancel()

    async def end(self) -> Answer | NoAnswer:
        """Return the answer to all lines."""
        await self._give(None)
        try:
            return await asyncio.wait_for(asyncio.shield(self._asked), SWEEP_S)
        except TimeoutError:
            return NoAnswer(self._shard, f"it did not answer within {SWEEP_S:g} s")

    def cancel(self) -> None:
        self._asked.cancel()

    async def _lines_given(self) -> AsyncIterator[bytes]:
        while (line := await self._lines.get()) is not None:
            yield line


def _in_whole(answer: Json, numbers: Sequence[int]) -> Json:
    """Return the answer with the numbers that its refused lines have in the whole."""
    refusals = [{**each, "line": numbers[each["line"] - 1]} for each in answer["refusals"]]
    return {**answer, "refusals": refusals}


def _sum(found: Sequence[Json]) -> Json:
    counts: dict[str, Any] = {
        name: sum(each[name] for each in found) for name in ("imported", "repeated", "refused")
    }
    refusals = sorted(
        (refusal for each in found for refusal in each["refusals"]), key=lambda each: each["line"]
    )
    return {**counts, "refusals": refusals[:_REFUSALS]}
