"""Plays thousands of seeds of all kinds, and every broken build, and goes on where it was stopped.

`python -m tests.simulation.night --home DIR`: each result is a line in DIR/results.ndjson.
"""

import argparse
import logging
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import orjson

from tests.simulation.__main__ import parsed, setting_of, shown
from tests.simulation.modes import MODES, Mode, first_seed

_HASH_SEED = "0"
_SEEDS = 3000
# How much processor time it may take to find a broken build.
_FOUND_S = 60.0
_MOST_TOLD = 5

Result = dict[str, Any]
Task = Callable[[], None]


class Results:
    """What has come of everything so far, in a file."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._path = home / "results.ndjson"
        kept = self._path.read_bytes() if self._path.exists() else b""
        # The last line may be cut off.
        kept = kept[: kept.rfind(b"\n") + 1]
        self._path.write_bytes(kept)
        self.all: list[Result] = [orjson.loads(line) for line in kept.splitlines()]

    def add(self, result: Result) -> None:
        """Keep a result."""
        self.all.append(result)
        with self._path.open("ab") as file:
            file.write(orjson.dumps(result) + b"\n")

    def first(self) -> int | None:
        """Return the first seed of what was begun."""
        return min((each["seed"] for each in self.all if "mode" in each), default=None)

    def has(self, **what: Any) -> bool:
        """Return whether there is a result of this."""
        return any(what.items() <= each.items() for each in self.all)


def main() -> int:
    """Play whatever has no result yet. Returns 1 if something is wrong, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.night", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="where results are kept")
    parser.add_argument("--seeds", type=int, default=_SEEDS, help="how many, of all kinds")
    parser.add_argument("--first", type=int, help="the first seed; the commit decides otherwise")
    parser.add_argument("--builds", help="these broken builds, and not all: NAME,NAME")
    parser.add_argument("--minutes", type=float, help="stop after so many, to go on later")
    given = parser.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())
    results = Results(given.home)
    first = given.first or results.first() or first_seed()
    print(f"seeds from {first}; results in {given.home}", flush=True)
    ends_at = time.monotonic() + 60 * (given.minutes or 1e9)
    is_complete = True
    builds = [*_builds(results, given.builds)]
    seeds = [*_seeds(results, first, given.seeds)]
    for task in _mixed(seeds, builds):
        if time.monotonic() > ends_at:
            is_complete = False
            break
        task()
    return _sum_up(results.all, is_complete=is_complete)


def _mixed(seeds: Sequence[Task], builds: Sequence[Task]) -> Iterator[Task]:
    """Yield all, so that an early end has tried some of both."""
    every = max(1, len(seeds) // (len(builds) or 1))
    waiting = iter(builds)
    for number, seed in enumerate(seeds):
        if number % every == 0:
            yield from islice(waiting, 1)
        yield seed
    yield from waiting


# Broken builds


def _builds(results: Results, names: str | None) -> Iterator[Task]:
    from tests.simulation.broken import ALL_BUILDS

    for build in ALL_BUILDS if names is None else names.split(","):
        if not results.has(build=build):
            yield lambda build=build: results.add(_find(build))  # type: ignore[misc]


def _find(build: str) -> Result:
    """Play seeds until one shows that servers are broken in this way."""
    from tests.simulation.broken import damaged
    from tests.simulation.play import play

    given = parsed(["--broken", build])
    shown(given)
    began_s = time.process_time()
    with damaged(build):
        for seed in count(1):
            result = play(seed, setting_of(given))
            took_s = round(time.process_time() - began_s, 1)
            if result.violations or took_s > _FOUND_S:
                how = result.violations[:1]
                print(f"{build}: {f'found by {seed}' if how else 'NOT FOUND'}, {took_s} s", *how)
                return {"build": build, "found": bool(how), "by": seed, "cpu_s": took_s}
    raise AssertionError


# Seeds


def _seeds(results: Results, first: int, seeds: int) -> Iterator[Task]:
    """Yield a part of each kind in turn, so that an early end has tried all."""
    played = {(each["mode"], each["seed"]) for each in results.all if "mode" in each}
    nexts = {mode: count(first) for mode in MODES}
    for mode, _ in zip(_in_turn(), range(seeds), strict=False):
        seed = next(nexts[mode])
        if (mode.words, seed) not in played:
            yield lambda mode=mode, seed=seed: results.add(_play(mode, seed))  # type: ignore[misc]


def _in_turn() -> Iterator[Mode]:
    while True:
        for mode in MODES:
            yield from [mode] * mode.seeds


def _play(mode: Mode, seed: int) -> Result:
    from tests.simulation.play import play

    result = play(seed, setting_of(parsed(mode.words.split())))
    if result.violations:
        print(f"--seed {seed} {mode.words}", *result.violations, sep="\n  ", flush=True)
    return {
        "mode": mode.words,
        "seed": seed,
        "cpu_s": round(result.cpu_s, 2),
        "violations": result.violations[:_MOST_TOLD],
        "marks": sorted(result.marks),
        "judged": result.judged,
        "excused": result.excused,
    }


# What came of all


def _sum_up(results: Sequence[Result], *, is_complete: bool) -> int:
    """Print a summary. Returns 1 if something is wrong, else 0."""
    from tests.simulation.coverage import Report
    from tests.simulation.required import required

    wrong = [each for each in results if each.get("violations") or not each.get("found", True)]
    whole = Report(())
    missing: list[str] = []
    asleep: list[str] = []
    by_mode: dict[str, list[Result]] = defaultdict(list)
    for each in results:
        if "mode" in each:
            by_mode[each["mode"]].append(each)
    for words, its in by_mode.items():
        report = Report(required(setting_of(parsed(words.split()))))
        for each in its:
            for one in (report, whole):
                one.add(each["marks"])
                one.count(each["judged"], each["excused"])
        asleep += [f"{words or 'one server'}: {judge}" for judge in report.asleep]
        missing += [f"{words or 'one server'}: {mark}" for mark in report.missing]
        cpu_s = sum(each["cpu_s"] for each in its)
        broken = [each["seed"] for each in its if each["violations"]]
        print(f"{len(its):5} seeds, {cpu_s:7.0f} s of CPU: {words or 'one server'}; {broken}")
    builds = [each for each in results if "build" in each]
    found = sum(each["found"] for each in builds)
    slowest = max((each["cpu_s"] for each in builds), default=0.0)
    print(f"{found} of {len(builds)} broken builds were found, the last one within {slowest} s")
    print(*whole.lines(), sep="\n")
    if asleep := asleep + whole.asleep:
        print("judges that excuse too much:", *asleep, sep="\n  ")
    if is_complete and missing:
        print("never reached:", *missing, sep="\n  ")
    print("complete" if is_complete else "stopped: run it again to go on")
    print("broken:", *(_named(each) for each in wrong) if wrong else ("none",))
    return int(bool(wrong or asleep or (is_complete and missing)))


def _named(result: Result) -> str:
    if "build" in result:
        return f"\n  --broken {result['build']} --seeds 1- was not found"
    return f"\n  --seed {result['seed']} {result['mode']}"


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        # The same order of sets in each run.
        words = [sys.executable, "-m", "tests.simulation.night", *sys.argv[1:]]
        os.execve(sys.executable, words, {**os.environ, "PYTHONHASHSEED": _HASH_SEED})
    sys.exit(main())
