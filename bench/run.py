"""Runs workloads against several servers in turn (A B A B ...) and judges them by the bars.

Every run starts a fresh server pinned to its own processor, with the load generator pinned to
another, on a free loopback port. All raw results are kept as JSON lines; the tables show medians.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench.bars import judge, read_bars, verdict_table
from bench.measure import Conditions, Result, allow_many_files, figure, measure
from bench.plan import BENCH, ServerSpec, Workload, choose, read_servers, read_workloads
from bench.tables import Runs, group, main_figure, table

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast" / "bench"


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    add = parser.add_argument
    add("--servers", type=Path, default=BENCH / "servers.toml")
    add("--workloads", type=Path, default=BENCH / "workloads.toml")
    add("--bars", type=Path, default=BENCH / "bars.toml")
    add("--set", default="standard", help="sets and workloads, separated by commas")
    add("--only", default="", help="servers, separated by commas")
    add("--reps", type=int, default=3)
    add("--out", type=Path, default=CACHE / "results", help="each benchmark makes a folder here")
    add("--loader", type=Path, default=CACHE / "bayeux_load")
    add("--server-cpus", default="0", help="as for taskset")
    add("--loader-cpus", default="1", help="as for taskset")
    add("--run-timeout", type=float, default=400, help="seconds")
    add("--extra", default="", help="more arguments for the load generator in every run")
    add("--report", type=Path, help="only print the tables of an earlier results.jsonl")
    add("--md", action="store_true", help="tables in Markdown")
    add("--strict", action="store_true", help="exit with 1 when a bar is missed")
    add("--verbose", action="store_true", help="show what the load generator prints")
    return parser.parse_args(words)


def turns(
    workloads: Iterable[Workload], servers: Sequence[ServerSpec], repetitions: int
) -> Iterator[tuple[Workload, int, ServerSpec]]:
    """Return the runs in order; servers alternate, so other load affects all of them alike."""
    for workload in workloads:
        able = [server for server in servers if workload.suits(server)]
        for repetition in range(repetitions):
            for server in able:
                yield workload, repetition, server


def measure_all(options: argparse.Namespace, servers: Sequence[ServerSpec]) -> list[Result]:
    out = options.out / time.strftime("%Y%m%d-%H%M%S")
    out.mkdir(parents=True)
    conditions = Conditions(
        loader=options.loader,
        out=out,
        server_cpus=options.server_cpus,
        loader_cpus=options.loader_cpus,
        timeout_s=options.run_timeout,
        extra=options.extra,
        verbose=options.verbose,
    )
    allow_many_files()
    results = []
    with (out / "results.jsonl").open("w") as kept:
        workloads = read_workloads(options.workloads, options.set)
        for workload, repetition, server in turns(workloads, servers, options.reps):
            result = measure(server, workload, repetition=repetition, conditions=conditions)
            results.append(result)
            print(json.dumps(result), file=kept, flush=True)
            print(progress(result), file=sys.stderr, flush=True)
        print(f"# raw results: {kept.name}", file=sys.stderr)
    return results


def progress(result: Result) -> str:
    key = main_figure([Runs(result["server"], [result])])
    said = f"# {result['workload']} {result['rep']} {result['server']}: "
    if "failed" in result:
        return said + f"FAILED {result['failed']}"
    counts = f"lost {result.get('lost')} errors {result.get('errors')}"
    return said + f"{key} {figure(result, key)} p50 {figure(result, 'lat_ms.p50')} {counts}"


def read_results(path: Path) -> list[Result]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def main() -> int:
    options = parse_arguments()
    servers = read_servers(options.servers)
    chosen = choose(servers, filter(None, options.only.split(",")))
    results = read_results(options.report) if options.report else measure_all(options, chosen)
    for workload, runs in group(results).items():
        print(table(workload, list(runs.values()), markdown=options.md))
    peers = {name for name, server in servers.items() if server.peer}
    verdicts = judge(results, read_bars(options.bars), peers=peers)
    if verdicts:
        print(verdict_table(verdicts, markdown=options.md))
    missed = any(verdict.met is False for verdict in verdicts)
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
