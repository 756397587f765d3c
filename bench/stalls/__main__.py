"""Measures how long one client's most expensive requests make other clients wait."""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.measure import allow_many_files
from bench.plan import BENCH, read_servers
from bench.processes import Server, running
from bench.run import CACHE
from bench.stalls.admin import ADMIN, Administration
from bench.stalls.cases import CASES, Attack
from bench.stalls.clients import Bystander
from bench.stalls.memory import Memory
from bench.stalls.volleys import prepare, volleys

# The targets for a bystander's waits on the reference machine.
_LONGEST_MS, _MEDIAN_MS = 50, 10
# The work that an attack leaves behind, such as writing letters to the store, counts too.
_AFTERMATH_S = 0.5
# The case of many small messages, and all its volleys.
_VOLLEYS = "volleys"


class Stall(NamedTuple):
    """The waits of a bystander, in ms, the duration of the attack, in s, and its memory, in MB."""

    longest: float
    # The longest processor time of the server's event loop during one wait. A much longer wait was
    # caused by the machine.
    worked: float
    p95: float
    median: float
    took: float
    # By how much the server's memory grew meanwhile, and how much of this was left in the end.
    grew: float
    kept: float

    @property
    def is_fine(self) -> bool:
        return self.longest <= _LONGEST_MS and self.median <= _MEDIAN_MS


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.stalls", description=__doc__)
    add = parser.add_argument
    names = ", ".join((*CASES, _VOLLEYS, *ADMIN))
    add("cases", nargs="*", metavar="case", help=f"some of {names}; default: all but admin")
    add("--server", default="holdfast")
    add("--letters", type=int, default=100_000, help="for the admin cases")
    add("--cpus", default="0", help="processors of the server")
    add("--times", type=int, default=1, help="how often to send the request, without pauses")
    add("--budget", type=float, default=180.0, help="seconds after which no case begins")
    add("--log", type=Path, default=CACHE / "stalls.log")
    add("--strict", action="store_true", help="exit code 1 when a bar is missed")
    options = parser.parse_args()
    unknown = set(options.cases) - {*CASES, _VOLLEYS, *ADMIN}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    return options


def measure(attack: Attack, bystander: Bystander, times: int) -> Stall:
    """Send the request; return the waits of the bystander until all of its work was done."""
    memory, begun = bystander.memory(), time.perf_counter()
    try:
        for _ in range(times):
            attack.client.post(attack.body)
    except TimeoutError:
        pass
    ended = time.perf_counter()
    time.sleep(_AFTERMATH_S)
    return stall(bystander, memory, begun, ended)


def stall(bystander: Bystander, memory: Memory, begun: float, ended: float) -> Stall:
    waits = bystander.waits(begun, ended + _AFTERMATH_S)
    longest = 1000 * max(wait.took for wait in waits)
    worked = 1000 * max(wait.worked for wait in waits)
    during = sorted(1000 * wait.took for wait in bystander.waits(begun, ended) or waits)
    p95 = during[int(0.95 * len(during))]
    median, took = statistics.median(during), ended - begun
    return Stall(longest, worked, p95, median, took, memory.peak(), memory.left())


def run_case(name: str, server: Server, times: int) -> Stall:
    attack = CASES[name](server.url)
    bystander = Bystander(server.url, server.pids[0])
    bystander.start()
    time.sleep(_AFTERMATH_S)
    try:
        return measure(attack, bystander, times)
    finally:
        bystander.stop()
        for client in (attack.client, *attack.crowd):
            client.close()


def run_volleys(server: Server, times: int) -> Iterator[tuple[str, Stall]]:
    """Send each volley of each message to one server."""
    crowd = prepare(server.url)
    for name, make in volleys(server.url):
        volley = make()
        bystander = Bystander(server.url, server.pids[0])
        bystander.start()
        time.sleep(_AFTERMATH_S)
        met = measure(Attack(volley, b""), bystander, times)
        bystander.stop()
        volley.close()
        yield name, met
    for each in crowd:
        each.close()


def run_admin(names: list[str], server: Server, letters: int) -> dict[str, Stall]:
    """Run the admin cases, which share their letters."""
    administration = Administration(server)
    administration.fill(letters)
    found = {}
    for name in names:
        bystander = Bystander(server.url, server.pids[0])
        bystander.start()
        memory, begun = bystander.memory(), time.perf_counter()
        ADMIN[name](administration)
        found[name] = stall(bystander, memory, begun, time.perf_counter())
        bystander.stop()
    return found


def print_row(name: str, stall: Stall) -> None:
    mark = "" if stall.is_fine else " missed"
    print(
        f"| {name} | {stall.longest:.0f} | {stall.worked:.0f} "
        f"| {stall.p95:.1f} | {stall.median:.1f} "
        f"| {stall.took:.2f} | {stall.grew:.0f} | {stall.kept:.0f} |{mark}",
        flush=True,
    )


def main() -> None:
    options = parse_arguments()
    chosen = options.cases or [*CASES, _VOLLEYS]
    spec = read_servers(BENCH / "servers.toml")[options.server]
    allow_many_files()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    bars = f"longest wait, ms ({_LONGEST_MS}) | server worked | p95 | median ({_MEDIAN_MS})"
    print(f"| case | {bars} | it took, s | memory, MB | kept |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    begun, is_fine = time.monotonic(), True
    for name in [each for each in chosen if each in CASES]:
        if time.monotonic() - begun > options.budget:
            print(f"# no time left for {name} and what follows", file=sys.stderr)
            break
        with running(spec, cpus=options.cpus, log=options.log) as server:
            met = run_case(name, server, options.times)
        print_row(name, met)
        is_fine = is_fine and met.is_fine
    if _VOLLEYS in chosen:
        with running(spec, cpus=options.cpus, log=options.log) as server:
            for name, met in run_volleys(server, options.times):
                print_row(name, met)
                is_fine = is_fine and met.is_fine
    admin = [each for each in chosen if each in ADMIN]
    if admin:
        with running(spec, cpus=options.cpus, log=options.log) as server:
            for name, met in run_admin(admin, server, options.letters).items():
                print_row(name, met)
                is_fine = is_fine and met.is_fine
    if options.strict and not is_fine:
        sys.exit(1)


if __name__ == "__main__":
    main()
