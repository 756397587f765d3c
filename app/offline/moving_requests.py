"""Moves outstanding requests, with what the shards of those know that may answer them."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import orjson

from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.storing import RequestFields
from holdfast.delivery.requests.of_others import Asked, Kept, fields_of, is_of_others, kept_in
from holdfast.delivery.requests.stored_fields import responder_of
from holdfast.offline.division import Places
from holdfast.offline.moving import Moving, step
from holdfast.offline.shard_side import UNREADABLE


async def move_requests(moving: Moving) -> None:
    """Move outstanding requests to the sessions that asked.

    Of other shards, those know of a request that get sessions which may answer it.
    """
    found = _Requests(moving.places)
    for source in moving.sources:
        stored = await source.whole(source.keys.requests)
        found.add(source.shard, {name.decode(): value for name, value in stored.items()})
    for shard, fields in found.divided():
        writer = moving.writers[shard]
        for name, value in fields.items():
            await writer.write("HSET", writer.keys.requests, name, value)


class _Own(NamedTuple):
    """A request, and the shard that gets the session that asked."""

    shard: int
    record: bytes
    is_readable: bool
    # By responder.
    said: dict[str, bytes]


class _Requests:
    """The outstanding requests of all shards."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._own: dict[str, _Own] = {}
        # By address and shard: which sessions that this shard gets may answer.
        self._known: dict[tuple[str, int], Kept] = {}

    def add(self, source: int, fields: RequestFields) -> None:
        """Add the fields of a shard."""
        of_others = {name: value for name, value in fields.items() if is_of_others(name)}
        for kept in kept_in(of_others).values():
            self._know(source, kept)
        said: dict[str, dict[str, bytes]] = {}
        records: dict[str, bytes] = {}
        for name, value in fields.items():
            address, key = responder_of(name)
            if key:
                said.setdefault(address, {})[key] = value
            elif name not in of_others:
                records[address] = value
        # What was said about a request that has ended is left behind.
        for address, record in records.items():
            its = said.get(address, {})
            shard = _place_of(self._places, source, record)
            kept = _kept(address, record, its)
            self._own[address] = _Own(shard, record, kept is not None, its)
            self._know(source, kept)

    def _know(self, source: int, kept: Kept | None) -> None:
        if kept is None:
            return
        for key in {*kept.responders, *kept.said}:
            shard = self._places.of_receiver(key, source)
            nothing = kept._replace(responders=[], said={})
            its = self._known.setdefault((kept.asked.address, shard), nothing)
            if key in kept.responders and key not in its.responders:
                its.responders.append(key)
            if key in kept.said:
                its.said[key] = kept.said[key]

    def divided(self) -> Iterator[tuple[int, RequestFields]]:
        """Yield shards, each with fields that it gets."""
        for address, own in self._own.items():
            yield own.shard, _fields(address, own, self._known.pop((address, own.shard), None))
        for (address, shard), kept in self._known.items():
            if address in self._own:
                yield shard, fields_of(kept)


def _place_of(places: Places, source: int, record: bytes) -> int:
    try:
        return places.of_receiver(orjson.loads(record)["requester"], source)
    except UNREADABLE:
        return places.of_source(source)


def _kept(address: str, record: bytes, said: dict[str, bytes]) -> Kept | None:
    """Return a request as other shards may know it; None if its record is unreadable."""
    try:
        found = orjson.loads(record)
        asked = Asked(address, found["mode"], found["timeout_ms"], found["deadline_ms"])
        responders, is_work = [*found["responders"]], found["is_work"]
        return Kept(asked, found["channel"], found["id"], responders, said, is_work)
    except UNREADABLE:
        return None


def _fields(address: str, own: _Own, here: Kept | None) -> RequestFields:
    """Return the fields of a request, with the responders that its shard gets from others."""
    record, said = own.record, own.said
    if here is not None and own.is_readable:
        found = orjson.loads(record)
        found["responders"] = sorted({*found["responders"], *here.responders})
        record, said = to_json(found), {**said, **here.said}
    return {address: record, **{f"{address} {key}": value for key, value in said.items()}}


REQUESTS: Final = (step("requests", move_requests),)
