"""Which silent servers the supervisor kills, and when, by signs that the test makes."""

import os
import signal
import sys
from typing import Any, cast

import pytest

from holdfast.supervisor.processes import Process
from holdfast.supervisor.system import RealSystem, Signs
from holdfast.supervisor.watching import Watch

LIVING = 4711


class Machine:
    """A system with one server, and a supervisor that looks every second."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.is_runnable, self.used = False, 0
        self.has_proc = True
        self.killed_at: float | None = None
        self.watch = Watch(cast("Any", self), 1.0)
        self.server = Process(cast("Any", self), cast("Any", None), LIVING)
        self.server.note_alive()

    def now(self) -> float:
        return self.time

    def signs(self, pid: int) -> Signs | None:
        assert pid == LIVING
        return Signs(self.is_runnable, (self.used // 10, self.used)) if self.has_proc else None

    def signal(self, _: int, number: int) -> None:
        assert number == signal.SIGKILL
        self.killed_at = self.time - 1000.0

    def run(self, seconds: float, tick_s: float = 1.0, works: int = 0) -> "Machine":
        """The server says nothing. The supervisor looks after each of these ticks."""
        for _ in range(round(seconds / tick_s)):
            self.time += tick_s
            self.used += works
            self.watch.look([self.server])
        return self


def test_a_server_that_does_not_run_is_killed_after_five_seconds() -> None:
    machine = Machine().run(20)
    assert machine.killed_at is not None
    assert 5.0 < machine.killed_at <= 7.0


def test_a_server_that_computes_is_killed_after_a_minute() -> None:
    machine = Machine().run(100, works=1)
    assert machine.killed_at == pytest.approx(61.0)


def test_a_server_for_which_no_processor_is_free_is_not_frozen() -> None:
    machine = Machine()
    machine.is_runnable = True
    assert machine.run(50).killed_at is None


def test_a_supervisor_that_was_late_itself_counts_from_the_start() -> None:
    machine = Machine()
    for _ in range(20):
        # The machine has too much to do, or was suspended.
        machine.run(3).run(4, tick_s=4.0)
        machine.server.silent_s = min(machine.server.silent_s or 0.0, 20.0)
    assert machine.killed_at is None


def test_who_speaks_again_in_time_is_not_killed() -> None:
    machine = Machine()
    for _ in range(20):
        machine.run(4)
        machine.server.note_alive()
    assert machine.killed_at is None


def test_few_signs_are_not_enough_however_far_apart_they_are() -> None:
    machine = Machine()
    machine.run(6, tick_s=2.0)
    assert machine.killed_at is None


def test_where_the_system_has_no_signs_every_silent_server_has_a_minute() -> None:
    machine = Machine()
    machine.has_proc = False
    assert machine.run(100).killed_at == pytest.approx(61.0)


def test_many_looks_within_a_second_are_one_sign() -> None:
    machine = Machine().run(3, tick_s=0.05)
    assert machine.killed_at is None
    assert machine.run(10, tick_s=0.05).killed_at == pytest.approx(6.0, abs=1.0)


def test_the_limits_can_be_set() -> None:
    machine = Machine()
    machine.watch.frozen_s = 8.0
    assert machine.run(8).killed_at is None
    assert machine.run(4).killed_at is not None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no signs")
def test_a_process_that_runs_shows_it() -> None:
    own = RealSystem().signs(os.getpid())
    assert own is not None
    assert own.is_runnable
    while (later := RealSystem().signs(os.getpid())) == own:
        pass
    assert later is not None
    assert later.used > own.used


def test_a_process_that_is_gone_has_no_signs() -> None:
    assert RealSystem().signs(2**22 + 1) is None
