"""The command as a whole: what there is, and what it costs to ask."""

import gc
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


def test_the_list_of_commands_does_not_import_the_server() -> None:
    told = subprocess.run(
        [sys.executable, "-c", _WHAT_IS_LOADED], check=True, capture_output=True, text=True
    ).stdout
    *shown, modules = told.splitlines()
    assert [line.split()[0] for line in shown[-len(COMMANDS) :]] == list(COMMANDS)
    loaded = {name.partition(".")[0] for name in modules.split()}
    assert not loaded & {"aiohttp", "pydantic", "redis", "rich", "uvloop"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_begins_as_the_list_describes_it(name: str) -> None:
    _, described = COMMANDS[name]
    assert (load(name).help or "").partition("\n")[0] == described


def test_a_mistyped_command_gets_a_suggestion() -> None:
    result = CliRunner().invoke(program, ["ded"])
    assert result.exit_code == 2
    assert "No such command 'ded'. Did you mean 'dead'?" in result.output


def test_garbage_is_looked_for_once_a_command_is_loaded() -> None:
    load("rights")
    assert gc.isenabled()
