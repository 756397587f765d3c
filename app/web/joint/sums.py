"""Makes one thing of what several shards know of it: a channel, a replay, a group of letters."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from holdfast.web.joint.asking import Json

# The most receivers and channels that a replay names.
_MOST = 20
_UNDER_WAY = ("canary", "running", "failed", "stopped", "cancelled")

# Makes one value of those that shards have, perhaps unknown ones.
Merge = Callable[[list[Any]], Any]


def merged(found: Sequence[Json], sums: Iterable[str] = (), **others: Merge) -> Json:
    """Return the first with the sums of some fields; others are made as their functions say."""
    merges: dict[str, Merge] = {**dict.fromkeys(sums, added), **others}
    values = {name: merge([each[name] for each in found]) for name, merge in merges.items()}
    return {**found[0], **values}


def added(values: list[Any]) -> Any:  # noqa: ANN401 - numbers, perhaps unknown
    """Return the sum; unknown if a part is."""
    return None if None in values else sum(values)


def known(values: Iterable[Any]) -> list[Any]:
    return [each for each in values if each is not None]


def earliest(values: Iterable[Any]) -> Any:  # noqa: ANN401 - times, perhaps unknown
    return min(known(values), default=None)


def latest(values: Iterable[Any]) -> Any:  # noqa: ANN401 - times, perhaps unknown
    return max(known(values), default=None)


def _chained(values: list[list[Any]]) -> list[Any]:
    return [*chain.from_iterable(values)]


def _columns(values: list[list[int]]) -> list[int]:
    return [*map(sum, zip(*values, strict=True))]


def _counts(values: list[dict[str, int]]) -> dict[str, int]:
    counts = Counter[str]()
    for each in values:
        counts.update(each)
    return dict(counts)


def _largest(values: list[dict[str, int]]) -> dict[str, int]:
    return dict(Counter(_counts(values)).most_common(_MOST))


def _first_that_says(values: list[Any]) -> Any:  # noqa: ANN401 - any value
    return next(filter(None, values), None)


def channel(found: list[Json]) -> Json:
    """Return a channel of the list of channels."""
    return merged(
        found,
        ("subscribers", "letters"),
        rate=lambda rates: added(known(rates)) if known(rates) else None,
        held=any,
    )


def held_channel(found: list[Json]) -> Json:
    """Return a held channel, as the shard shows it that has held it for longest."""
    return min(found, key=itemgetter("since"))


def group(found: list[Json]) -> Json:
    """Return a group of dead letters with one cause."""
    return merged(
        sorted(found, key=itemgetter("sample"), reverse=True),
        ("count", "receivers"),
        first=earliest,
        last=latest,
        hours=_columns,
        days=_columns,
        remark=lambda remarks: max(known(remarks), key=itemgetter("at"), default=None),
    )


def replay(found: list[Json]) -> Json:
    """Return a replay, of which each shard carries out its part."""
    return merged(
        found,
        ("total", "sent", "acked", "died_again", "skipped"),
        state=lambda states: next((each for each in _UNDER_WAY if each in states), states[0]),
        over=all,
        started=earliest,
        finished=lambda times: None if None in times else max(times),
        skips=_counts,
        channels=_largest,
        receivers=_largest,
        away=_largest,
        reason=_first_that_says,
    )


def trace(found: list[Json]) -> Json:
    """Return where a message is, and its history, of all shards."""
    return merged(
        found,
        published=earliest,
        journal=any,
        lakes=lambda lakes: sorted({*_chained(lakes)}),
        queues=_chained,
        letters=_chained,
        is_cut=any,
        steps=_steps,
    )


def _steps(found: list[list[Json]]) -> list[Json]:
    """Join the steps in which shards, each for its own receivers, say that a message was published.

    The joint one has the copies of all.
    """
    published: dict[int, Json] = {}
    others = list[Json]()
    for step in _chained(found):
        if step["kind"] != "published":
            others.append(step)
        elif (first := published.get(step["at_us"])) is not None:
            first["copies"] += step["copies"]
        else:
            published[step["at_us"]] = {**step}
    return sorted([*published.values(), *others], key=itemgetter("at_us"))


def upgrade(found: list[Json]) -> Json:
    """Return the layout of the store that is furthest behind."""
    return min(found, key=itemgetter("layout"))


def once(entries: list[Json], within_ms: int = 1000) -> list[Json]:
    """Return changes of several shards without those that others have of the same request.

    It reaches all shards within this time. What each shard has done of a replay stays, and names
    the shard: two that have sent as many letters are two parts of it.
    """
    kept = list[Json]()
    # When the first entry of each kind was made, and the shards that have one.
    firsts: dict[str, tuple[int, set[int]]] = {}
    for entry in entries:
        kind = repr([entry[name] for name in ("who", "action", "target", "outcome", "detail")])
        shard = entry.pop("shard")
        if "sent" in entry["detail"]:
            kept.append({**entry, "detail": {"shard": shard, **entry["detail"]}})
            continue
        time, shards = firsts.get(kind, (0, set[int]()))
        if shards and shard not in shards and abs(time - entry["time"]) <= within_ms:
            shards.add(shard)
        else:
            firsts[kind] = entry["time"], {shard}
            kept.append(entry)
    return kept
