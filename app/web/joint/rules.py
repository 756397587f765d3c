"""How a route is answered for all shards: the kinds of rules."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

import orjson

from holdfast.web.admin.faults import TOO_SLOW, RequestFailed
from holdfast.web.admin.handlers import Ask
from holdfast.web.admin.ndjson import lines_in
from holdfast.web.admin.sorting import Sorting, not_its_cursor, sorting_of
from holdfast.web.forwarding.asks import Unreachable
from holdfast.web.joint.asking import (
    CHANGE_S,
    ROUTE,
    SWEEP_S,
    UNREACHABLE,
    Answer,
    Json,
    NoAnswer,
    Shards,
    asking,
    json_of,
)
from holdfast.web.joint.hearing import AWAY, Found, Heard, has_it, heard, refusal
from holdfast.web.joint.lists import Combine, Order, by_field, every_item, grouped, joined

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
    """All workers answer the same, so the one that was asked answers; for a door, any other."""

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        # What there is of hosts takes some looks.
        answer = await shards.ask(shards.number, ask, CHANGE_S)
        if not has_it(answer):
            raise refusal([answer])
        return answer.json


@dataclass(frozen=True, slots=True)
class One:
    """One shard answers, and says so: the given one, or else the one that was asked."""

    shard: int | None = None

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        number = shards.number if self.shard is None else self.shard
        return _alone(await shards.ask(number, ask))


@dataclass(frozen=True, slots=True)
class All:
    """All shards answer, and one answer is made of theirs.

    Args:
        begins: Whether they begin something under one id, by which all of them are asked later.
    """

    join: Combine
    limit_s: float | None = None
    begins: bool = False

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        id = shards.new_id() if self.begins else ""
        found = heard(await shards.ask_all(ask, self.limit_s, id))
        return found.whole(self.join(found.bodies))


@dataclass(frozen=True, slots=True)
class Joined:
    """All shards answer, and one answer is made of theirs, the missing ones and the limit.

    Args:
        most: Up to how many items each shard is asked for, whatever the limit.
    """

    join: Callable[[Heard, int], Json]
    usual: int = 0
    most: int | None = None

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        asked = ask if self.most is None else asking(ask, limit=self.most)
        found = heard(await shards.ask_all(asked))
        return found.whole(self.join(found, limit_of(ask, self.usual)))


@dataclass(frozen=True, slots=True)
class Paged:
    """The page of a list whose cursor is a place in its order.

    Args:
        names_shard: Whether each item says which shard has it, and the list can be sorted by that.
        edit: Makes the items of a page of those that all shards have there, which say whose they
            are.
    """

    order: Order
    usual: int = 100
    names_shard: bool = False
    edit: Callable[[list[Json]], list[Json]] | None = None

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        sort = sorting_of(ask.given.get("sort", ""), self.order.name)
        if self.names_shard and sort.field == _SHARD:
            return await self._by_shard(shards, ask, sort)
        found = heard(await shards.ask_all(ask))
        order = by_field(sort) if sort.field else self.order
        if sort.field and self.order.combine is not None:
            # What several shards know together is in the whole of their lists.
            found = await _wholes(shards, asking(ask, sort=None, cursor=None, limit=_MOST_OF_PART))
            return self._page(found, [_sorted_whole(found, ask, self.order, sort)], ask, order)
        if self.names_shard or self.edit is not None:
            _name_shards(found)
        return self._page(found, found.bodies, ask, order)

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
        _name_shards(found)
        for body in found.bodies:
            if body["cursor"] is not None:
                body["cursor"] = order.write(order.place(body["items"][-1]))
        return self._page(found, found.bodies, ask, order)

    def _page(self, found: Heard, pages: list[Json], ask: Ask, order: Order) -> Json:
        page = joined(pages, limit_of(ask, self.usual), order)
        if self.edit is not None:
            page["items"] = self.edit(page["items"])
        return found.whole(page)


def _name_shards(found: Heard) -> None:
    for shard, body in found.answers.items():
        body["items"] = [{**item, _SHARD: shard} for item in body["items"]]


def _sorted_whole(found: Heard, ask: Ask, order: Order, sorting: Sorting) -> Json:
    """Return what comes behind the cursor, of all that shards have."""
    assert order.combine is not None
    items = grouped(every_item(found.bodies), order.place, order.combine)
    if (cursor := ask.given.get("cursor")) is not None:
        after, place = sorting.read(cursor), by_field(sorting).place
        items = [each for each in items if sorting.is_after(place(each), after)]
    return {"items": items, "cursor": None}


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
            return _one_of(await shards.ask_all(ask))
        if self.reading is None:
            return await _change_in_turn(shards, ask)
        found = await shards.ask_all(self.reading(ask))
        holders = [each.shard for each in found if has_it(each)]
        if not holders and any(isinstance(each, NoAnswer) for each in found):
            raise _nowhere(found)
        # A shard that does not have it either says so, and writes the attempt into its audit.
        return _alone(await shards.ask(holders[0] if holders else shards.number, ask))


async def _change_in_turn(shards: Shards, ask: Ask) -> Json:
    found: list[Answer | NoAnswer] = []
    for shard in sorted(shards.numbers, key=lambda each: each != shards.number):
        answer = await shards.ask(shard, ask)
        if isinstance(answer, Answer) and answer.status not in _NOT_HERE:
            return _alone(answer)
        found.append(answer)
    raise _nowhere(found)


def _one_of(found: Found) -> Json:
    for each in filter(has_it, found):
        return _alone(each)
    raise _nowhere(found)


def _nowhere(found: Found) -> RequestFailed:
    """Return that no shard has it, unless one that may have it is silent."""
    return refusal([each for each in found if isinstance(each, NoAnswer)] or found)


def _alone(answer: Answer | NoAnswer) -> Json:
    """Return what one shard has answered, and which."""
    if isinstance(answer, NoAnswer):
        text = f"shard {answer.shard}: {answer.reason}"
        raise RequestFailed(TOO_SLOW, f"{text}; if this changes something, it may have done so")
    if not has_it(answer):
        raise refusal([answer])
    return {**answer.json, _SHARD: answer.shard} if answer.json else {}


@dataclass(frozen=True, slots=True)
class Sweep:
    """Changes many things, at most so many of all shards: one after the other does its part."""

    usual: int
    done: str
    sums: Combine

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        assert isinstance(ask.body, bytes)
        given = orjson.loads(ask.body)
        if given["dry_run"]:
            return await All(self.sums, SWEEP_S).answer(shards, ask)
        left, found = given.get("limit", self.usual), list[Answer | NoAnswer]()
        for shard in shards.numbers:
            part = {**given, "limit": left} if left else {**given, "dry_run": True}
            answer = await shards.ask(shard, replace(ask, body=orjson.dumps(part)), SWEEP_S)
            found.append(answer)
            if has_it(answer):
                left -= answer.json[self.done]
        joint = heard(found)
        return joint.whole({**self.sums(joint.bodies), "dry_run": False})


@dataclass(frozen=True, slots=True)
class Ranked:
    """Pages of a list that is sorted by size: all of it is read, to join what belongs together."""

    key: Callable[[Json], object]
    size: str
    make: Combine
    usual: int

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        start = ask.given.get("cursor", "0")
        # A cursor that is none is refused by the shards.
        begin = asking(ask, cursor=None if _PLACE.fullmatch(start) else start)
        found = await _wholes(shards, begin)
        items = grouped(every_item(found.bodies), self.key, self.make)
        items.sort(key=lambda each: -int(each[self.size]))
        end = int(start) + limit_of(ask, self.usual)
        page = {
            "items": items[int(start) : end],
            "cursor": str(end) if len(items) > end else None,
            "total": sum(each["total"] for each in found.bodies),
        }
        return found.whole(page)


async def _wholes(shards: Shards, ask: Ask) -> Heard:
    """Return the whole list of each shard."""
    return heard(await asyncio.gather(*(_whole_of(shards, each, ask) for each in shards.numbers)))


async def _whole_of(shards: Shards, shard: int, ask: Ask) -> Answer | NoAnswer:
    items: list[Json] = []
    while True:
        answer = await shards.ask(shard, ask)
        if not has_it(answer):
            return answer
        items += answer.json["items"]
        if answer.json["cursor"] is None:
            return replace(answer, json={**answer.json, "items": items})
        ask = asking(ask, cursor=answer.json["cursor"])


@dataclass(frozen=True, slots=True)
class Parts:
    """Something that all shards have in parts. The cursor joins their cursors with `.`."""

    join: Combine

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        given = ask.given.get("cursor")
        count = len(shards.numbers)
        cursors: list[str | None] = [None] * count if given is None else [*given.split(".")]
        if len(cursors) != count:
            # It is refused by the shards.
            cursors = [given] * count
        asked = (
            shards.ask(shard, asking(ask, cursor=each))
            for shard, each in enumerate(cursors)
            if each != ""
        )
        found = heard(await asyncio.gather(*asked))
        ends = [found.answers.get(shard, {}).get("cursor") for shard in shards.numbers]
        cursor = ".".join(each or "" for each in ends) if any(ends) else None
        return found.whole({**self.join(found.bodies), "cursor": cursor})


@dataclass(frozen=True, slots=True)
class Exported:
    """The lines of all shards, one shard after the other."""

    async def answer(self, shards: Shards, ask: Ask) -> AsyncIterator[bytes]:
        await all_there(shards, ask, "An export has all letters or none")
        return lines_in(_exported(shards, ask))


async def _exported(shards: Shards, ask: Ask) -> AsyncIterator[bytes]:
    for shard in shards.numbers:
        try:
            status, parts = await shards.open(shard, ask)
            async with aclosing(parts):
                if status >= 300:
                    raise refusal([Answer(shard, status, await json_of(parts))])
                async for part in parts:
                    yield part
        except Unreachable:
            raise refusal([NoAnswer(shard, UNREACHABLE)]) from None


async def all_there(shards: Shards, ask: Ask, else_: str) -> None:
    """Ask whether all shards answer, before a request about letters begins.

    Raises `RequestFailed` if one does not, with what follows from that.
    """
    found = await shards.ask_all(Ask(ROUTE["about"], {}, ask.who))
    if missing := [each for each in found if not has_it(each)]:
        raise RequestFailed(AWAY, f"{refusal(missing).message}. {else_}")


def limit_of(ask: Ask, usual: int) -> int:
    """Return how many items are wanted."""
    return int(ask.given.get("limit", usual))
