"""Makes a table of medians for each workload."""

import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.measure import Result, figure, is_good


class Column(NamedTuple):
    key: str
    heading: str
    form: str
    divisor: float = 1


DELIVERIES_PER_CPU = Column("deliveries_per_cpu_s", "deliv/CPU-s", "{:.0f}")
# Without the store that the server may have beside it.
DELIVERIES_PER_OWN_CPU = Column("deliveries_per_own_cpu_s", "without store", "{:.0f}")
DELIVERIES = Column("deliveries_per_s", "deliv/s", "{:.0f}")
REQUESTS = Column("http_per_s", "req/s", "{:.0f}")
REQUESTS_PER_CPU = Column("http_per_cpu_s", "req/CPU-s", "{:.0f}")
CPU = Column("cpu_util", "CPU", "{:.0%}")
WAIT = Column("wait_fraction", "wait", "{:.0%}")
LATENCIES = (
    Column("lat_ms.p50", "p50 ms", "{:.2f}"),
    Column("lat_ms.p99", "p99 ms", "{:.1f}"),
    Column("lat_ms.max", "max ms", "{:.0f}"),
)
BATCH = Column("batch_mean", "batch", "{:.2f}")
SESSION = Column("bytes_per_session", "B/session", "{:.0f}")
MEMORY = Column("rss_max", "max RSS MB", "{:.0f}", divisor=1e6)

CLOSED_LOOP = (
    *(DELIVERIES_PER_CPU, REQUESTS_PER_CPU, DELIVERIES, REQUESTS),
    *(CPU, WAIT, *LATENCIES, SESSION, MEMORY),
)
# The first column of a scenario is its main figure.
COLUMNS: dict[str, tuple[Column, ...]] = {
    "chat": (
        *(DELIVERIES_PER_CPU, DELIVERIES_PER_OWN_CPU, DELIVERIES, REQUESTS),
        *(CPU, WAIT, *LATENCIES, BATCH, SESSION, MEMORY),
    ),
    "fanout": CLOSED_LOOP,
    "pingpong": CLOSED_LOOP,
    "handshake": (
        Column("cycles_per_cpu_s", "cycles/CPU-s", "{:.0f}"),
        Column("cycles_per_s", "cycles/s", "{:.0f}"),
        REQUESTS,
        Column("cycle_ms.p50", "p50 ms", "{:.2f}"),
        Column("cycle_ms.p99", "p99 ms", "{:.1f}"),
        MEMORY,
    ),
    "idle": (
        SESSION,
        Column("cpu_s_per_min", "CPU s/min", "{:.2f}"),
        Column("ready", "sessions", "{:.0f}"),
        Column("setup_s", "setup s", "{:.1f}"),
        REQUESTS,
        MEMORY,
    ),
}
COUNTS = ("lost", "duplicated", "misordered", "errors")


@dataclass(frozen=True, slots=True)
class Runs:
    """All runs of one workload against one server."""

    server: str
    results: Sequence[Result]

    @property
    def good(self) -> list[Result]:
        return [result for result in self.results if is_good(result)]

    def median(self, key: str) -> float | None:
        values = [figure(result, key) or 0 for result in self.good]
        return statistics.median(values) if values else None

    def total(self, count: str) -> int:
        return sum(int(result.get(count, 0)) for result in self.results)


def group(results: Iterable[Result]) -> dict[str, dict[str, Runs]]:
    """Return the runs by workload and server, in the order in which they were made."""
    found: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        servers = found.setdefault(result["workload"], {})
        servers.setdefault(result["server"], []).append(result)
    return {
        workload: {server: Runs(server, runs) for server, runs in servers.items()}
        for workload, servers in found.items()
    }


def columns_of(runs: Iterable[Runs]) -> tuple[Column, ...]:
    scenarios = (r["scenario"] for each in runs for r in each.results if "scenario" in r)
    return COLUMNS[next(scenarios, "chat")]


def main_figure(runs: Iterable[Runs]) -> str:
    return columns_of(runs)[0].key


def cell(runs: Runs, column: Column) -> str:
    median = runs.median(column.key)
    return "-" if median is None else column.form.format(median / column.divisor)


def spread(runs: Runs, key: str) -> str:
    values = [figure(result, key) or 0 for result in runs.good]
    if len(values) < 2 or not statistics.median(values):
        return ""
    return f" ±{(max(values) - min(values)) / 2 / statistics.median(values):.0%}"


def remarks(runs: Runs) -> str:
    failed = len(runs.results) - len(runs.good)
    said = {
        " SATURATED": runs.total("saturated"),
        " LOADER-BOUND": runs.total("loader_bound"),
        f" FAILED {failed}": failed,
    }
    return "".join(text for text, applies in said.items() if applies)


def row(runs: Runs, columns: Sequence[Column]) -> list[str]:
    counts = "/".join(str(runs.total(count)) for count in COUNTS)
    how = f"{len(runs.results)}{spread(runs, columns[0].key)}{remarks(runs)}"
    return [runs.server, *(cell(runs, column) for column in columns), counts, how]


def foreign_load(runs: Iterable[Runs]) -> float:
    return statistics.median(r.get("foreign_cores") or 0 for each in runs for r in each.results)


def table(workload: str, servers: Sequence[Runs], *, markdown: bool) -> str:
    columns = columns_of(servers)
    head = ["server", *(c.heading for c in columns), "lost/dup/mis/err", "runs"]
    args = servers[0].results[0]["args"]
    cores = f"other load: {foreign_load(servers):.1f} of {os.cpu_count()} cores"
    title = f"**{workload}** `{args}` ({cores})" if markdown else f"{workload}: {args} ({cores})"
    return "\n".join([title, *lay_out(head, [row(s, columns) for s in servers], markdown=markdown)])


def lay_out(head: Sequence[str], body: Sequence[Sequence[str]], *, markdown: bool) -> list[str]:
    if markdown:
        rule = "|" + "---|" * len(head)
        return ["", f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(r)} |" for r in body), ""]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    return [
        "  " + "  ".join(text.rjust(w) if n else text.ljust(w) for n, (text, w) in enumerate(pairs))
        for pairs in (list(zip(line, widths, strict=True)) for line in (head, *body))
    ] + [""]
