"""One run of one workload against one server."""

import json
import os
import resource
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.plan import ServerSpec, Workload
from bench.processes import Server, ServerFailed, running, without_stores

# The report of the load generator, with the fields that the run adds; README.md has the figures.
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is the same in all runs."""

    loader: Path
    out: Path
    server_cpus: str
    loader_cpus: str
    timeout_s: float
    extra: str = ""
    # Whether the processor time of the servers' own Valkeys is not counted.
    without_stores: bool = False
    verbose: bool = False


def allow_many_files() -> None:
    """Let child processes open as many files as the machine allows: each session is a socket."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def measure(
    server: ServerSpec, workload: Workload, *, repetition: int, conditions: Conditions
) -> Result:
    args = f"{workload.args} {conditions.extra}".rstrip()
    identity = {
        "workload": workload.name,
        "server": server.name,
        "rep": repetition,
        "args": args,
    }
    log = conditions.out / f"server-{server.name}.log"
    try:
        with running(server, cpus=conditions.server_cpus, log=log) as started:
            return load(started, args, conditions=conditions) | identity
    except (ServerFailed, subprocess.TimeoutExpired) as exc:
        return {"setup_failed": True, "failed": str(exc)} | identity


def load(server: Server, args: str, *, conditions: Conditions) -> Result:
    report = conditions.out / "last.json"
    report.unlink(missing_ok=True)
    words = ["taskset", "-c", conditions.loader_cpus, str(conditions.loader), *shlex.split(args)]
    own = without_stores(server.pids)
    stores = [] if conditions.without_stores else [each for each in server.pids if each not in own]
    words += ["--url", server.url, "--pids", ",".join(map(str, [*own, *stores]))]
    words += ["--own", str(len(own))]
    words += ["--json", str(report)]
    started = time.monotonic()
    ended = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=conditions.timeout_s,
        check=False,
    )
    if conditions.verbose:
        print(ended.stdout)
    return read_report(report, ended) | {
        "rc": ended.returncode,
        "wall_s": time.monotonic() - started,
        "when": time.time(),
        "loadavg": os.getloadavg()[0],
    }


def read_report(report: Path, ended: subprocess.CompletedProcess[str]) -> Result:
    if not report.exists():
        return {"setup_failed": True, "failed": ended.stdout[-400:]}
    result: Result = json.loads(report.read_text())
    return result


def figure(result: Result, key: str) -> float | None:
    """Return a figure of a result; dots lead into nested ones, as in lat_ms.p99."""
    if key == "wait_fraction":
        # The share of the window in which the server could run but another process had its core.
        window_s = result.get("window_s")
        return result.get("server_wait_s", 0) / window_s if window_s else None
    value: Any = result
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, int | float) else None


def is_good(result: Result) -> bool:
    return not (result.get("setup_failed") or result.get("server_died"))
