"""Measures readers of `/events` beside plain sessions over WebSocket: `python -m bench.readers`.

Both hear the same messages. It prints the memory and the processor time of the server.
"""

import argparse
import json
import re
import socket
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.measure import allow_many_files
from bench.plan import BENCH, ServerSpec, read_servers
from bench.processes import started, without_stores
from bench.run import CACHE
from bench.stalls.clients import Client, connect, publish, subscribe
from bench.stalls.returning import CHUNK, TIMEOUT_S, hear_all
from bench.stalls.volleys import UPGRADE, handshake, in_frame, in_request
from bench.waiting import both, check, worked

CHANNEL: Final = "/readers/all"
_DATA: Final = "x" * 100
_MARK: Final = _DATA.encode()
# How many readers come before the first memory is taken: what all share is there then.
_FIRST: Final = 100


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.readers", description=__doc__)
    add = parser.add_argument
    add("--readers", type=int, default=5_000)
    add("--messages", type=int, default=20)
    add("--server", default="holdfast-history")
    add("--cpus", default="0", help="the processors of the server")
    add("--log", type=Path, default=CACHE / "readers.log")
    return parser.parse_args()


class Ear:
    """A connection, and how many messages it has heard."""

    def __init__(self, url: str) -> None:
        split = urlsplit(url)
        self.host = split.netloc
        self.link = socket.create_connection((split.hostname, split.port), TIMEOUT_S)
        self.heard = 0
        self._end = b""

    def until(self, sign: bytes) -> bytes:
        """Read until this comes; return what came."""
        found = b""
        while sign not in found:
            found += self.link.recv(CHUNK)
        return found

    def hear(self, wanted: int) -> bool:
        """Read what is there. Returns whether so many messages have come in all."""
        found = self._end + self.link.recv(CHUNK)
        self.heard += found.count(_MARK)
        rest = found.rpartition(_MARK)[2] if _MARK in found else found
        self._end = rest[1 - len(_MARK) :]
        return self.heard >= wanted


def event_reader(url: str) -> Ear:
    """Return a reader of `/events`."""
    ear = Ear(url)
    ear.link.sendall(in_request(ear.host, f"GET /events?channel={CHANNEL}", b""))
    ear.until(b"\nid: ")
    return ear


def session(url: str) -> Ear:
    """Return a plain session over WebSocket."""
    ear = Ear(url)
    path = urlsplit(url).path
    ear.link.sendall(in_request(ear.host, f"GET {path}", b"", *UPGRADE))
    ear.until(b"\r\n\r\n")

    def say(*messages: dict[str, object]) -> None:
        ear.link.sendall(in_frame(json.dumps(messages).encode()))

    say({**handshake({}), "supportedConnectionTypes": ["websocket"]})
    found = ear.until(b'"successful":true')
    named = re.search(rb'"clientId":"([^"]+)"', found)
    if named is None:
        raise RuntimeError(found)
    client = {"clientId": named[1].decode()}
    held = {**connect(), "connectionType": "websocket", **client}
    # The first connect is answered at once, and the next one is held.
    say({**subscribe(CHANNEL), **client}, held)
    ear.until(b'"/meta/connect"')
    say(held)
    return ear


def measured(
    spec: ServerSpec, options: argparse.Namespace, come: Callable[[str], Ear]
) -> tuple[float, float]:
    """Return the bytes of memory of one, and the processor time of one message for one, in us."""
    with (
        tempfile.TemporaryDirectory() as data,
        started(spec, data, cpus=options.cpus, log=options.log) as server,
    ):
        ears = [come(server.url) for _ in range(_FIRST)]
        before = both(server)[0]
        ears += [come(server.url) for _ in range(options.readers - _FIRST)]
        memory = (both(server)[0] - before) / (options.readers - _FIRST)
        pids = without_stores(server.pids)
        publisher = Client(server.url)
        tell(publisher, ears, 1)
        begun = worked(pids)
        for number in range(options.messages):
            tell(publisher, ears, number + 2)
        spent = worked(pids) - begun
        for ear in ears:
            ear.link.close()
        publisher.close()
    return memory, spent / options.messages / options.readers * 1e6


def tell(publisher: Client, ears: Sequence[Ear], number: int) -> None:
    """Publish a message, and wait until all have heard it."""
    check(publisher.say(publish(CHANNEL, _DATA)), 1)
    links = {ear.link: ear for ear in ears}
    hear_all(links, lambda link: links[link].hear(number))


def main() -> None:
    options = parse_arguments()
    allow_many_files()
    spec = read_servers(BENCH / "servers.toml")[options.server]
    spec = replace(spec, cmd=(*spec.cmd, "--budget-requests", "0", "--timeout", "600000"))
    options.log.parent.mkdir(parents=True, exist_ok=True)
    print(f"{options.readers} of each, {options.messages} messages\n")
    print("| | bytes of each | processor time of a message for each, us |\n| --- | --- | --- |")
    found = {
        name: measured(spec, options, come)
        for name, come in (("plain sessions over WebSocket", session), ("readers", event_reader))
    }
    for name, (memory, spent) in found.items():
        print(f"| {name} | {memory:.0f} | {spent:.1f} |")
    ways, readers = found.values()
    print(f"| ratio | {readers[0] / ways[0]:.2f} | {readers[1] / ways[1]:.2f} |")


if __name__ == "__main__":
    main()
