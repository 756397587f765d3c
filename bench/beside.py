"""Runs a workload against two servers at the same time, on the same processor, in several rounds.

Successive runs of the same server differ by a tenth, because the other load of the machine changes.
Simultaneous runs meet the same load, so a difference of a hundredth shows.
"""

import argparse
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import sqrt
from pathlib import Path

from bench.measure import Conditions, Result, allow_many_files, figure, load
from bench.plan import BENCH, ServerSpec, Workload, choose, read_servers, read_workloads
from bench.processes import Server, running, started
from bench.run import CACHE
from bench.tables import Runs, main_figure

_RATE = re.compile(r"(--rate )(\S+)")
# What is multiplied for several workers. Rooms stay as large as they are.
_SIZE = re.compile(r"(--(?:clients|rooms|publishers|outstanding|rate) )(\S+)")
_DETUNING = 1.013


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.beside", description=__doc__)
    add = parser.add_argument
    add("--set", default="chat-ack", help="sets and workloads, separated by commas")
    add("--only", default="holdfast,holdfast-silent", help="two servers")
    add(
        "--old", type=Path, help="instead of the second: where `pip install --target` put a version"
    )
    add("--rounds", type=int, default=8)
    add("--without-stores", action="store_true", help="do not count the servers' own Valkeys")
    add("--mixed", action="store_true", help="behind proxies whose connections all clients share")
    add("--per-worker", action="store_true", help="a server with N workers gets N times the load")
    add("--extra", default="", help="more arguments for the load generators")
    add("--out", type=Path, default=CACHE / "beside")
    add("--loader", type=Path, default=CACHE / "bayeux_load")
    return parser.parse_args()


@contextmanager
def behind_proxy(server: Server, conditions: Conditions) -> Iterator[Server]:
    """Run a proxy, on the processor of the load; it counts as load."""
    port = server.url.rpartition(":")[2].partition("/")[0]
    words = ("node", "{bench}/load/peers/mixing_proxy.js", "{port}", port)
    proxy = ServerSpec("proxy", words, server.url.replace(port, "{port}"))
    log = conditions.out / "proxy.log"
    with started(proxy, server.data, cpus=conditions.loader_cpus, log=log) as found:
        yield replace(server, url=found.url)


def measure(
    pair: Sequence[ServerSpec],
    workload: Workload,
    conditions: Conditions,
    *,
    mixed: bool,
    per_worker: bool,
) -> list[tuple[float, float]]:
    """Return each server's work per second of its processor time, and its use of a processor."""
    with ExitStack() as stack, ThreadPoolExecutor(len(pair)) as loaders:
        waiting = []
        for spec in pair:
            own = replace(conditions, out=conditions.out / spec.name)
            own.out.mkdir(parents=True, exist_ok=True)
            server = stack.enter_context(
                running(spec, cpus=own.server_cpus, log=own.out / "server.log")
            )
            if mixed:
                server = stack.enter_context(behind_proxy(server, own))
            waiting.append((server, own))
        args = f"{workload.args} {conditions.extra}".rstrip()
        loads = [
            f"{multiplied(args, spec.workers) if per_worker else args} {spec.load}".rstrip()
            for spec in pair
        ]
        results = loaders.map(
            lambda each, args: load(each[0], args, conditions=each[1]),
            waiting,
            (loads[0], detuned(loads[1])),
        )
        names = [spec.name for spec in pair]
        return [
            (_figure_of(name, result, workload.name), figure(result, "cpu_util") or 0.0)
            for name, result in zip(names, results, strict=True)
        ]


def multiplied(args: str, count: int) -> str:
    """Return the arguments for so many times the clients, who publish so many times as much."""
    return _SIZE.sub(lambda found: f"{found[1]}{float(found[2]) * count:g}", args)


def detuned(args: str) -> str:
    """Return the arguments with slightly higher rates.

    At equal rates, one server would get each message at a fixed delay after the other, and always
    find its caches in the same state.
    """
    return _RATE.sub(lambda found: f"{found[1]}{float(found[2]) * _DETUNING:g}", args)


def _figure_of(server: str, result: Result, workload: str) -> float:
    """Return the main figure of a result; print why if it is 0."""
    found = figure(result, main_figure([Runs(server, [result])])) or 0.0
    if not found:
        facts = {name: result.get(name) for name in ("rc", "failed", "ready", "notes")}
        print(f"# {workload}: {server} did no work: {facts}", file=sys.stderr)
    for limit in ("saturated", "loader_bound"):
        if result.get(limit):
            print(f"# {workload}: {server} was {limit}", file=sys.stderr)
    return found


def compare(
    pair: Sequence[ServerSpec],
    workload: Workload,
    rounds: int,
    conditions: Conditions,
    *,
    mixed: bool,
    per_worker: bool,
) -> None:
    ratios = []
    for number in range(rounds):
        # The server that starts first is elsewhere in memory, and first in every queue.
        order = pair if number % 2 else pair[::-1]
        found = measure(order, workload, conditions, mixed=mixed, per_worker=per_worker)
        (one, one_use), (other, other_use) = found if order is pair else found[::-1]
        if not (one and other):
            continue
        ratios.append(one / other)
        use = f"{one_use:.0%} and {other_use:.0%} of a processor"
        print(f"# {workload.name} {number}: {one:,.0f} and {other:,.0f}, {use}", file=sys.stderr)
    if len(ratios) > 1:
        error = statistics.stdev(ratios) / sqrt(len(ratios))
        names = " to ".join(spec.name for spec in pair)
        print(f"{workload.name}: {names} {statistics.mean(ratios):.3f} ± {error:.3f}", flush=True)


def main() -> None:
    options = parse_arguments()
    servers = read_servers(BENCH / "servers.toml")
    pair = choose(servers, options.only.split(","))
    if options.old is not None:
        [new, *_] = pair
        environment = {**new.env, "PYTHONPATH": str(options.old.absolute())}
        pair = [new, replace(new, name="old", env=environment)]
    if len(pair) != 2:
        sys.exit("name two servers to compare: --only one,other")
    conditions = Conditions(
        loader=options.loader,
        out=options.out / time.strftime("%Y%m%d-%H%M%S"),
        server_cpus="0",
        loader_cpus="1",
        timeout_s=400,
        extra=options.extra,
        without_stores=options.without_stores,
    )
    allow_many_files()
    for workload in read_workloads(BENCH / "workloads.toml", options.set):
        compare(
            *(pair, workload, options.rounds, conditions),
            mixed=options.mixed,
            per_worker=options.per_worker,
        )


if __name__ == "__main__":
    main()
