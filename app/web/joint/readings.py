"""Joins readings of all shards: the figures, and what is stuck now."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from holdfast.web.admin.now_sentence import sentence
from holdfast.web.admin.now_views import Now
from holdfast.web.admin.tallying import MOST
from holdfast.web.joint.asking import Json
from holdfast.web.joint.sums import added, earliest, held_channel, known, latest, with_sums

# Figures that are no sums.
_OTHERS: Mapping[str, Callable[[list[Any]], Any]] = {
    "time": latest,
    "node": lambda found: found[0],
    "version": lambda found: found[0],
    "started": earliest,
    "oldest_ms": latest,
    "letters_oldest": earliest,
    # Operators hold a channel back in all shards.
    "channels_held_back": latest,
    "store_available": all,
    "latency": lambda found: _latency(known(found)),
}
_STORES = ("full", "unavailable", "available")
_WAITING = ("waiting", "in_flight")


def figures(found: Sequence[Json]) -> Json:
    """Return the figures of all shards."""
    names = [name for name in found[0] if name != "unanswered"]
    return {name: _OTHERS.get(name, added)([each[name] for each in found]) for name in names}


def _latency(found: list[Json]) -> Json | None:
    """Return the latencies of the slowest shard."""
    if not found:
        return None
    slowest = {name: max(each[name] for each in found) for name in found[0]}
    return {**slowest, "count": sum(each["count"] for each in found)}


def now(found: Mapping[int, Json], missing: Mapping[int, str], limit: int) -> Json:
    """Return what is stuck now in all shards; each list has so many items at most.

    Args:
        missing: The states of shards that have not answered.
    """
    all_of = list(found.values())

    def lists(name: str) -> list[Json]:
        return [each[name] for each in all_of]

    def receivers(name: str, key: Callable[[Json], Any] = _fullest) -> Json:
        return _first(lists(name), limit, key)

    joint = {
        **with_sums(all_of, *_WAITING),
        "sentence": "",
        "time": latest(lists("time")),
        "store": min(lists("store"), key=_STORES.index),
        "shards": {
            "items": shards({n: each["shards"]["items"] for n, each in found.items()}, missing),
            "more": 0,
        },
        "alerts": _first([_named(*each) for each in found.items()], MOST, _since),
        "oldest": min(
            known(lists("oldest")), key=lambda each: int(each["published"]), default=None
        ),
        "oldest_receivers": receivers("oldest_receivers", _oldest),
        "receivers": receivers("receivers"),
        "channels": _first(lists("channels"), limit, _fullest, _channel),
        "work_queues": _first(lists("work_queues"), limit, _most_work, _work),
        "workers": receivers("workers", lambda each: str(each["channel"])),
        "held_back": receivers("held_back"),
        "held_channels": _first(lists("held_channels"), limit, _since, held_channel),
        "unreachable": receivers("unreachable"),
        "letters": _letters(lists("letters"), limit),
        "figures": figures(lists("figures")),
    }
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


def _fullest(each: Json) -> int:
    return -int(each["waiting"]) - int(each["in_flight"])


def _most_work(each: Json) -> int:
    return -int(each["waiting"]) - int(each["in_work"])


def _oldest(each: Json) -> tuple[bool, int]:
    return each["oldest"] is None, each["oldest"] or 0


def _since(each: Json) -> int:
    return int(each["since"])


def _first(
    lists: Iterable[Json],
    limit: int,
    key: Callable[[Json], Any],
    combine: Callable[[list[Json]], Json] | None = None,
) -> Json:
    """Return the first items of all lists, and how many more there are."""
    lists = list(lists)
    items = [item for each in lists for item in each["items"]]
    if combine is not None:
        by_channel: dict[str, list[Json]] = {}
        for item in items:
            by_channel.setdefault(item["channel"], []).append(item)
        items = [combine(each) for each in by_channel.values()]
    items.sort(key=key)
    more = sum(each["more"] for each in lists)
    return {"items": items[:limit], "more": more + len(items[limit:])}


def _channel(found: list[Json]) -> Json:
    sums = with_sums(found, *_WAITING, "receivers")
    return {**sums, "held": any(each["held"] for each in found)}


def _work(found: list[Json]) -> Json:
    """Return a work queue: what waits is at its home, what is in work is where the workers are."""
    return with_sums(
        *(found, "waiting", "unassigned", "in_work", "receivers"),
        oldest=earliest(each["oldest"] for each in found),
        since=earliest(each["since"] for each in found),
    )


def _named(shard: int, reading: Json) -> Json:
    """Return the alerts of a shard, which say whose they are."""
    alerts = reading["alerts"]
    items = [{**each, "reason": f"shard {shard}: {each['reason']}"} for each in alerts["items"]]
    return {**alerts, "items": items}


def _letters(found: Sequence[Json | None], limit: int) -> Json | None:
    """Return the dead letters by code; the last row counts all other codes."""
    if None in found:
        return None
    counts: dict[str | None, int] = {}
    for each in found:
        for item in each["items"] if each else ():
            counts[item["code"]] = counts.get(item["code"], 0) + item["letters"]
    others = counts.pop(None, 0)
    codes = sorted(counts, key=lambda code: -counts[code])
    others += sum(counts[code] for code in codes[limit:])
    items = [{"code": code, "letters": counts[code]} for code in codes[:limit]]
    return {"items": [*items, *([{"code": None, "letters": others}] if others else ())], "more": 0}
