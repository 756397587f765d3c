"""Measures the memory of idle topics: `python -m bench.topics`."""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench.plan import BENCH, read_servers
from bench.processes import started
from bench.run import CACHE
from bench.stalls.clients import Client, publish
from bench.waiting import BATCH, both, check

# Topics that stay until they are erased.
_STAYING = {"ext": {"delivery": {"topic": {"destroyDelay": -1}}}}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.topics", description=__doc__)
    add = parser.add_argument
    add("--topics", type=int, default=100_000)
    add("--server", default="holdfast")
    add("--cpus", default="0", help="those of the server and its store")
    add("--log", type=Path, default=CACHE / "topics.log")
    return parser.parse_args()


def make(client: Client, begin: int, end: int) -> None:
    """Create these topics with one publish each; nobody subscribes."""
    for first in range(begin, end, BATCH):
        numbers = range(first, min(first + BATCH, end))
        names = [f"/orders/{number // 1000}/{number}" for number in numbers]
        check(client.say(*[publish(name, **_STAYING) for name in names]), len(names))


def main() -> None:
    options = parse_arguments()
    spec = read_servers(BENCH / "servers.toml")[options.server]
    spec = replace(spec, cmd=(*spec.cmd, "--max-topics", str(options.topics + BATCH)))
    options.log.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        started(spec, data, cpus=options.cpus, log=options.log) as server,
    ):
        client = Client(server.url)
        # The first topics also create what all of them share.
        make(client, 0, BATCH)
        before = both(server)
        begun = time.perf_counter()
        make(client, BATCH, options.topics + BATCH)
        took = time.perf_counter() - begun
        after = both(server)
    in_server, in_store = (
        (now - then) / options.topics for then, now in zip(before, after, strict=True)
    )
    print(f"{options.topics} topics that nothing refers to\n")
    print("| figure | measured |\n| --- | --- |")
    print(f"| bytes a topic in the server, its name included | {in_server:.0f} |")
    print(f"| bytes a topic in the store | {in_store:.0f} |")
    print(f"| made, a second | {options.topics / took:.0f} |")


if __name__ == "__main__":
    main()
