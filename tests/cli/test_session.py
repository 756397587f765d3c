"""`holdfast session` and `holdfast dispatcher` against an administration."""

import json

import pytest

from holdfast.cli import options
from holdfast.web.admin.session_views import Hold
from tests.cli.conftest import Shell
from tests.web.fake_operations import NOW_MS, a_session


def test_sessions_are_listed(shell: Shell) -> None:
    rows = [line.split("\t") for line in shell.run("session", "list").stdout.splitlines()]
    assert rows[0][:3] == ["KEY", "STATE", "ACTIVE"]
    assert [row[0] for row in rows[1:]] == ["joe/1", "joe/2"]
    done = shell.run("session", "list", "--prefix", "joe/2", "--not-held", "--json")
    assert [json.loads(line)["key"] for line in done.stdout.splitlines()] == ["joe/2"]
    assert shell.run("session", "list", "--held", "--json").stdout == ""
    assert shell.run("session", "list", "--state", "ASLEEP").exit_code == 2


def test_json_lists_are_complete_and_other_lists_have_a_default_limit(shell: Shell) -> None:
    for number in range(3, 1203):
        session = a_session(f"joe/{number}", active=False, hold=Hold("", "operator", NOW_MS, None))
        shell.operations.by_key[session.key] = session
    assert len(shell.run("session", "list", "--json").stdout.splitlines()) == 1202
    done = shell.run("session", "list")
    assert len(done.stdout.splitlines()) == 101
    assert "there are more" in done.stderr
    held = json.loads(shell.run("dispatcher", "show", "--json").stdout)["sessions"]
    assert len(held) == 1200


@pytest.mark.parametrize("key", ["joe/1", "client/joe/1"])
def test_a_session_is_shown_with_the_head_of_its_queue(shell: Shell, key: str) -> None:
    done = shell.run("session", "show", key, "--queue", "1")
    assert "Showing 1 of 3 entries: use --queue" in done.stderr
    assert done.exit_code == 0
    assert "/news" in done.stdout
    assert '{"n":1}' in done.stdout
    assert '{"n":2}' not in done.stdout
    told = json.loads(shell.run("session", "show", key, "--json").stdout)
    assert [entry["data"] for entry in told["queue"]] == [{"n": 1}, {"n": 2}]


def test_a_session_named_by_the_server_is_found(shell: Shell) -> None:
    shell.operations.by_key["anonymous/-5"] = a_session("anonymous/-5")
    assert shell.run("session", "show", "anonymous/-5").exit_code == 0


@pytest.mark.parametrize("key", ["joe", "joe/", "joe/one", "/1", "joe/1/2?x"])
def test_a_malformed_key_is_a_usage_error(shell: Shell, key: str) -> None:
    for command in (["session", "show"], ["session", "end"], ["dispatcher", "hold"]):
        assert shell.run(*command, key).exit_code == 2


@pytest.mark.parametrize("name", ["..", "../dead-letters", "x?y=1#", "x%2fy", "\n"])
def test_odd_session_names_cannot_reach_another_path(shell: Shell, name: str) -> None:
    done = shell.run("session", "end", f"{name}/1", "--yes")
    assert done.exit_code in (1, 2)
    assert done.stderr.startswith("holdfast: ")
    assert shell.operations.changes == []


def test_ending_a_session_needs_a_confirmation(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shell.run("session", "end", "joe/1").exit_code == 2
    monkeypatch.setattr(options, "_is_somebody_there", lambda: True)
    done = shell.run("session", "end", "joe/1", input="n\n")
    assert done.exit_code == 1
    assert "3 entries become dead letters" in done.stderr
    assert shell.operations.changes == []
    assert shell.run("session", "end", "joe/1", input="y\n").exit_code == 0
    assert shell.run("session", "end", "joe/2", "--yes").stdout == "joe/2 has ended\n"
    assert [change.action for change in shell.operations.changes] == ["session.end"] * 2
    shell.operations.by_key["joe/3"] = a_session("joe/3")
    done = shell.run("session", "end", "joe/3", "--yes", "--json")
    assert json.loads(done.stdout) == {"key": "joe/3", "ended": True, "dead": 3}
    done = shell.run("session", "end", "joe/2", "--yes")
    assert done.exit_code == 1
    assert "session list" in done.stderr


def test_a_dry_run_ends_no_session(shell: Shell) -> None:
    done = shell.run("session", "end", "joe/1", "--dry-run")
    assert (done.exit_code, done.stdout) == (0, "joe/1 would be ended\n")
    told = json.loads(shell.run("session", "end", "joe/1", "--dry-run", "--json").stdout)
    assert told == {"key": "joe/1", "ended": False, "dead": 3}
    assert shell.operations.changes == []


@pytest.mark.parametrize("further", [["--all"], ["--prefix", "joe/"]])
def test_a_session_is_ended_alone_or_all_that_meet_conditions(
    shell: Shell, further: list[str]
) -> None:
    assert shell.run("session", "end", "joe/1", *further, "--yes").exit_code == 2
    assert shell.operations.changes == []


def test_delivery_says_that_the_store_does_not_have_a_change_yet(shell: Shell) -> None:
    shell.operations.is_store_away = True
    more = "The store is unavailable and does not have this yet: a kill of the server undoes it\n"
    for word, change in (("hold", "held back"), ("resume", "active")):
        done = shell.run("dispatcher", word, "joe/1")
        assert done.stdout == f"joe/1 is {change}; 2 entries are waiting. {more}"
    done = shell.run("dispatcher", "hold", "joe/1", "--json")
    assert json.loads(done.stdout)["unstored"] is True
    assert "unstored" not in json.loads(shell.run("dispatcher", "show", "joe/1", "--json").stdout)


def test_delivery_is_held_back_shown_and_resumed(shell: Shell) -> None:
    hold = ["dispatcher", "hold", "joe/1", "--reason", "disk full", "--until", "30m"]
    done = shell.run(*hold)
    assert (done.exit_code, done.stdout) == (0, "joe/1 is held back; 2 entries are waiting\n")
    (change,) = shell.operations.changes
    assert (change.who, change.detail["reason"]) == ("operator/ann", "disk full")
    assert change.detail["until"] > NOW_MS
    shown = shell.run("dispatcher", "show", "joe/1").stdout
    assert "disk full (operator/ann" in shown
    assert json.loads(shell.run("dispatcher", "show", "joe/1", "--json").stdout)["active"] is False
    head, *rows = [line.split("\t") for line in shell.run("dispatcher", "show").stdout.splitlines()]
    # Programs get times, not durations.
    assert head == ["HELD", "ENTRIES", "SINCE", "WHY"]
    assert [row[0] for row in rows] == ["joe/1", "/orders"]
    assert (
        shell.run("dispatcher", "resume", "joe/1").stdout
        == "joe/1 is active; 2 entries are waiting\n"
    )
    for command, is_active in (("hold", False), ("resume", True)):
        done = shell.run("dispatcher", command, "joe/1", "--json")
        assert json.loads(done.stdout)["active"] is is_active
    told = json.loads(shell.run("dispatcher", "show", "--json").stdout)
    assert (told["sessions"], told["channels"][0]["channel"]) == ([], "/orders")


def test_sessions_that_meet_conditions_are_ended(shell: Shell) -> None:
    for number in range(3, 2004):
        key = f"thief/{number}"
        shell.operations.by_key[key] = a_session(key, has_connection=False)
    which = ["--prefix", "thief/", "--unconnected"]
    done = shell.run("session", "end", *which, "--dry-run")
    assert (done.exit_code, done.stdout) == (0, "2,001 sessions would be ended\n")
    assert shell.run("session", "end", *which).exit_code == 2, "nobody can be asked"
    assert shell.operations.changes == []
    done = shell.run("session", "end", *which, "--yes")
    assert (done.exit_code, done.stdout) == (0, "2,001 sessions have ended\n")
    assert sorted(shell.operations.by_key) == ["joe/1", "joe/2"]
    assert [change.detail["ended"] for change in shell.operations.changes] == [2000, 1]
    for flag, is_dry_run, text in [
        ("--yes", False, "0 sessions have ended\n"),
        ("--dry-run", True, "0 sessions would be ended\n"),
    ]:
        done = shell.run("session", "end", *which, flag)
        assert (done.exit_code, done.stdout) == (1, text)
        done = shell.run("session", "end", *which, flag, "--json")
        assert done.exit_code == 1
        nothing = {"matched": 0, "entries": 0, "ended": 0, "dry_run": is_dry_run}
        assert json.loads(done.stdout) == nothing


def test_ending_sessions_at_a_terminal_asks_and_says_how_many(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "_is_somebody_there", lambda: True)
    done = shell.run("session", "end", "--prefix", "joe/", input="n\n")
    assert done.exit_code == 1
    assert "End 2 sessions? 6 entries become dead letters." in done.stderr
    assert len(shell.operations.by_key) == 2
    done = shell.run("session", "end", "--prefix", "joe/1", "--json", input="y\n")
    assert json.loads(done.stdout.splitlines()[-1])["ended"] == 1


def test_ending_all_sessions_needs_the_option_all(shell: Shell) -> None:
    assert shell.run("session", "end", "--yes").exit_code == 2
    assert shell.run("session", "end", "--all", "--prefix", "joe/", "--yes").exit_code == 2
    assert len(shell.operations.by_key) == 2
    done = shell.run("session", "end", "--prefix", "joe/1", "--yes")
    assert done.stdout == "1 session has ended\n"
    assert shell.run("session", "end", "--all", "--yes").stdout == "1 session has ended\n"


def test_the_command_stops_when_remaining_sessions_cannot_be_ended(shell: Shell) -> None:
    shell.operations.may_end = 1
    done = shell.run("session", "end", "--prefix", "joe/", "--yes", "--json")
    assert json.loads(done.stdout)["ended"] == 1
    assert done.exit_code == 1


def test_silent_sessions_are_listed(shell: Shell) -> None:
    shell.operations.by_key["joe/3"] = a_session("joe/3", last_seen=5)
    done = shell.run("session", "list", "--silent-for", "1970-06-01", "--json")
    assert [json.loads(line)["key"] for line in done.stdout.splitlines()] == ["joe/3"]
    assert shell.run("session", "list", "--silent-for", "long").exit_code == 2
