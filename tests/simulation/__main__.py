"""Plays seeds: `python -m tests.simulation --seeds 1-100`, or `--seed 7 --trace` for one."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.play import Result, Setting

_HASH_SEED = "0"


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what these words say, or those of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="1-50", help="the first and the last seed: 1-50, or 1-")
    parser.add_argument("--seed", type=int, help="one seed")
    parser.add_argument(
        "--store",
        default="single",
        help="single, pair, cluster; own: each shard one; embedded: servers start theirs",
    )
    parser.add_argument("--shards", action="store_true", help="two or three servers, each a shard")
    parser.add_argument("--hosts", action="store_true", help="shards on two or three machines")
    parser.add_argument("--supervisor", action="store_true", help="below the real supervisor")
    parser.add_argument("--divide", action="store_true", help="divide shards otherwise meanwhile")
    parser.add_argument("--faults", default="", help="let only these happen: kill_server,set_clock")
    parser.add_argument("--groups", default="", help="let these take part: reads,asks,meets")
    parser.add_argument("--minutes", type=float, help="play no more seeds after so many minutes")
    parser.add_argument("--shrink", action="store_true", help="find which faults a seed needs")
    parser.add_argument("--marks", action="store_true", help="print what was reached, how often")
    parser.add_argument("--trace", action="store_true", help="print everything that happens")
    parser.add_argument("--digests", action="store_true", help="print what tells traces apart")
    parser.add_argument("--log", action="store_true", help="print what the servers log")
    parser.add_argument("--broken", help="break the servers in this way, and stop when it shows")
    return parser.parse_args(words)


def main() -> int:
    """Play the seeds of the command line. Returns 1 if one of them broke a promise, else 0."""
    given = parsed()
    if not given.log:
        # Judges alone listen.
        logging.getLogger().addHandler(logging.NullHandler())
    else:
        logging.basicConfig(level=logging.INFO, format="%(created).3f %(name)s %(message)s")
    if given.broken is None:
        return _play_all(given)
    # Imported late: the order of sets must be decided before anything is made.
    from tests.simulation.broken import damaged

    shown(given)
    with damaged(given.broken):
        return _play_all(given)


def shown(given: argparse.Namespace) -> None:
    """Let whatever is needed take part to see that servers are broken."""
    from tests.simulation import broken
    from tests.simulation.broken_divisions import BUILDS_OF_DIVISIONS
    from tests.simulation.broken_hosts import BUILDS_OF_HOSTS

    given.hosts |= given.broken in BUILDS_OF_HOSTS
    given.divide |= given.broken in BUILDS_OF_DIVISIONS
    given.shards |= given.broken in broken.WITH_SHARDS
    given.supervisor |= given.broken in broken.BELOW_SUPERVISORS
    given.store = broken.SHOWN_AT.get(given.broken, given.store)
    given.faults = given.faults or broken.SHOWN_BY.get(given.broken, "")
    given.groups = given.groups or broken.SHOWN_TO.get(given.broken, "")


def _seeds(given: argparse.Namespace) -> Iterable[int]:
    if given.seed is not None:
        return [given.seed]
    first, dash, last = given.seeds.partition("-")
    return range(int(first), int(last or first) + 1) if last or not dash else count(int(first))


def setting_of(given: argparse.Namespace) -> "Setting":
    from tests.simulation.play import Setting
    from tests.simulation.store_site import Kind

    faults, groups = (
        frozenset(filter(None, words.split(","))) for words in (given.faults, given.groups)
    )
    return Setting(
        kind=Kind(given.store),
        # Servers of one shard would share no store.
        has_shards=given.shards or given.hosts or given.divide or given.store == Kind.OWN.value,
        divides=given.divide,
        is_supervised=given.supervisor or given.hosts or given.store == Kind.EMBEDDED.value,
        has_hosts=given.hosts,
        groups=groups,
        faults=faults,
        keeps_trace=given.trace,
    )


def _play_all(given: argparse.Namespace) -> int:
    from tests.simulation.coverage import Report
    from tests.simulation.play import play
    from tests.simulation.required import required
    from tests.simulation.shrinking import shrunk

    setting = setting_of(given)
    broken: list[int] = []
    report = Report(required(setting))
    cpu_s, true_s, steps, played = 0.0, 0.0, 0, 0
    began = time.perf_counter()
    for seed in _seeds(given):
        result = play(seed, setting)
        cpu_s += result.cpu_s
        true_s += result.true_s
        steps += result.steps
        played += 1
        report.add(result.marks)
        report.count(result.judged, result.excused)
        _tell(result, given)
        if result.violations:
            broken.append(seed)
            if given.shrink:
                print("  needs", *shrunk(result, setting).faults, flush=True)
            if given.broken is not None:
                break
        if given.minutes is not None and time.perf_counter() - began > 60 * given.minutes:
            break
    print(
        f"{played} seeds, {true_s:.0f} simulated s, {steps} steps in {cpu_s:.1f} s of CPU, "
        f"{time.perf_counter() - began:.1f} s: {60 * played / cpu_s:.0f} seeds a minute and "
        f"core; broken: {broken or 'none'}"
    )
    if given.marks or given.minutes is not None:
        print(*report.lines(), sep="\n")
    is_free = not given.faults and not given.groups and given.broken is None
    if is_free and report.asleep:
        print("judges that excuse too much:", *report.asleep)
        return 1
    if given.minutes is not None and is_free and report.missing:
        print("never reached:", *report.missing, sep="\n  ")
        return 1
    return min(1, len(broken))


def _tell(result: "Result", given: argparse.Namespace) -> None:
    for line in result.trace:
        print(line)
    if given.digests:
        print(result.seed, result.digest)
    if result.violations or given.seed is not None:
        print(f"seed {result.seed}: {result.digest}, {result.published} publishes", *result.faults)
        print(*(f"  {line}" for line in result.violations), sep="\n", flush=True)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        # The same order of sets in each run.
        words = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, words, {**os.environ, "PYTHONHASHSEED": _HASH_SEED})
    sys.exit(main())
