"""Tests that the load generator reports exactly the faults that a server made.

python -m bench.load.selftest PATH/TO/bayeux_load
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.load.faulty_server import Faults, FaultyServer, Manners
from bench.load.faulty_wire import Connection

Result = dict[str, Any]
Expectation = Callable[[FaultyServer, Result], Result]

TIMES = ["--warmup", "0.5", "--duration", "2", "--drain", "3"]
CHAT = ["chat", "--clients", "40", "--rooms", "5", "--per-client", "2", "--rate", "150", "--strict"]
NO_FAULTS, TIDY = Faults(), Manners()
FAULTS = Faults(lose=97, duplicate=89, swap=101, corrupt=103)

PERFECT = {"lost": 0, "duplicated": 0, "misordered": 0}
OK = {"exit code": 0}
FAULTS_FOUND = {"exit code": 3}


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    args: list[str]
    expected: Expectation
    faults: Faults = NO_FAULTS
    manners: Manners = TIDY


def nothing_wrong(_server: FaultyServer, result: Result) -> Result:
    nothing = {"corrupt": 0, "alien": 0, "errors": 0, "received": result["expected"]}
    return PERFECT | nothing | OK


def just_the_faults(server: FaultyServer, _result: Result) -> Result:
    counts = server.counts
    return {
        "lost": counts["lost"] + counts["corrupt"] + server.never_sent,
        "duplicated": counts["duplicated"],
        "misordered": counts["misordered"],
        "corrupt": counts["corrupt"],
        "alien": 0,
    } | FAULTS_FOUND


def no_errors(_server: FaultyServer, _result: Result) -> Result:
    return {"errors": 0} | OK


def refusals_only(server: FaultyServer, _result: Result) -> Result:
    return PERFECT | {"errors": server.counts["refused"]}


def nothing_lost_by_drops(_server: FaultyServer, _result: Result) -> Result:
    return PERFECT | {"corrupt": 0, "ack_granted": True} | OK


def chat_cases(transport: str) -> Iterator[Case]:
    args = [*CHAT, *TIMES, "--transport", transport]
    members = [*args, "--member"]
    waiting = [*members, "--closed", "delivery", "--batch", "3"]
    close_every = 50 if transport == "long-polling" else 0
    ugly = Manners(is_ugly=True, close_every=close_every)
    ugly_piggyback = Manners(is_ugly=True, piggybacks=True)
    piggyback = Manners(piggybacks=True)
    yield Case("chat, tidy", args, nothing_wrong)
    yield Case("chat, ugly", args, nothing_wrong, manners=ugly)
    yield Case("chat, faults", args, just_the_faults, FAULTS)
    yield Case("chat, faults, ugly, members", members, just_the_faults, FAULTS, ugly_piggyback)
    yield Case("chat, closed loop, members", waiting, nothing_wrong, manners=piggyback)
    yield Case("chat, refused publishes", args, refusals_only, Faults(refuse=20))


def other_cases(transport: str) -> Iterator[Case]:
    args = ["--strict", *TIMES, "--transport", transport]
    outstanding = ["--closed", "reply", "--outstanding", "3"]
    ugly = Manners(is_ugly=True)
    short = Manners(hold_s=0.5)
    yield Case("fanout", ["fanout", "--clients", "50", *args], nothing_wrong)
    yield Case("fanout, 3 out", ["fanout", "--clients", "20", *outstanding, *args], nothing_wrong)
    yield Case("pingpong", ["pingpong", "--clients", "10", *args], nothing_wrong, manners=ugly)
    yield Case("idle", ["idle", "--clients", "100", *args], nothing_wrong, manners=short)
    yield Case("handshake", ["handshake", "--clients", "8", *args], no_errors)


def ack_case() -> Case:
    args = [*CHAT, *TIMES, "--ack", "--drop", "30"]
    return Case("chat, ack, drops", args, nothing_lost_by_drops, manners=Manners(grants_ack=True))


def all_cases() -> Iterator[tuple[str, Case]]:
    for transport in ("long-polling", "websocket"):
        for case in (*chat_cases(transport), *other_cases(transport)):
            yield transport, case
    yield "long-polling", ack_case()


async def run(loader: str, case: Case) -> list[str]:
    """Return the differences between the report and what it should be."""
    server = FaultyServer(case.faults, case.manners)
    connections: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio starts a task for each connection
        connections.add(task)
        try:
            await Connection(server, reader, writer).serve()
        finally:
            connections.discard(task)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    result = await load(loader, [*case.args, "--url", f"http://127.0.0.1:{port}/b"])
    listener.close()
    if connections:
        await asyncio.wait(connections)
    return [
        f"{key}: {result.get(key)}, should be {value}"
        for key, value in case.expected(server, result).items()
        if result.get(key) != value
    ]


async def load(loader: str, args: list[str]) -> Result:
    with tempfile.NamedTemporaryFile() as report:
        words = [*args, "--json", report.name, "--quiet"]
        process = await asyncio.create_subprocess_exec(loader, *words)
        code = await process.wait()
        result: Result = json.load(report)
        return result | {"exit code": code}


async def main() -> int:
    failures = 0
    for transport, case in all_cases():
        wrong = await run(sys.argv[1], case)
        failures += bool(wrong)
        print("FAIL" if wrong else "ok  ", case.name, f"({transport})", *wrong, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
