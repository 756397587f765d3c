"""`holdfast command` against an administration."""

import json

import pytest

from tests.cli.conftest import Shell


def test_a_command_prints_its_result(shell: Shell) -> None:
    done = shell.run("command", "client/joe/1/?dispatcherActive=false")
    told = "/node/holdfast/client/joe/1/?dispatcherActive=false\n"
    assert (done.exit_code, done.stdout) == (0, told)
    (change,) = shell.operations.changes
    assert (change.who, change.action) == ("operator/ann", "command")
    done = shell.run("command", "client/joe/1/?dispatcherActive", "--value", "true", "--json")
    assert json.loads(done.stdout)["value"] == "true"


def test_a_command_that_only_reads_needs_only_the_readers_token(shell: Shell) -> None:
    token = ["--token-file", str(shell.home / "reader-token")]
    assert shell.run("command", "client/joe/1/?dispatcherActive", *token).exit_code == 0
    assert shell.run("command", "client/joe/1/?killSession", *token).exit_code == 4
    assert shell.operations.changes == []


@pytest.mark.parametrize("text", ["uptime", "?noSuchThing", "client/joe/1/?dispatcherActive=maybe"])
def test_an_invalid_command_is_a_usage_error(shell: Shell, text: str) -> None:
    done = shell.run("command", text)
    assert done.exit_code == 2
    assert "Invalid value: " in done.stderr


def test_the_version_is_printed(shell: Shell) -> None:
    done = shell.run("--version")
    assert done.exit_code == 0
    assert done.stdout.startswith("holdfast ")
