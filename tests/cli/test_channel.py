"""`holdfast channel` against an administration."""

import json

from tests.cli.conftest import Shell


def test_channels_are_listed(shell: Shell) -> None:
    rows = [line.split("\t") for line in shell.run("channel", "list").stdout.splitlines()]
    assert rows[0] == ["NAME", "SUBSCRIBERS", "RATE", "HELD", "LETTERS"]
    assert rows[1] == ["/news", "2", "1.5", "no", "3"]
    done = shell.run("channel", "list", "--prefix", "/orders", "--json")
    assert [json.loads(line)["name"] for line in done.stdout.splitlines()] == ["/orders"]


def test_the_newest_messages_of_a_channel_are_shown(shell: Shell) -> None:
    done = shell.run("channel", "get", "/orders/7", "--limit", "1")
    assert '{"n":1}' in done.stdout
    told = json.loads(shell.run("channel", "get", "/orders/7", "--json").stdout)
    assert [each["data"] for each in told] == [{"n": 1}, {"n": 1}]
    asked = ("channel", "get", "/orders/7", "--filter", "data.n = 1", "--json")
    assert len(json.loads(shell.run(*asked).stdout)) == 1


def test_a_channel_says_that_the_store_does_not_have_a_change_yet(shell: Shell) -> None:
    shell.operations.is_store_away = True
    more = "The store is unavailable and does not have this yet: a kill of the server undoes it\n"
    hold = ("channel", "hold", "/orders/7")
    assert shell.run(*hold).stdout == f"/orders/7 is held back. {more}"
    assert json.loads(shell.run(*hold, "--json").stdout)["unstored"] is True
    release = ("channel", "release", "/orders/7")
    assert shell.run(*release).stdout == f"/orders/7 is released. {more}"
    shell.operations.is_store_away = False
    shell.run(*hold)
    assert json.loads(shell.run(*release, "--json").stdout) == {
        "channel": "/orders/7", "unstored": False, "active": True
    }  # fmt: skip


def test_a_channel_is_held_back_and_released(shell: Shell) -> None:
    done = shell.run("channel", "hold", "/orders/7", "--reason", "stock-taking", "--until", "30m")
    assert done.stdout == "/orders/7 is held back\n"
    shown = shell.run("dispatcher", "show").stdout
    assert "stock-taking (operator" in shown
    assert "2 failed probes" in shown
    assert shell.run("channel", "release", "/orders/7").stdout == "/orders/7 is released\n"
    assert shell.run("channel", "release", "/orders/7").exit_code == 1
    changes = [(each.action, each.target) for each in shell.operations.changes]
    assert changes == [("channel.hold", "/orders/7"), ("channel.release", "/orders/7")]
