"""The command as a whole: what there is, and what it costs to ask."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from holdfast.cli.main import COMMANDS, load, program

_WHAT_IS_LOADED = """
import sys
from holdfast.cli.main import program
program(["--help"], standalone_mode=False)
print(*sys.modules)
"""


def test_whoever_asks_what_there_is_does_not_wait_for_the_server() -> None:
    told = subprocess.run(
        [sys.executable, "-c", _WHAT_IS_LOADED], check=True, capture_output=True, text=True
    ).stdout
    *shown, modules = told.splitlines()
    assert [line.split()[0] for line in shown[-len(COMMANDS) :]] == list(COMMANDS)
    loaded = {name.partition(".")[0] for name in modules.split()}
    assert not loaded & {"aiohttp", "pydantic", "redis", "rich", "uvloop"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_of_itself_what_the_list_says(name: str) -> None:
    _, described = COMMANDS[name]
    assert (load(name).help or "").partition("\n")[0] == described


def test_a_slip_of_the_pen_is_told_apart() -> None:
    result = CliRunner().invoke(program, ["ded"])
    assert result.exit_code == 2
    assert "No such command 'ded'. Did you mean 'dead'?" in result.output
