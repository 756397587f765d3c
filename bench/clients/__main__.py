"""Compares Python clients: `python -m bench.clients`."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Self

from bench.clients.programs import BARE, CHANNEL, CLIENTS
from bench.measure import allow_many_files
from bench.plan import BENCH, ROOT, read_servers
from bench.processes import running
from bench.run import CACHE
from bench.stalls.clients import Client, publish

SERVER_CPU, CPU = "0", "1"
TRANSPORTS = ("websocket", "long-polling")
# Messages in each request of the publisher, and in all of its requests.
BURSTS = {1: 1_000, 10: 5_000, 100: 20_000}
_DATA = {"symbol": "IBM", "price": 120.5, "note": "x" * 100}
# Long enough that a client has received a burst before the next one.
_PAUSE_S = {1: 0.002, 10: 0.004, 100: 0.02}
_FOLDER = CACHE / "aiocometd"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.clients", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--idle", type=int, default=2000, help="clients in the measurement of memory")
    add("--server", default="holdfast")
    add("--only", default=",".join(CLIENTS), help="some of the clients")
    return parser.parse_args()


def install() -> None:
    """Install aiocometd into a folder of its own; it uses the same aiohttp."""
    if not _FOLDER.exists():
        lock = BENCH / "clients" / "aiocometd.lock"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*pip, "--target", str(_FOLDER), "-r", str(lock)], check=True)


class Program:
    """A program under test, on a processor of its own."""

    def __init__(self, *words: str) -> None:
        path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(ROOT), str(_FOLDER)])
        self._process = subprocess.Popen(
            ["taskset", "-c", CPU, sys.executable, "-m", "bench.clients.programs", *words],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            cwd=ROOT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def line(self) -> str:
        """Return the next line that the program prints."""
        return self._process.stdout.readline().decode() if self._process.stdout else ""

    def figures(self) -> dict[str, float]:
        said: dict[str, float] = json.loads(self.line())
        return said


def deliveries(url: str, name: str, transport: str, burst: int) -> float:
    """Return the deliveries per second of the client's processor time."""
    count = BURSTS[burst]
    publisher = Client(url)
    body = publisher.body([publish(CHANNEL, _DATA)] * burst)
    with Program("receive", name, transport, url, str(count)) as program:
        program.line()
        for _ in range(0, count, burst):
            publisher.post(body)
            time.sleep(_PAUSE_S[burst])
        busy = program.figures()["busy_s"]
    publisher.close()
    return count / busy


def memory(url: str, name: str, transport: str, count: int) -> float:
    """Return the bytes of an idle client."""
    with Program("idle", name, transport, url, str(count)) as program:
        return program.figures()["bytes"]


def main() -> None:
    options = parse_arguments()
    install()
    allow_many_files()
    names = options.only.split(",")
    spec = read_servers(BENCH / "servers.toml")[options.server]
    log = CACHE / "clients.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with running(spec, cpus=SERVER_CPU, log=log) as server:
        # aiocometd keeps no cookies of hosts that are addresses.
        url = server.url.replace("127.0.0.1", "localhost")
        print("deliveries per second of the client's processor time, median\n")
        print("| transport, messages at once | " + " | ".join(names) + " | ratios |")
        print("| --- " * (len(names) + 2) + "|")
        for transport in TRANSPORTS:
            for burst in BURSTS:
                found: dict[str, list[float]] = {name: [] for name in names}
                for _ in range(options.rounds):
                    for name in names:
                        found[name].append(deliveries(url, name, transport, burst))
                row(f"{transport}, {burst}", [statistics.median(found[name]) for name in names])
        names = [name for name in names if name != BARE]
        print(f"\nbytes of each of {options.idle} idle clients in one program\n")
        print("| transport | " + " | ".join(names) + " | ratios |")
        print("| --- " * (len(names) + 2) + "|")
        for transport in TRANSPORTS:
            row(transport, [memory(url, name, transport, options.idle) for name in names])


def row(title: str, values: list[float]) -> None:
    """Print the values, and the ratio of the first one to each other."""
    cells = [f"{each:,.0f}" for each in values]
    ratios = [f"{values[0] / each:.2f}" for each in values[1:]]
    print(f"| {' | '.join([title, *cells, ', '.join(ratios)])} |", flush=True)


if __name__ == "__main__":
    main()
