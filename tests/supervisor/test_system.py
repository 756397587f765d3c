"""What the supervisor asks of its system, and how programs are started again."""

import re
import sys

import pytest

from holdfast.supervisor.system import command
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
    assert found == {"system", "control", "entry", "asking", "log", "systemd"}
