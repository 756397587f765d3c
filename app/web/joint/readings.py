"""Joins readings of all shards: the figures, and what is stuck now."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final

from pydantic import TypeAdapter

from holdfast.web.admin.now_sentence import sentence
from holdfast.web.admin.now_views import Now
from holdfast.web.admin.tallying import MOST
from holdfast.web.joint.asking import Json
from holdfast.web.joint.lists import Combine, every_item, grouped
from holdfast.web.joint.sums import Merge, earliest, held_channel, known, latest, merged

_STORES = ("full", "unavailable", "available")
_WAITING = ("waiting", "in_flight")


def _latency(found: list[Json | None]) -> Json | None:
    """Return the latencies of the slowest shard."""
    measured = known(found)
    if not measured:
        return None
    slowest = {name: max(each[name] for each in measured) for name in measured[0]}
    return {**slowest, "count": sum(each["count"] for each in measured)}


# Figures that are no sums.
_OTHERS: Final[Mapping[str, Merge]] = {
    "time": latest,
    "node": itemgetter(0),
    "version": itemgetter(0),
    "started": earliest,
    "oldest_ms": latest,
    "letters_oldest": earliest,
    # Operators hold a channel back in all shards.
    "channels_held_back": latest,
    "store_available": all,
    "latency": _latency,
}


def figures(found: Sequence[Json]) -> Json:
    """Return the figures of all shards."""
    return merged(found, found[0].keys() - _OTHERS.keys(), **_OTHERS)


def _fullest(each: Json) -> int:
    return -int(each["waiting"]) - int(each["in_flight"])


def _most_work(each: Json) -> int:
    return -int(each["waiting"]) - int(each["in_work"])


def _oldest(each: Json) -> tuple[bool, int]:
    return each["oldest"] is None, each["oldest"] or 0


def _channel(found: list[Json]) -> Json:
    return merged(found, (*_WAITING, "receivers"), held=any)


def _work(found: list[Json]) -> Json:
    """Return a work queue: what waits is at its home, what is in work is where the workers are."""
    sums = ("waiting", "unassigned", "in_work", "receivers")
    return merged(found, sums, oldest=earliest, since=earliest)


# By which key each list is sorted, and what joins the items of one channel.
_LISTS: Final[Mapping[str, tuple[Callable[[Json], Any], Combine | None]]] = {
    "backend": (itemgetter("shard"), None),
    "oldest_receivers": (_oldest, None),
    "receivers": (_fullest, None),
    "channels": (_fullest, _channel),
    "work_queues": (_most_work, _work),
    "workers": (itemgetter("channel"), None),
    "held_back": (_fullest, None),
    "held_channels": (itemgetter("since"), held_channel),
    "unreachable": (_fullest, None),
}


def now(found: Mapping[int, Json], missing: Mapping[int, str], limit: int) -> Json:
    """Return what is stuck now in all shards; each list has so many items at most.

    Args:
        missing: The states of shards that have not answered.
    """
    rows = shards({n: each["shards"]["items"] for n, each in found.items()}, missing)
    merges = {name: partial(_first, limit, *how) for name, how in _LISTS.items()}
    joint = merged(
        [*found.values()],
        _WAITING,
        sentence=lambda _: "",
        time=latest,
        store=lambda states: min(states, key=_STORES.index),
        shards=lambda _: {"items": rows, "more": 0},
        alerts=lambda alerts: _first(MOST, itemgetter("since"), None, map(_named, found, alerts)),
        oldest=lambda each: min(known(each), key=lambda one: int(one["published"]), default=None),
        letters=partial(_letters, limit),
        figures=figures,
        **merges,
    )
    return {**joint, "sentence": sentence(TypeAdapter(Now).validate_python(joint))}


def shards(found: Mapping[int, Sequence[Json]], missing: Mapping[int, str]) -> list[Json]:
    """Return a row for each shard: its own view of itself, and what others know of it.

    Args:
        found: The rows that each shard has for all.
        missing: The states of shards that have not answered.
    """
    rows: dict[int, list[Json]] = {}
    for number, its in found.items():
        for row in its:
            # The own view goes first.
            rows.setdefault(row["shard"], []).insert(0 if row["shard"] == number else 1, row)
    return [
        {
            **{name: next(iter(known(each[name] for each in its)), None) for name in its[0]},
            "behind_ms": latest(each["behind_ms"] for each in its),
            "state": missing.get(shard, "serving"),
        }
        for shard, its in sorted(rows.items())
    ]


def _first(
    limit: int, key: Callable[[Json], Any], combine: Combine | None, found: Iterable[Json]
) -> Json:
    """Return the first items of all lists, and how many more there are."""
    lists = [*found]
    items = [*every_item(lists)]
    if combine is not None:
        items = grouped(items, itemgetter("channel"), combine)
    items.sort(key=key)
    more = sum(each["more"] for each in lists)
    return {"items": items[:limit], "more": more + len(items[limit:])}


def _named(shard: int, alerts: Json) -> Json:
    """Return the alerts of a shard, which say whose they are."""
    items = [{**each, "reason": f"shard {shard}: {each['reason']}"} for each in alerts["items"]]
    return {**alerts, "items": items}


def _letters(limit: int, found: Sequence[Json | None]) -> Json | None:
    """Return the dead letters by code; the last row counts all other codes."""
    if None in found:
        return None
    by_code = grouped(
        every_item(known(found)), itemgetter("code"), lambda each: merged(each, ("letters",))
    )
    codes = sorted(by_code, key=lambda each: (each["code"] is None, -each["letters"]))
    named = [each for each in codes if each["code"] is not None][:limit]
    others = sum(each["letters"] for each in codes[len(named) :])
    rest = [{"code": None, "letters": others}] if others else []
    return {"items": [*named, *rest], "more": 0}
