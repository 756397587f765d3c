"""What the supervisor asks of its system, and how programs are started again."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import cast

import pytest

from holdfast.supervisor.control import Channel, channel_pair
from holdfast.supervisor.importer import serve_forks
from holdfast.supervisor.system import RealSystem, System, command
from tests.pages import ROOT

WORDS = ["serve", "--port", "0"]


@pytest.mark.parametrize(
    "before",
    [
        ["-m", "holdfast"],
        ["-S", "-P", "-m", "holdfast"],
        ["/usr/local/bin/holdfast"],
        ["-X", "utf8", "/usr/local/bin/holdfast"],
    ],
)
def test_a_program_is_started_as_it_was_with_all_options_of_python(
    monkeypatch: pytest.MonkeyPatch, before: list[str]
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", *before, *WORDS])
    assert command(WORDS) == [sys.executable, *before, *WORDS]


def test_a_program_that_another_has_forked_is_started_by_its_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "tests.forking"])
    assert command(WORDS) == [sys.executable, "-P", "-m", "holdfast", *WORDS]


def test_what_the_supervisor_decides_asks_the_system_in_one_place() -> None:
    """Then tests can play the rest, with a system of their own."""
    asks = re.compile(r"^(?:import|from) (?:os|select|selectors|socket|time|ctypes)\b", re.M)
    package = ROOT / "app" / "supervisor"
    found = {each.stem for each in package.glob("*.py") if asks.search(each.read_text())}
    # What runs before there is a supervisor or beside it, and what it never waits for.
    assert found == {"system", "control", "packets", "entry", "asking", "log", "systemd"}


def test_the_child_of_another_has_ended_when_it_is_gone_and_not_before() -> None:
    """Such as a server whose importer is killed with it: it may have its locks a moment longer."""
    system, script = RealSystem(), "sleep 60 & echo $!; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert system.code_of(pid) is None
        os.kill(pid, signal.SIGKILL)
    assert system.code_of(pid) == 0


class _Waits:
    """A system in which nothing happens but what is heard."""

    def __init__(self) -> None:
        self._hear: Callable[[], None] = self.hear_signals

    def hear_signals(self) -> None:
        pass

    prepare_forks = hear_signals

    def listen(self, _: Channel, hear: Callable[[], None]) -> None:
        self._hear = hear

    def wait(self) -> None:
        self._hear()

    def signals(self) -> list[int]:
        return []

    ended = signals

    def forget(self, channel: Channel) -> None:
        channel.close()

    def end(self) -> None:
        raise SystemExit


def test_an_importer_ends_in_order_whose_supervisor_was_killed_during_the_import() -> None:
    supervisor, importer = channel_pair()

    def load(_: int) -> None:
        supervisor.close()

    with pytest.raises(SystemExit):
        serve_forks(importer, load, cast("System", _Waits()))
    assert importer.fileno() < 0
