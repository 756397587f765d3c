"""`holdfast topic` against an administration."""

import json

import pytest

from holdfast.cli import options
from tests.cli.conftest import Shell


def test_topics_are_listed_with_what_refers_to_them(shell: Shell) -> None:
    rows = [line.split("\t") for line in shell.run("topic", "list").stdout.splitlines()]
    assert rows[0] == ["CHANNEL", "STATE", "KEPT", "QUEUED", "SUBSCRIBERS"]
    assert rows[1] == ["/orders/7", "ALIVE", "3", "2", "1"]
    done = shell.run("topic", "list", "--prefix", "/orders/8", "--json")
    assert [json.loads(line)["channel"] for line in done.stdout.splitlines()] == ["/orders/8"]


def test_one_topic_is_shown_with_its_configuration(shell: Shell) -> None:
    shown = shell.run("topic", "show", "/orders/8").stdout
    assert "UNREFERENCED" in shown
    assert json.loads(shell.run("topic", "show", "/orders/8", "--json").stdout)["readonly"] is True
    assert shell.run("topic", "show", "/plain").exit_code == 1


def test_the_question_before_a_topic_is_erased_says_what_ends(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "_is_somebody_there", lambda: True)
    done = shell.run("topic", "erase", "/orders/7", input="n\n")
    told = "Erase /orders/7? 1 subscription ends; 2 waiting messages are still delivered."
    assert told in done.stderr


def test_a_topic_is_erased(shell: Shell) -> None:
    done = shell.run("topic", "erase", "/orders/7", "--force", "--yes")
    assert done.stdout == "/orders/7 was erased\n"
    (change,) = shell.operations.changes
    assert (change.action, change.target, change.detail) == (
        "topic.erase",
        "/orders/7",
        {"force": True},
    )
    assert shell.run("topic", "erase", "/orders/7", "--yes").exit_code == 1
