"""`holdfast top --since`: the figures of the past, and who publishes and gets most."""

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.cli.lists import ListRange
from holdfast.cli.output import (
    Cell,
    Json,
    note,
    print_facts,
    print_items,
    print_json,
    print_table,
    visible,
    when,
)
from holdfast.cli.remote import Server
from holdfast.delivery.basics.ranking import RankingKind
from holdfast.store.format.figure_records import COUNTS, LENGTHS

_MS_PER_S = 1000
# Counts without a rate.
_MARKS = frozenset({"starts", "holds", "replays"})
# Of rankings: how many names are shown if all of them are.
_FEW = 5
_TITLES = {
    RankingKind.SENDERS: "senders, by messages",
    RankingKind.CHANNELS: "channels, by messages",
    RankingKind.RECEIVERS: "receivers, by hand-overs",
    RankingKind.ERRORS: "errors, by replies",
}


class Asked(NamedTuple):
    """Which part of the past to show."""

    since: int | None
    until: int | None
    shard: int | None
    # The only ranking to show, instead of everything.
    by: RankingKind | None

    @property
    def params(self) -> Json:
        """What requests for it say."""
        names = ("since", "until", "shard")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def show(server: Server, asked: Asked, shown: ListRange) -> None:
    """Print the figures and all rankings, or one ranking."""
    if asked.by is not None:
        _show_ranking(server, asked.by, _ranking(server, asked.by, asked, shown))
        return
    found = server.get("/figures/past", asked.params)
    rankings = {by.value: _ranking(server, by, asked, shown) for by in _TITLES}
    summary = _summary(found)
    if server.as_json:
        print_json({**summary, "top": rankings})
        return
    print_facts({name: summary[name] for name in ("since", "until")}, ("since", "until"))
    if not found["rows"]:
        note("No server ran in this time.")
        return
    _print_summary(summary)
    for by, title in _TITLES.items():
        if rankings[by]["items"]:
            sys.stdout.write(f"\n{title}\n")
            _print_ranking(rankings[by])


def _ranking(server: Server, by: RankingKind, asked: Asked, shown: ListRange) -> Json:
    few = _FEW if asked.by is None else 20
    limit = few if shown.limit is None else shown.limit
    found: Json = server.get("/figures/top", {**asked.params, "by": by, "limit": limit})
    found["items"] = [*shown.sorted(found["items"])]
    return found


def _show_ranking(server: Server, by: RankingKind, ranking: Json) -> None:
    if server.as_json:
        print_json(ranking)
        return
    sys.stdout.write(f"{_TITLES[by]}, since {when(ranking['since'])}\n")
    _print_ranking(ranking)


def _print_ranking(ranking: Json) -> None:
    columns = ["name", "count"]
    if ranking["missing"]:
        columns.append("at_most")
    print_items(columns, ranking["items"])


def _summary(found: Json) -> Json:
    """Return the sums of all rows, and the most of any of them."""
    rows = found["rows"]
    counts = {name: sum(row[name] for row in rows) for name in COUNTS}
    lengths = {name: max((row[name] for row in rows), default=0) for name in LENGTHS}
    served_ms = sum(row["served_ms"] for row in rows)
    most = {name: max((_rate(row, name) for row in rows), default=0.0) for name in COUNTS}
    times = {
        name: _times(bounds, [row[name] for row in rows])
        for name, bounds in found["bounds"].items()
    }
    return {
        **{name: found[name] for name in ("since", "until", "step_ms")},
        "served_ms": served_ms,
        "counts": counts,
        "most_per_second": most,
        "most": lengths,
        "times": times,
    }


def _rate(row: Json, name: str) -> float:
    rate: float = row[name] * _MS_PER_S / max(row["served_ms"], 1)
    return round(rate, 3)


def _times(bounds: Sequence[float], rows: Sequence[Sequence[int]]) -> Json:
    buckets = [sum(column) for column in zip(*rows, strict=True)]
    return {
        "count": sum(buckets),
        "half_within_s": within(bounds, buckets, 0.5),
        "99_percent_within_s": within(bounds, buckets, 0.99),
    }


def within(bounds: Sequence[float], buckets: Sequence[int], part: float) -> float | None:
    """Return the bound that this part of all times does not exceed; None if there is none."""
    needed, seen = part * sum(buckets), 0
    for bound, count in zip(bounds, buckets, strict=False):
        seen += count
        if count and seen >= needed:
            return bound
    return None


def _print_summary(summary: Json) -> None:
    served_s = summary["served_ms"] / _MS_PER_S
    sys.stdout.write("\n")
    print_table(("FIGURE", "TOTAL", "PER SECOND", "MOST"), _count_rows(summary, served_s))
    sys.stdout.write("\n")
    lengths = ((_words(name), value) for name, value in summary["most"].items())
    print_table(("LENGTH", "MOST"), lengths)
    measured = {name: each for name, each in summary["times"].items() if each["count"]}
    if measured:
        sys.stdout.write("\n")
        heads = ("TIME", "COUNT", "HALF WITHIN", "99 % WITHIN")
        print_table(heads, (_time_row(name, each) for name, each in measured.items()))


def _count_rows(summary: Json, served_s: float) -> Iterator[tuple[object, ...]]:
    most = summary["most_per_second"]
    for name, count in summary["counts"].items():
        rates = (count / max(served_s, 0.001), most[name])
        yield _words(name), count, *("" if name in _MARKS else f"{rate:.2f}" for rate in rates)


def _time_row(name: str, each: Json) -> tuple[object, ...]:
    parts = (each["half_within_s"], each["99_percent_within_s"])
    return _words(name), each["count"], *map(_bound, parts)


def _bound(seconds: float | None) -> Cell:
    if seconds is None:
        return Cell("longer", "")
    text = f"{seconds * _MS_PER_S:g} ms" if seconds < 1 else f"{seconds:g} s"
    return Cell(text, seconds)


def _words(name: str) -> str:
    return visible(name.replace("_", " "))
