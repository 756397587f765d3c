"""`holdfast command` against an administration."""

import json

import pytest

from tests.cli.conftest import Shell


def test_a_command_says_what_came_of_it(shell: Shell) -> None:
    done = shell.run("command", "client/joe/1/?dispatcherActive=false")
    told = "/node/holdfast/client/joe/1/?dispatcherActive=false\n"
    assert (done.exit_code, done.stdout) == (0, told)
    (change,) = shell.operations.changes
    assert (change.who, change.action) == ("operator/ann", "command")
    done = shell.run("command", "client/joe/1/?dispatcherActive", "--value", "true", "--json")
    assert json.loads(done.stdout)["value"] == "true"


def test_a_question_needs_no_more_than_the_readers_token(shell: Shell) -> None:
    token = ["--token-file", str(shell.home / "reader-token")]
    assert shell.run("command", "client/joe/1/?dispatcherActive", *token).exit_code == 0
    assert shell.run("command", "client/joe/1/?killSession", *token).exit_code == 4
    assert shell.operations.changes == []


@pytest.mark.parametrize("text", ["uptime", "?noSuchThing", "client/joe/1/?dispatcherActive=maybe"])
def test_a_command_that_makes_no_sense_is_wrong_usage(shell: Shell, text: str) -> None:
    done = shell.run("command", text)
    assert done.exit_code == 2
    assert "Invalid value: " in done.stderr


def test_the_version_is_told(shell: Shell) -> None:
    done = shell.run("--version")
    assert done.exit_code == 0
    assert done.stdout.startswith("holdfast ")
