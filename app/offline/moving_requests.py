"""Moves outstanding requests, with what the shards of those know that may answer them."""

from collections.abc import Iterator
from typing import Final

import orjson

from holdfast.delivery.messages.storing import RequestFields
from holdfast.delivery.requests.of_others import Asked, Kept, fields_of, is_of_others, kept_in
from holdfast.delivery.requests.stored_fields import responder_of
from holdfast.offline.division import Places
from holdfast.offline.moving import UNREADABLE, Moving, step


async def move_requests(moving: Moving) -> None:
    """Move outstanding requests to the sessions that asked.

    Of other shards, those know of a request that get sessions which may answer it.
    """
    of_others = _OfOthers(moving.places)
    for source in moving.sources:
        found = await source.whole(source.keys.requests)
        fields = {name.decode(): value for name, value in found.items()}
        far = {name: value for name, value in fields.items() if is_of_others(name)}
        for kept in kept_in(far).values():
            if kept is not None:
                of_others.add(kept, source.shard)
        own = {name: value for name, value in fields.items() if name not in far}
        await _move_own(moving, source.shard, own, of_others)
    for shard, known in of_others.known():
        writer = moving.writers[shard]
        for name, value in fields_of(known).items():
            await writer.write("HSET", writer.keys.requests, name, value)


async def _move_own(
    moving: Moving, source: int, fields: RequestFields, of_others: "_OfOthers"
) -> None:
    said: dict[str, dict[str, bytes]] = {}
    for name, value in fields.items():
        address, key = responder_of(name)
        if key:
            said.setdefault(address, {})[key] = value
    for address, record in fields.items():
        if responder_of(address)[1]:
            # What was said about a request that has ended is left behind.
            continue
        shard = _place_of(moving.places, source, record)
        writer = moving.writers[shard]
        its = said.get(address, {})
        names = {address: record, **{f"{address} {key}": value for key, value in its.items()}}
        for name, value in names.items():
            await writer.write("HSET", writer.keys.requests, name, value)
        of_others.asked_in(address, shard)
        known = _known(address, record, its)
        if known is not None:
            of_others.add(known, source)


def _place_of(places: Places, source: int, record: bytes) -> int:
    try:
        return places.of_receiver(orjson.loads(record)["requester"], source)
    except UNREADABLE:
        return places.of_source(source)


def _known(address: str, record: bytes, said: dict[str, bytes]) -> Kept | None:
    """Return what other shards may know of a request of this one; None if it is unreadable."""
    try:
        found = orjson.loads(record)
        asked = Asked(address, found["mode"], found["timeout_ms"], found["deadline_ms"])
        responders, is_work = [*found["responders"]], found["is_work"]
        return Kept(asked, found["channel"], found["id"], responders, said, is_work)
    except UNREADABLE:
        return None


class _OfOthers:
    """The requests that sessions of other shards may answer."""

    def __init__(self, places: Places) -> None:
        self._places = places
        # By address, the shard that gets who has asked.
        self._asked_in: dict[str, int] = {}
        # By address and shard, what that shard has to know.
        self._known: dict[tuple[str, int], Kept] = {}

    def asked_in(self, address: str, shard: int) -> None:
        """Note which shard gets the session that has asked."""
        self._asked_in[address] = shard

    def add(self, known: Kept, source: int) -> None:
        """Add what the shard `source` knows: who may answer a request, and what they have said."""
        for key in {*known.responders, *known.said}:
            shard = self._places.of_receiver(key, source)
            nothing = known._replace(responders=[], said={})
            its = self._known.setdefault((known.asked.address, shard), nothing)
            if key in known.responders and key not in its.responders:
                its.responders.append(key)
            if key in known.said:
                its.said[key] = known.said[key]

    def known(self) -> Iterator[tuple[int, Kept]]:
        """Yield what each shard has to know of requests of others."""
        for (address, shard), known in self._known.items():
            if self._asked_in.get(address, shard) != shard:
                yield shard, known


REQUESTS: Final = (step("requests", move_requests),)
