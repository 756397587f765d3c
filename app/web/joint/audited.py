"""The audit of all shards, in which what all of them did for one request is one entry."""

from collections.abc import Mapping
from typing import Any

from holdfast.web.joint.asking import Json
from holdfast.web.joint.lists import Order, joined

_SAME = ("who", "action", "target", "outcome", "detail")
# A request reaches all shards within this time.
_AT_ONCE_MS = 1000


def audited(pages: Mapping[int, Json], limit: int, order: Order) -> Json:
    """Return one page of the audit, in which what is alike but for its time is sorted by that."""
    for shard, page in pages.items():
        for entry in page["items"]:
            entry["shard"] = shard
    page = joined([*pages.values()], limit, order)
    return {**page, "items": _once(page["items"])}


def _once(entries: list[Json]) -> list[Json]:
    """Return the entries without those that other shards have of the same request."""
    kept = list[Json]()
    # When the first entry of each kind was made, and the shards that have one.
    firsts: dict[Any, tuple[int, set[int]]] = {}
    for entry in entries:
        kind, shard = repr([entry[name] for name in _SAME]), entry.pop("shard")
        time, shards = firsts.get(kind, (0, set[int]()))
        if shards and shard not in shards and abs(time - entry["time"]) <= _AT_ONCE_MS:
            shards.add(shard)
        else:
            firsts[kind] = (entry["time"], {shard})
            kept.append(entry)
    return kept
