"""The command as a whole: its commands, options and help, and the time that they take."""

import re
import shlex
import subprocess
import sys
from functools import cache
from string import ascii_lowercase
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from holdfast.cli.main import COMMANDS, load, program
from tests.imported import foreign_modules_in, modules_in, packages_in
from tests.serving import ROOT, environment

_WHAT_IS_LOADED = """
import sys
from holdfast.cli.main import program
program(["--help"], standalone_mode=False)
print(*sys.modules)
"""


def test_the_list_of_commands_does_not_import_the_server() -> None:
    output = subprocess.run(
        [sys.executable, "-c", _WHAT_IS_LOADED], check=True, capture_output=True, text=True
    ).stdout
    *shown, modules = output.splitlines()
    told = [line.split()[0] for line in shown if line[:2] == "  " and line[2] in ascii_lowercase]
    assert told == list(COMMANDS)
    loaded = {name.partition(".")[0] for name in modules.split()}
    assert not loaded & {"aiohttp", "pydantic", "redis", "rich", "uvloop"}


@cache
def imports_of(*words: str) -> str:
    """What a command says about its imports until it ends."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "holdfast", *words],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return done.stderr


def test_the_version_is_shown_without_reading_options() -> None:
    assert not packages_in(imports_of("version")) & {"typer", "pydantic", "rich", "asyncio"}


# With some room for other versions of the libraries: typer and pydantic are most of them, and
# aiohttp of a client's.
@pytest.mark.parametrize(
    ("words", "most"), [("version", 12), ("session list", 130), ("publish /a 1", 233)]
)
def test_a_command_imports_a_limited_number_of_modules(words: str, most: int) -> None:
    assert len(foreign_modules_in(imports_of(*shlex.split(words)))) <= most


def test_publishing_does_not_import_the_store_or_the_reader_of_settings_files() -> None:
    found = modules_in(imports_of("publish", "/a", "1"))
    assert not [name for name in found if name.startswith(("holdfast.store", "tomllib"))]


@pytest.mark.parametrize("words", ["session list", "publish /a 1", "dead list", "version --json"])
def test_a_command_does_not_import_what_draws_on_terminals_or_runs_the_server(words: str) -> None:
    found = packages_in(imports_of(*shlex.split(words)))
    assert not found & {"rich", "redis", "uvloop", "prometheus_client", "cryptography"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_begins_with_its_line_in_the_list(name: str) -> None:
    assert (load(name).help or "").partition("\n")[0] == COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_options_name_their_values_in_words(name: str) -> None:
    command: Any = load(name)
    for each in getattr(command, "commands", {}).values() or [command]:
        for option in each.params:
            shown, _ = option.get_help_record(typer.Context(each))
            assert not shown.startswith("-") or "<" not in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_helps_of_commands_show_arguments_without_python_types(name: str) -> None:
    command: Any = load(name)
    for each in getattr(command, "commands", {}).values() or [command]:
        shown = each.get_help(typer.Context(each))
        assert not re.findall(r"^  \w+ <.*", shown, re.MULTILINE)
        for argument in each.params:
            if argument.param_type_name == "argument":
                assert re.search(rf"^  {argument.metavar}\s", shown, re.MULTILINE)


def test_the_version_is_a_flag_without_an_opposite() -> None:
    shown = CliRunner().invoke(program, ["--help"]).output
    assert re.search(r"^  --version +Show the version\.$", shown, re.MULTILINE)


def test_descriptions_of_groups_are_whole_sentences() -> None:
    told = " ".join(CliRunner().invoke(program, ["channel", "--help"]).output.split())
    assert "hold Hold back a channel. release" in told
    assert "messages or dead letters, and held ones, by name. get" in told


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_in_help_texts_use_existing_commands_and_options(name: str) -> None:
    command: Any = load(name)
    for each in getattr(command, "commands", {}).values() or [command]:
        for example in re.findall("Example: (.*)", each.help or ""):
            words = shlex.split(example)
            begin = ["holdfast", name] + ([each.name] if each is not command else [])
            assert words[: len(begin)] == begin
            # Fails for unknown options, and for values of a wrong type.
            each.make_context(example, words[len(begin) :])


def test_a_mistyped_command_gets_a_suggestion() -> None:
    result = CliRunner().invoke(program, ["subjet"])
    assert result.exit_code == 2
    assert "No such command 'subjet'. Did you mean 'subject'?" in result.output


def test_a_command_of_a_group_without_the_group_gets_a_suggestion() -> None:
    result = CliRunner().invoke(program, ["replay", "--all"])
    assert result.exit_code == 2
    wanted = "No such command 'replay'. Did you mean 'dead replay' or 'pipeline replay'?"
    assert wanted in result.output


_COLLECTIONS = """
import gc, sys
from holdfast.__main__ import main
sys.argv = ["holdfast", "rights", "--help"]
try:
    main()
finally:
    assert gc.isenabled()
    print(sum(each["collections"] for each in gc.get_stats()), file=sys.stderr)
"""


def test_a_command_that_only_imports_hardly_looks_for_garbage() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _COLLECTIONS],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert int(done.stderr) < 20


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("holdfast dea", ["dead"]),
        ("holdfast dead exp", ["export"]),
        ("holdfast serve --max-queue", ["--max-queue", "--max-queue-bytes"]),
        ("holdfast dead list --rec", ["--receiver"]),
    ],
)
def test_shells_complete_commands_and_options(line: str, completed: list[str]) -> None:
    asked = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
        "_HOLDFAST_COMPLETE": "complete_bash",
    }
    result = CliRunner().invoke(program, [], env=asked, prog_name="holdfast")
    assert result.stdout.split() == completed
