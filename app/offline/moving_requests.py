"""Moves outstanding requests, with what the shards of those know that may answer them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson

from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.storing import RequestFields
from holdfast.delivery.requests.stored_fields import OF_OTHERS, responder_of
from holdfast.offline.division import Places
from holdfast.offline.moving import Moving, step
from holdfast.store.format import records
from holdfast.store.format.layouts import NEWEST
from holdfast.store.format.records import UNREADABLE


async def move_requests(moving: Moving) -> None:
    """Move outstanding requests to the sessions that asked.

    Of other shards, those know of a request that get sessions which may answer it.
    """
    found = _Requests(moving.places)
    for source in moving.sources:
        stored = await source.whole(source.keys.requests)
        found.add(source.shard, {each.decode(): _bare(each, stored[each]) for each in stored})
    for shard, fields in found.divided():
        writer = moving.writers[shard]
        for name, value in fields.items():
            await writer.write("HSET", writer.keys.requests, name, _with_sum(name, value))


def _bare(name: bytes, value: bytes) -> bytes:
    try:
        return records.without_sum(name.decode(), value)
    except UNREADABLE:
        return value


def _with_sum(name: str, value: bytes) -> bytes:
    try:
        orjson.loads(value)
    except UNREADABLE:
        # It stays as it is, with a checksum that does not match.
        return value
    return records.with_sum(name, value, NEWEST)


class _Own(NamedTuple):
    """A request, and the shard that gets the session that asked."""

    shard: int
    record: bytes
    is_readable: bool
    # By responder.
    said: dict[str, bytes]


class _Known(NamedTuple):
    """A request, and what sessions have said that may answer it."""

    record: dict[str, Any]
    said: dict[str, bytes]


class _Requests:
    """The outstanding requests of all shards."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._own: dict[str, _Own] = {}
        # By address and shard: which sessions that this shard gets may answer.
        self._known: dict[tuple[str, int], _Known] = {}

    def add(self, source: int, fields: RequestFields) -> None:
        """Add the fields of a shard."""
        said: dict[str, dict[str, bytes]] = {}
        records: dict[str, bytes] = {}
        for field, value in fields.items():
            name, key = responder_of(field)
            if key:
                said.setdefault(name, {})[key] = value
            else:
                records[name] = value
        # What was said about a request that has ended is left behind.
        for name, record in records.items():
            its, known = said.get(name, {}), _read(record)
            address = name.removeprefix(OF_OTHERS)
            if address == name:
                shard = _place_of(self._places, source, record)
                self._own[address] = _Own(shard, record, known is not None, its)
            if known is not None:
                self._know(source, address, _Known(known, its))

    def _know(self, source: int, address: str, known: _Known) -> None:
        responders = known.record["responders"]
        for key in {*responders, *known.said}:
            shard = self._places.of_receiver(key, source)
            nothing = _Known({**known.record, "responders": []}, {})
            its = self._known.setdefault((address, shard), nothing)
            if key in responders and key not in its.record["responders"]:
                its.record["responders"].append(key)
            if key in known.said:
                its.said[key] = known.said[key]

    def divided(self) -> Iterator[tuple[int, RequestFields]]:
        """Yield shards, each with fields that it gets."""
        for address, own in self._own.items():
            record, said = own.record, own.said
            here = self._known.pop((address, own.shard), None)
            if here is not None and own.is_readable:
                # Its shard gets these responders from others.
                found = orjson.loads(record)
                found["responders"] = sorted({*found["responders"], *here.record["responders"]})
                record, said = to_json(found), {**said, **here.said}
            yield own.shard, _fields(address, record, said)
        for (address, shard), known in self._known.items():
            if address in self._own:
                known.record["responders"].sort()
                yield shard, _fields(OF_OTHERS + address, to_json(known.record), known.said)


def _place_of(places: Places, source: int, record: bytes) -> int:
    try:
        return places.of_receiver(orjson.loads(record)["requester"], source)
    except UNREADABLE:
        return places.of_source(source)


def _read(record: bytes) -> dict[str, Any] | None:
    """Return the stored record of a request; None if it is unreadable."""
    try:
        found: dict[str, Any] = orjson.loads(record)
        return found if isinstance(found["responders"], list) else None
    except UNREADABLE:
        return None


def _fields(name: str, record: bytes, said: Mapping[str, bytes]) -> RequestFields:
    return {name: record, **{f"{name} {key}": value for key, value in said.items()}}


REQUESTS: Final = (step("requests", move_requests),)
