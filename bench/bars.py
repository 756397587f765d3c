"""Compares results with the targets in bars.toml."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.measure import Result
from bench.plan import read_table
from bench.tables import Runs, group, lay_out, main_figure

SUBJECT = "holdfast"
# Holdfast without its journal.
SILENT = "holdfast-silent"


@dataclass(frozen=True, slots=True)
class TimesAnother:
    """The least ratios of a figure to that of another workload: ours, and the better peer's."""

    workload: str
    figure: str
    ours: float
    peers: float


@dataclass(frozen=True, slots=True)
class Bars:
    times_the_better_peer: Mapping[str, float]
    times_another: Mapping[str, TimesAnother]
    times_silent: Mapping[str, float]
    at_most_the_better_peer: Mapping[str, str]
    at_most: Mapping[str, Mapping[str, float]]
    at_least: Mapping[str, Mapping[str, float]]
    never: tuple[str, ...]


class Verdict(NamedTuple):
    """One row of the table; `met` is None when there is nothing to compare with."""

    workload: str
    figure: str
    ours: float | None
    peer: str
    ratio: float | None
    bar: str
    met: bool | None


def read_bars(path: Path) -> Bars:
    rows = read_table(path)
    return Bars(
        times_the_better_peer=rows["times_the_better_peer"],
        times_another={
            workload: TimesAnother(**row) for workload, row in rows["times_another"].items()
        },
        times_silent=rows["times_silent"],
        at_most_the_better_peer=rows["at_most_the_better_peer"],
        at_most=rows["at_most"],
        at_least=rows["at_least"],
        never=tuple(rows["never"]["counts"]),
    )


def judge(results: Iterable[Result], bars: Bars, *, peers: Collection[str]) -> list[Verdict]:
    """Return the verdicts on every workload that was run against Holdfast."""
    groups = group(results)
    verdicts: list[Verdict] = []
    for workload, servers in groups.items():
        if SUBJECT not in servers:
            continue
        theirs = [runs for name, runs in servers.items() if name in peers]
        verdicts += judge_workload(workload, ours=servers[SUBJECT], theirs=theirs, bars=bars)
        if SILENT in servers and workload in bars.times_silent:
            least = bars.times_silent[workload]
            verdicts.append(judge_journal(workload, servers[SUBJECT], servers[SILENT], least))
        bar = bars.times_another.get(workload)
        if bar is not None and bar.workload in groups:
            verdicts += judge_beside_another(workload, servers, groups[bar.workload], bar, peers)
    return verdicts


def judge_journal(workload: str, ours: Runs, silent: Runs, least: float) -> Verdict:
    key = main_figure([ours, silent])
    mine, without = ours.median(key), silent.median(key)
    ratio = divide(mine, without)
    met = None if ratio is None else ratio >= least
    compared = f"{SILENT} {number(without)}"
    return Verdict(workload, key, mine, compared, ratio, f">= {least:.2f} x", met)


def judge_beside_another(
    workload: str,
    servers: Mapping[str, Runs],
    others: Mapping[str, Runs],
    bar: TimesAnother,
    peers: Collection[str],
) -> Iterator[Verdict]:
    mine = servers[SUBJECT].median(bar.figure)
    theirs = medians((runs for name, runs in others.items() if name in peers), bar.figure)
    best = max(theirs, key=theirs.__getitem__, default="")
    for name, least in ((SUBJECT, bar.ours), (best, bar.peers)):
        beside = others[name].median(bar.figure) if name in others else None
        ratio = divide(mine, beside)
        met = None if ratio is None else ratio >= least
        compared = f"{name} {number(beside)}" if name else ""
        figure = f"{bar.figure} / {bar.workload}"
        yield Verdict(workload, figure, mine, compared, ratio, f">= {least:.1f} x", met)


def judge_workload(
    workload: str, *, ours: Runs, theirs: Collection[Runs], bars: Bars
) -> Iterator[Verdict]:
    if workload in bars.times_the_better_peer:
        yield judge_speed(workload, ours, theirs, least=bars.times_the_better_peer[workload])
    if workload in bars.at_most_the_better_peer:
        yield judge_beside(workload, ours, theirs, key=bars.at_most_the_better_peer[workload])
    for key, most in bars.at_most.get(workload, {}).items():
        yield judge_limit(workload, ours, key=key, most=most)
    for key, least in bars.at_least.get(workload, {}).items():
        yield judge_floor(workload, ours, key=key, least=least)
    yield judge_faults(workload, ours, counts=bars.never)


def judge_speed(workload: str, ours: Runs, theirs: Collection[Runs], *, least: float) -> Verdict:
    key = main_figure([ours, *theirs])
    mine, others = ours.median(key), medians(theirs, key)
    peer = max(others, key=others.__getitem__, default="")
    ratio = divide(mine, others.get(peer))
    met = None if not peer else ratio is not None and ratio >= least
    return Verdict(workload, key, mine, describe(peer, others), ratio, f">= {least:.1f} x", met)


def judge_beside(workload: str, ours: Runs, theirs: Collection[Runs], *, key: str) -> Verdict:
    mine, others = ours.median(key), medians(theirs, key)
    peer = min(others, key=others.__getitem__, default="")
    ratio = divide(mine, others.get(peer))
    met = None if not peer else ratio is not None and ratio <= 1
    return Verdict(workload, key, mine, describe(peer, others), ratio, "<= 1 x", met)


def judge_limit(workload: str, ours: Runs, *, key: str, most: float) -> Verdict:
    mine = ours.median(key)
    met = mine is not None and mine <= most
    return Verdict(workload, key, mine, "", None, f"<= {most:,.0f}", met)


def judge_floor(workload: str, ours: Runs, *, key: str, least: float) -> Verdict:
    mine = ours.median(key)
    met = mine is not None and mine >= least
    return Verdict(workload, key, mine, "", None, f">= {least:,.0f}", met)


def judge_faults(workload: str, ours: Runs, *, counts: Iterable[str]) -> Verdict:
    """Count the faults; a failed run is one, because nobody knows what it lost."""
    faults = sum(ours.total(count) for count in counts) + len(ours.results) - len(ours.good)
    return Verdict(workload, "faults", faults, "", None, "0", faults == 0)


def medians(runs: Iterable[Runs], key: str) -> dict[str, float]:
    found = ((each.server, each.median(key)) for each in runs)
    return {server: median for server, median in found if median}


def divide(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or not theirs else ours / theirs


def describe(peer: str, values: Mapping[str, float]) -> str:
    return f"{peer} {number(values[peer])}" if peer else ""


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"


def verdict_table(verdicts: Iterable[Verdict], *, markdown: bool) -> str:
    words = {True: "met", False: "MISSED", None: "no peer"}
    body = [
        [
            *(v.workload, v.figure, number(v.ours), v.peer),
            *("" if v.ratio is None else f"{v.ratio:.2f} x", v.bar, words[v.met]),
        ]
        for v in verdicts
    ]
    head = ["workload", "figure", SUBJECT, "better peer", "ratio", "bar", "verdict"]
    return "\n".join(lay_out(head, body, markdown=markdown))
