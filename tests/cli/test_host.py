"""`holdfast host` against an administration."""

import json
from dataclasses import replace

from tests.cli.conftest import Shell
from tests.web.fake_operations import a_host, some_hosts


def test_the_list_shows_hosts_and_shards_and_what_moves(shell: Shell) -> None:
    listed = shell.run("host", "list")
    head, *rows = [line.split("\t") for line in listed.stdout.splitlines()]
    assert head == ["HOST", "STATE", "SHARDS", "RELEASE", "URL", "DRAINED BY", "FOR"]
    assert [row[:3] for row in rows] == [
        ["a.example", "serving", "0 3"],
        ["b.example", "serving", "1 2 5"],
        ["c.example", "away", ""],
    ]
    assert "no living host has shard 4" in listed.stderr
    assert "shard 5 moves to a.example" in listed.stderr
    told = json.loads(shell.run("host", "list", "--json").stdout)
    assert [each["name"] for each in told["items"]] == ["a.example", "b.example", "c.example"]
    assert told["unowned"] == [4]


def test_hosts_that_live_with_other_settings_are_named(shell: Shell) -> None:
    assert "settings differ" not in shell.run("host", "list").stderr
    items = [a_host("a.example"), a_host("b.example", digest="d2"), a_host("c.example")]
    shell.operations.all_hosts = replace(some_hosts(), items=items)
    listed = shell.run("host", "list")
    assert "settings differ that must be alike: a.example c.example; b.example" in listed.stderr


def test_what_keeps_a_host_or_a_shard_away_is_said(shell: Shell) -> None:
    items = [a_host("a.example", 0, 3), a_host("b.example", refused=["login", "rights"])]
    shell.operations.all_hosts = replace(some_hosts(), items=items, emptied=[4])
    said = shell.run("host", "list").stderr
    assert "b.example takes no shard, because its settings differ" in said
    assert "all hosts with shards: login, rights" in said
    assert "the store of shard 4 has come back empty" in said
    assert "holdfast host renew 4" in said


def test_a_drain_is_asked_for_and_ended(shell: Shell) -> None:
    assert shell.run("host", "drain", "a.example").stdout == "a.example gives its shards away\n"
    assert shell.run("host", "uncordon", "a.example").stdout == "a.example has shards again\n"
    changes = [(each.action, each.target) for each in shell.operations.changes]
    assert changes == [("host.drain", "a.example"), ("host.uncordon", "a.example")]


def test_a_drain_waits_until_the_host_has_no_shard(shell: Shell) -> None:
    shell.operations.later_hosts = replace(
        some_hosts(), items=[a_host("a.example", state="draining")]
    )
    done = shell.run("host", "drain", "a.example", "--wait", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {"host": "a.example", "shards": []}


def test_a_drain_that_ends_before_the_shards_have_left_fails(shell: Shell) -> None:
    shell.operations.later_hosts = some_hosts()
    done = shell.run("host", "drain", "a.example", "--wait")
    assert (done.exit_code, "still has shards" in done.stderr) == (1, True)


def test_unknown_hosts_are_refused(shell: Shell) -> None:
    for word in ("drain", "uncordon"):
        refused = shell.run("host", word, "z.example")
        assert (refused.exit_code, "holdfast host list" in refused.stderr) == (1, True)
