"""How a route is answered for all shards: the kinds of rules."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard

import orjson

from holdfast.web.admin.faults import TOO_SLOW, RequestFailed
from holdfast.web.admin.handlers import Ask
from holdfast.web.admin.ndjson import lines_in
from holdfast.web.admin.sorting import Sorting, not_its_cursor, sorting_of
from holdfast.web.forwarding.asks import Unreachable
from holdfast.web.joint.asking import (
    ROUTE,
    SWEEP_S,
    Answer,
    Json,
    NoAnswer,
    Shards,
    asking,
)
from holdfast.web.joint.hearing import AWAY, Heard, heard, refusal
from holdfast.web.joint.lists import Order, by_field, combined, joined

_NOT_HERE = (400, 404)
# The field that tells which shard has an item.
_SHARD = "shard"
# The most items of one request.
_MOST_OF_PART = 500
# In a list that is sorted by size, a cursor is a number of items.
_PLACE = re.compile(r"[0-9]{1,9}")


class Rule(Protocol):
    """Answers a request for all shards; raises `RequestFailed`."""

    async def answer(self, shards: Shards, ask: Ask) -> object:
        """Return the answer; an empty one has no content."""
        ...


@dataclass(frozen=True, slots=True)
class Same:
    """All workers answer the same, so the one that was asked answers."""


@dataclass(frozen=True, slots=True)
class One:
    """One shard answers, and says so: the given one, or else the one that was asked."""

    shard: int | None = None

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        number = shards.number if self.shard is None else self.shard
        return _alone(await shards.ask(number, ask))


@dataclass(frozen=True, slots=True)
class All:
    """All shards answer, and one answer is made of theirs."""

    join: Callable[[list[Json]], Json]
    limit_s: float | None = None

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        found = heard(await shards.ask_all(ask, self.limit_s))
        return with_unanswered(found, self.join(found.bodies))


@dataclass(frozen=True, slots=True)
class Paged:
    """The page of a list whose cursor is a place in its order.

    Args:
        names_shard: Whether each item says which shard has it, and the list can be sorted by that.
    """

    order: Order
    usual: int = 100
    names_shard: bool = False

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        sort = sorting_of(ask.given.get("sort", ""), self.order.name)
        if self.names_shard and sort.field == _SHARD:
            return await self._by_shard(shards, ask, sort)
        found = heard(await shards.ask_all(ask))
        if sort.field and self.order.combine is not None:
            return await self._sorted_whole(shards, ask, sort)
        if self.names_shard:
            for shard, body in found.answers.items():
                body["items"] = _of_shard(shard, body["items"])
        page = joined(found.bodies, limit_of(ask, self.usual), order_of(ask, self.order))
        return with_unanswered(found, page)

    async def _by_shard(self, shards: Shards, ask: Ask, sorting: Sorting) -> Json:
        """List what one shard has, by name, behind all that the shards before it have."""
        order, own = by_field(sorting), replace(sorting, field=sorting.name)
        begin = asking(ask, sort=own.written, cursor=None)
        asks = dict.fromkeys(shards.numbers, begin)
        if (cursor := ask.given.get("cursor")) is not None:
            _, last, name = sorting.read(cursor)
            if last not in shards.numbers:
                raise not_its_cursor()
            is_descending = sorting.is_descending
            # Of the others, those that come later.
            asks = {each: begin for each in asks if (each < last if is_descending else each > last)}
            asks[last] = asking(begin, cursor=own.write(own.place(name, name)))
        found = heard(await asyncio.gather(*(shards.ask(*each) for each in asks.items())))
        for shard, body in found.answers.items():
            body["items"] = _of_shard(shard, body["items"])
            if body["cursor"] is not None:
                body["cursor"] = order.write(order.place(body["items"][-1]))
        page = joined(found.bodies, limit_of(ask, self.usual), order)
        return with_unanswered(found, page)

    async def _sorted_whole(self, shards: Shards, ask: Ask, sorting: Sorting) -> Json:
        """Sort what several shards know together: that is in the whole of their lists.

        They have found nothing wrong with the request.
        """
        begin = asking(ask, sort=None, cursor=None, limit=_MOST_OF_PART)
        wholes = (whole_of(shards, each, begin) for each in shards.numbers)
        found = heard(await asyncio.gather(*wholes))
        items, order = combined(found.bodies, self.order), by_field(sorting)
        if (cursor := ask.given.get("cursor")) is not None:
            after = sorting.read(cursor)
            items = [each for each in items if sorting.is_after(order.place(each), after)]
        page = joined([{"items": items, "cursor": None}], limit_of(ask, self.usual), order)
        return with_unanswered(found, page)


@dataclass(frozen=True, slots=True)
class Begun:
    """All shards begin something under one id, by which all of them are asked later."""

    join: Callable[[list[Json]], Json]

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        found = heard(await shards.ask_all(ask, SWEEP_S, shards.new_id()))
        return with_unanswered(found, self.join(found.bodies))


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that one shard has, which answers.

    Changes are asked of the shard that can read it; without a `reading`, of one shard after the
    other, until one has it.

    Args:
        reading: Returns the request that reads it.
    """

    reading: Callable[[Ask], Ask] | None = None

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        if ask.route.method == "GET":
            return self._of(await shards.ask_all(ask))
        if self.reading is None:
            return await self._change_in_turn(shards, ask)
        found = await shards.ask_all(self.reading(ask))
        holders = [each for each in found if _has(each)]
        if not holders and any(isinstance(each, NoAnswer) for each in found):
            raise _nowhere(found)
        # A shard that does not have it either says so, and writes the attempt into its audit.
        shard = holders[0].shard if holders else shards.number
        return _alone(await shards.ask(shard, ask))

    def _of(self, found: list[Answer | NoAnswer]) -> Json:
        for each in found:
            if _has(each):
                return _alone(each)
        raise _nowhere(found)

    async def _change_in_turn(self, shards: Shards, ask: Ask) -> Json:
        found: list[Answer | NoAnswer] = []
        others = [each for each in shards.numbers if each != shards.number]
        for shard in (shards.number, *others):
            answer = await shards.ask(shard, ask)
            if not isinstance(answer, NoAnswer) and answer.status not in _NOT_HERE:
                return _alone(answer)
            found.append(answer)
        raise _nowhere(found)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Changes many things, at most so many of all shards: one after the other does its part."""

    usual: int
    done: str
    sums: Callable[[list[Json]], Json]

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        given = orjson.loads(ask.body or b"")  # type: ignore[arg-type]
        left = given.get("limit", self.usual)
        if given["dry_run"]:
            return await All(self.sums, SWEEP_S).answer(shards, ask)
        found: list[Answer | NoAnswer] = []
        for shard in shards.numbers:
            part = {**given, "limit": left} if left else {**given, "dry_run": True}
            answer = await shards.ask(shard, replace(ask, body=orjson.dumps(part)), SWEEP_S)
            found.append(answer)
            if isinstance(answer, Answer) and answer.status < 300:
                left -= answer.json[self.done]
        joint = heard(found)
        return with_unanswered(joint, {**self.sums(joint.bodies), "dry_run": False})


@dataclass(frozen=True, slots=True)
class Ranked:
    """Pages of a list that is sorted by size: all of it is read, to join what belongs together."""

    key: Callable[[Json], object]
    size: str
    make: Callable[[list[Json]], Json]
    usual: int

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        start = ask.given.get("cursor", "0")
        # A cursor that is none is refused by the shards.
        begin = asking(ask, cursor=None if _PLACE.fullmatch(start) else start)
        wholes = await asyncio.gather(*(whole_of(shards, each, begin) for each in shards.numbers))
        found = heard(wholes)
        same: dict[object, list[Json]] = {}
        for item in (item for each in found.bodies for item in each["items"]):
            same.setdefault(self.key(item), []).append(item)
        items = sorted(map(self.make, same.values()), key=lambda each: -int(each[self.size]))
        end = int(start) + limit_of(ask, self.usual)
        page = {
            "items": items[int(start) : end],
            "cursor": str(end) if len(items) > end else None,
            "total": sum(each["total"] for each in found.bodies),
        }
        return with_unanswered(found, page)


async def whole_of(shards: Shards, shard: int, ask: Ask) -> Answer | NoAnswer:
    """Return all parts of a list of one shard as one."""
    items: list[Json] = []
    while True:
        answer = await shards.ask(shard, ask)
        if isinstance(answer, NoAnswer) or answer.status >= 300:
            return answer
        page = answer.json
        items += page["items"]
        if page["cursor"] is None:
            return replace(answer, json={**page, "items": items})
        ask = asking(ask, cursor=page["cursor"])


@dataclass(frozen=True, slots=True)
class Parts:
    """Something that all shards have in parts. The cursor joins their cursors with `.`."""

    join: Callable[[list[Json]], Json]

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        given = ask.given.get("cursor")
        count = len(shards.numbers)
        cursors: list[str | None] = [None] * count if given is None else [*given.split(".")]
        if len(cursors) != count:
            # It is refused by the shards.
            cursors = [given] * count
        begun = {shard: each for shard, each in enumerate(cursors) if each != ""}
        asked = (shards.ask(shard, asking(ask, cursor=each)) for shard, each in begun.items())
        found = heard(await asyncio.gather(*asked))
        ends = [(found.answers.get(shard) or {}).get("cursor") for shard in shards.numbers]
        cursor = ".".join(each or "" for each in ends) if any(ends) else None
        return with_unanswered(found, {**self.join(found.bodies), "cursor": cursor})


@dataclass(frozen=True, slots=True)
class Exported:
    """The lines of all shards, one shard after the other."""

    async def answer(self, shards: Shards, ask: Ask) -> AsyncIterator[bytes]:
        if missing := await missing_for(shards, ask):
            text = f"{refusal(missing).message}. An export has all letters or none"
            raise RequestFailed(AWAY, text)
        return lines_in(_exported(shards, ask))


async def missing_for(shards: Shards, ask: Ask) -> list[Answer | NoAnswer]:
    """Return which shards do not answer, before a request about letters begins."""
    about = Ask(ROUTE["about"], {}, ask.who)
    return [each for each in await shards.ask_all(about) if _is_away(each)]


def _is_away(each: Answer | NoAnswer) -> bool:
    return isinstance(each, NoAnswer) or each.status >= 300


async def _exported(shards: Shards, ask: Ask) -> AsyncIterator[bytes]:
    for shard in shards.numbers:
        try:
            status, parts = await shards.open(shard, ask)
            async with aclosing(parts):
                if status >= 300:
                    body = b"".join([part async for part in parts])
                    raise refusal([Answer(shard, status, orjson.loads(body))])
                async for part in parts:
                    yield part
        except Unreachable:
            raise refusal([NoAnswer(shard, "it cannot be reached")]) from None


def with_unanswered(found: Heard, answer: Json) -> Json:
    """Return the answer with the shards that are not in it. A change may have no other answer."""
    if not answer and not found.unanswered:
        return answer
    return {**answer, "unanswered": found.unanswered}


def order_of(ask: Ask, usual: Order) -> Order:
    """Return in which order a list is wanted; the shards have checked it."""
    sort = ask.given.get("sort")
    return by_field(sorting_of(sort, usual.name)) if sort else usual


def _of_shard(shard: int, items: list[Json]) -> list[Json]:
    return [{**item, _SHARD: shard} for item in items]


def limit_of(ask: Ask, usual: int) -> int:
    """Return how many items are wanted; the shards have checked it."""
    return int(ask.given.get("limit", usual))


def _has(each: Answer | NoAnswer) -> TypeGuard[Answer]:
    return isinstance(each, Answer) and each.status < 300


def _nowhere(found: list[Answer | NoAnswer]) -> RequestFailed:
    """Return that no shard has it, unless one that may have it is silent."""
    return refusal([each for each in found if isinstance(each, NoAnswer)] or found)


def _alone(answer: Answer | NoAnswer) -> Json:
    """Return what one shard has answered, and which."""
    if isinstance(answer, NoAnswer):
        text = f"shard {answer.shard}: {answer.reason}"
        raise RequestFailed(TOO_SLOW, f"{text}; if this changes something, it may have done so")
    if answer.status >= 300:
        raise refusal([answer])
    found = answer.json
    return {**found, "shard": answer.shard} if found else found
