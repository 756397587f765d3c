"""Measures how long one client's most expensive requests make other clients wait."""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from bench.measure import allow_many_files
from bench.plan import BENCH, read_servers
from bench.processes import Server, running
from bench.run import CACHE
from bench.stalls.admin import ADMIN, Administration
from bench.stalls.cases import CASES, Attack, Case, Sender, slow_backend, webhook_calls
from bench.stalls.clients import Bystander
from bench.stalls.deciding import with_backend
from bench.stalls.hooked import with_webhook
from bench.stalls.memory import Memory
from bench.stalls.past import fill_past
from bench.stalls.volleys import prepare, volleys

# The targets for a bystander's waits on the reference machine.
_LONGEST_MS, _MEDIAN_MS = 50, 10
# A median over fewer replies says nothing: a single step of 15 ms makes a bystander wait once. Then
# the longest wait alone is judged.
_ENOUGH = 20
# Requests that can be repeated are sent until there are enough replies, but not more often.
_MOST_TIMES = 60
# The work that an attack leaves behind, such as writing letters to the store, counts too.
_AFTERMATH_S = 0.5
# The machine makes a wait long now and then. So a case misses a bar only if it does so in most of
# these runs; there is one if it meets the bars at once.
_RUNS = 3
# What servers of some cases need besides.
_AROUND: dict[Case, Callable[[], AbstractContextManager[None]]] = {
    webhook_calls: with_webhook,
    slow_backend: with_backend,
}
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
    # How many replies the bystander got while the attack went on.
    answers: int
    took: float
    # By how much the server's memory grew meanwhile, and how much of this was left in the end.
    grew: float
    kept: float

    @property
    def has_median(self) -> bool:
        """Whether there were enough replies to judge their median."""
        return self.answers >= _ENOUGH

    @property
    def is_fine(self) -> bool:
        has_typical = not self.has_median or self.median <= _MEDIAN_MS
        return self.longest <= _LONGEST_MS and has_typical


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.stalls", description=__doc__)
    add = parser.add_argument
    names = ", ".join((*CASES, _VOLLEYS, *ADMIN))
    add("cases", nargs="*", metavar="case", help=f"some of {names}; default: all but admin")
    add("--server", default="holdfast")
    add("--letters", type=int, default=100_000, help="for the admin cases")
    add("--cpus", default="0", help="processors of the server")
    add(
        "--times",
        type=int,
        default=1,
        help="how often to send the request at least, without pauses",
    )
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
        send(attack, times, lambda: bystander.answers_since(begun) >= _ENOUGH)
    except TimeoutError:
        pass
    ended = time.perf_counter()
    time.sleep(_AFTERMATH_S)
    return stall(bystander, memory, begun, ended, lets_stand=attack.lets_stand)


def send(attack: Attack, times: int, has_enough: Callable[[], bool]) -> None:
    """Send the request so often, and again until there are enough replies if it can be repeated."""
    most = max(times, _MOST_TIMES) if attack.is_repeatable else times
    for number in range(most):
        if number >= times and has_enough():
            return
        attack.client.post(attack.body)


def stall(
    bystander: Bystander, memory: Memory, begun: float, ended: float, *, lets_stand: bool = False
) -> Stall:
    waits = bystander.waits(begun, ended + _AFTERMATH_S)
    if lets_stand:
        waits = [wait._replace(took=min(wait.took, wait.worked)) for wait in waits]
    longest = 1000 * max(wait.took for wait in waits)
    worked = 1000 * max(wait.worked for wait in waits)
    answered = [wait for wait in waits if wait.asked <= ended]
    during = sorted(1000 * wait.took for wait in answered or waits)
    p95 = during[int(0.95 * len(during))]
    median, took = statistics.median(during), ended - begun
    memories = memory.peak(), memory.left()
    return Stall(longest, worked, p95, median, len(answered), took, *memories)


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


def run_volleys(server: Server, times: int) -> bool:
    """Send each volley of each message to one server. Returns whether all met the bars."""
    crowd, are_fine = prepare(server.url), True
    for name, is_repeatable, make in volleys(server.url):

        def run(make: Callable[[], Sender] = make, is_repeatable: bool = is_repeatable) -> Stall:
            volley = make()
            bystander = Bystander(server.url, server.pids[0])
            bystander.start()
            time.sleep(_AFTERMATH_S)
            met = measure(Attack(volley, b"", is_repeatable=is_repeatable), bystander, times)
            bystander.stop()
            volley.close()
            return met

        are_fine &= judge(name, run)
    for each in crowd:
        each.close()
    return are_fine


def judge(name: str, run: Callable[[], Stall]) -> bool:
    """Run a case, print its rows, and return whether it met the bars."""
    missed = 0
    for number in range(_RUNS):
        met = run()
        print_row(name, met)
        missed += not met.is_fine
        if number + 1 - missed > missed or missed > _RUNS // 2:
            break
    return missed <= _RUNS // 2


def run_admin(names: list[str], server: Server, letters: int) -> dict[str, Stall]:
    """Run the admin cases, which share their letters."""
    administration = Administration(server)
    # Before the first minute is over, after which the server has read its own.
    fill_past(server.data)
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
    median = f"{stall.median:.1f}" if stall.has_median else f"({stall.median:.1f})"
    print(
        f"| {name} | {stall.longest:.0f} | {stall.worked:.0f} "
        f"| {stall.p95:.1f} | {median} | {stall.answers} "
        f"| {stall.took:.2f} | {stall.grew:.0f} | {stall.kept:.0f} |{mark}",
        flush=True,
    )


def main() -> None:
    # The process that is watched must be the server.
    os.environ["HOLDFAST_SUPERVISOR"] = "off"
    options = parse_arguments()
    chosen = options.cases or [*CASES, _VOLLEYS]
    spec = read_servers(BENCH / "servers.toml")[options.server]
    allow_many_files()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    bars = f"longest wait, ms ({_LONGEST_MS}) | server worked | p95 | median ({_MEDIAN_MS})"
    print(f"| case | {bars} | of replies | it took, s | memory, MB | kept |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    begun, is_fine = time.monotonic(), True
    for name in [each for each in chosen if each in CASES]:
        if time.monotonic() - begun > options.budget:
            print(f"# no time left for {name} and what follows", file=sys.stderr)
            break

        def run(name: str = name) -> Stall:
            with (
                _AROUND.get(CASES[name], nullcontext)(),
                running(spec, cpus=options.cpus, log=options.log) as server,
            ):
                return run_case(name, server, options.times)

        is_fine &= judge(name, run)
    if _VOLLEYS in chosen:
        with running(spec, cpus=options.cpus, log=options.log) as server:
            is_fine &= run_volleys(server, options.times)
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
