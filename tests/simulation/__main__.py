"""Plays seeds: `python -m tests.simulation --seeds 1-100`, or `--seed 7 --trace` for one."""

import argparse
import logging
import os
import sys
import time

_HASH_SEED = "0"


def main() -> int:
    """Play the seeds of the command line; returns how many of them broke a promise, at most 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="1-50", help="the first and the last seed: 1-50")
    parser.add_argument("--seed", type=int, help="one seed")
    parser.add_argument("--store", default="single", help="single, pair, or cluster")
    parser.add_argument("--shards", action="store_true", help="two or three servers, each a shard")
    parser.add_argument("--trace", action="store_true", help="print everything that happens")
    parser.add_argument("--digests", action="store_true", help="print what tells traces apart")
    parser.add_argument("--log", action="store_true", help="print what the servers log")
    parser.add_argument("--broken", help="break the servers in this way, and stop when it shows")
    given = parser.parse_args()
    if not given.log:
        logging.disable(logging.CRITICAL)
    else:
        logging.basicConfig(level=logging.INFO, format="%(created).3f %(name)s %(message)s")
    first, _, last = (str(given.seed) if given.seed is not None else given.seeds).partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if given.broken is None:
        return _play_all(seeds, given)
    # Imported late, as below.
    from tests.simulation.broken import damaged

    with damaged(given.broken):
        return _play_all(seeds, given, stops=True)


def _play_all(seeds: range, given: argparse.Namespace, *, stops: bool = False) -> int:
    # Imported late: the order of sets must be decided before anything is made.
    from tests.simulation.play import play
    from tests.simulation.store_site import Kind

    broken: list[int] = []
    cpu_s, true_s, steps, played = 0.0, 0.0, 0, 0
    began = time.perf_counter()
    for seed in seeds:
        result = play(
            seed, kind=Kind(given.store), has_shards=given.shards, keeps_trace=given.trace
        )
        cpu_s += result.cpu_s
        true_s += result.true_s
        steps += result.steps
        for line in result.trace:
            print(line)
        if given.digests:
            print(seed, result.digest)
        if result.violations or len(seeds) == 1:
            print(f"seed {seed}: {result.digest}, {result.published} publishes", *result.faults)
            print(*(f"  {line}" for line in result.violations), sep="\n", flush=True)
        broken += [seed] * bool(result.violations)
        played += 1
        if stops and broken:
            break
    print(
        f"{played} seeds, {true_s:.0f} simulated s, {steps} steps in {cpu_s:.1f} s of CPU, "
        f"{time.perf_counter() - began:.1f} s: {60 * played / cpu_s:.0f} seeds a minute and "
        f"core; broken: {broken or 'none'}"
    )
    return min(1, len(broken))


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        # The same order of sets in each run.
        words = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, words, {**os.environ, "PYTHONHASHSEED": _HASH_SEED})
    sys.exit(main())
