"""Measures a request and its reply: `python -m bench.requests`.

Each round starts every server once, so the machine's other load affects all of them alike.
"""

import argparse
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.plan import BENCH, ServerSpec, read_servers
from bench.processes import Server, running
from bench.requests.pairs import Asking, Echoed, Pair, Relayed, Served
from bench.run import CACHE

WEBSOCKET, LONG_POLLING = "websocket", "long-polling"
# Under light load, the client pauses for this time after an answer.
REST_S = 0.002
# Requests of each client before the measurement: just-in-time compilers need some time.
WARM_UP = 200
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Way:
    """A way to get an answer."""

    title: str
    server: str
    transport: str
    pair: Callable[[str, str, int], Pair]


WAYS = (
    Way("a request", "holdfast", WEBSOCKET, Asking),
    Way("an echo", "aiohttp", WEBSOCKET, Echoed),
    Way("a request", "holdfast", LONG_POLLING, Asking),
    Way(
        "a remote call that a client answers", "holdfast", LONG_POLLING, partial(Asking, calls=True)
    ),
    Way("a remote call that a client answers", "cometd-node", LONG_POLLING, Relayed),
    Way("a remote call that a service answers", "holdfast-echo", LONG_POLLING, Served),
    Way("a remote call that a service answers", "cometd-node", LONG_POLLING, Served),
    Way("an echo", "aiohttp", LONG_POLLING, Echoed),
)


@dataclass(slots=True)
class Figures:
    """The measurements of one way, in all rounds."""

    # Round trips under light load, in seconds.
    took: list[float] = field(default_factory=list)
    # Requests for each second of the server's processor time, in each round.
    per_cpu_s: list[float] = field(default_factory=list)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.requests", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--alone", type=int, default=1000, help="requests under light load in each round")
    add("--pairs", type=int, default=20, help="clients that ask at the same time")
    add("--together", type=int, default=500, help="requests of each of them in each round")
    add("--log", type=Path, default=CACHE / "requests.log")
    return parser.parse_args()


def processor_s(server: Server) -> float:
    """Return the processor time that the server and its store have used."""
    stats = [
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in server.pids
    ]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) * TICK_S


def ask(pairs: Sequence[Pair], number: int) -> None:
    """Let all pairs ask once."""
    for pair in pairs:
        pair.ask(number)
    for pair in pairs:
        pair.answer()
    for pair in pairs:
        if pair.get() != number:
            raise RuntimeError("a client got the answer to another request")
    for pair in pairs:
        pair.settle()


def waited_s(process: int | str) -> float:
    """Return how long the main thread of a process has waited for a processor."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9


def round_trip(pair: Pair, number: int, server: Server) -> float:
    """Return the seconds until the answer, without the time of waiting for a processor."""
    before = waited_s(server.pids[0]) + waited_s("self")
    begun = time.perf_counter()
    pair.ask(number)
    pair.answer()
    pair.get()
    took = time.perf_counter() - begun
    return took - (waited_s(server.pids[0]) + waited_s("self") - before)


def measure(way: Way, server: Server, options: argparse.Namespace, figures: Figures) -> None:
    with ExitStack() as stack:
        pairs: list[Pair] = []
        for number in range(options.pairs):
            pairs.append(way.pair(server.url, way.transport, number))
            stack.callback(pairs[-1].close)
        for number in range(WARM_UP):
            ask(pairs, number)
        before = processor_s(server)
        for number in range(options.together):
            ask(pairs, number)
        asked = options.together * len(pairs)
        figures.per_cpu_s.append(asked / (processor_s(server) - before))
        for number in range(options.alone):
            time.sleep(REST_S)
            figures.took.append(round_trip(pairs[0], number, server))
            pairs[0].settle()


def main() -> None:
    options = parse_arguments()
    servers = read_servers(BENCH / "servers.toml")
    options.log.parent.mkdir(parents=True, exist_ok=True)
    os.sched_setaffinity(0, {1})
    found: defaultdict[Way, Figures] = defaultdict(Figures)
    for _ in range(options.rounds):
        for way in WAYS:
            spec: ServerSpec = servers[way.server]
            with running(spec, cpus="0", log=options.log) as server:
                measure(way, server, options, found[way])
    print("| what | server | transport | p50, ms | p95, ms | per second of processor time |")
    print("| --- | --- | --- | --- | --- | --- |")
    for way, figures in found.items():
        p50, p95 = (1000 * statistics.quantiles(figures.took, n=20)[at] for at in (9, 18))
        rate = statistics.median(figures.per_cpu_s)
        names = f"{way.title} | {way.server} | {way.transport}"
        print(f"| {names} | {p50:.2f} | {p95:.2f} | {rate:,.0f} |")


if __name__ == "__main__":
    main()
