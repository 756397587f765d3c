"""`holdfast dead` against an administration: its output, changes and exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from holdfast.cli import options, output, replay
from holdfast.store.replays.job_records import JobState
from tests.cli.conftest import Shell
from tests.serving import ROOT
from tests.web.fake_operations import a_letter

LETTER = f"{2:019}"


def test_letters_are_listed_with_tabs_in_a_pipe(shell: Shell) -> None:
    done = shell.run("dead", "list", "--fingerprint", "f1")
    assert done.exit_code == 0
    head, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert head[:3] == ["ID", "SINCE", "CHANNEL"]
    assert [int(row[0]) for row in rows] == [3, 2, 1]


def test_letters_are_listed_as_json_lines(shell: Shell) -> None:
    done = shell.run("dead", "list", "--json", "--limit", "2")
    assert [int(json.loads(line)["id"]) for line in done.stdout.splitlines()] == [5, 4]


def test_a_list_is_fetched_in_several_parts_up_to_its_limit(shell: Shell) -> None:
    for number in range(100, 700):
        letter = a_letter(number)
        shell.operations.by_id[letter.id] = letter
    done = shell.run("dead", "list", "--limit", "550")
    assert len(done.stdout.splitlines()) == 551
    assert "--limit" in done.stderr
    done = shell.run("dead", "list", "--limit", "605")
    assert (len(done.stdout.splitlines()), done.stderr) == (606, "")


def test_json_lists_are_complete_and_other_lists_have_a_default_limit(shell: Shell) -> None:
    for number in range(100, 700):
        # As many groups as letters.
        letter = a_letter(number, fingerprint=f"g{number}")
        shell.operations.by_id[letter.id] = letter
    for which, count in (([], 605), (["--groups"], 602)):
        done = shell.run("dead", "list", *which, "--json")
        assert (len(done.stdout.splitlines()), done.stderr) == (count, "")
        done = shell.run("dead", "list", *which)
        assert len(done.stdout.splitlines()) == 101
        assert "there are more" in done.stderr
        done = shell.run("dead", "list", *which, "--json", "--limit", "7")
        assert len(done.stdout.splitlines()) == 7
        assert "there are more" in done.stderr


def test_letters_are_listed_in_groups(shell: Shell) -> None:
    rows = shell.run("dead", "list", "--groups").stdout.splitlines()[1:]
    assert [row.split("\t")[:2] for row in rows] == [["f1", "3"], ["f2", "2"]]
    done = shell.run("dead", "list", "--groups", "--json")
    assert json.loads(done.stdout.splitlines()[0])["count"] == 3
    assert shell.run("dead", "list", "--groups", "--code", "user").exit_code == 2


def test_letters_are_listed_in_groups_by_code(shell: Shell) -> None:
    head, *rows = shell.run("dead", "list", "--groups", "--by", "code").stdout.splitlines()
    assert head.split("\t") == ["COUNT", "RECEIVERS", "SINCE", "CHANNEL", "CODE", "REASON"]
    assert sum(int(row.split("\t")[0]) for row in rows) == 5
    assert all("\t/**\t" in row for row in rows)
    for words in (["--by", "code"], ["--groups", "--by", "code", "--fingerprint", "f1"]):
        assert shell.run("dead", "list", *words).exit_code == 2


def test_a_letter_is_shown_with_its_attempts(shell: Shell) -> None:
    done = shell.run("dead", "show", LETTER)
    assert done.exit_code == 0
    for word in ("/orders", "cannot be read", '{"order":2}', "user.update.holdback", "disk full"):
        assert word in done.stdout
    assert json.loads(shell.run("dead", "show", LETTER, "--json").stdout)["data"] == {"order": 2}


def test_a_letter_that_is_not_there_is_a_failure(shell: Shell) -> None:
    done = shell.run("dead", "show", "9" * 19)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "there is no dead letter" in done.stderr
    assert "holdfast dead list" in done.stderr
    done = shell.run("dead", "show", "123")
    assert (done.exit_code, "19 digits" in done.stderr) == (2, True)


def test_control_characters_in_letters_are_escaped(shell: Shell) -> None:
    evil = "\x1b[2J\r\n\x9b1m\u202e[bold]x[/bold]"
    shell.operations.by_id[LETTER] = a_letter(2, reason=evil, data=evil, channel="/a\tb")
    shown = [shell.run("dead", *rest) for rest in (["list"], ["show", LETTER])]
    shown += [shell.run("dead", *rest, "--json") for rest in (["list"], ["show", LETTER])]
    for done in shown:
        assert done.exit_code == 0
        assert not set("\x1b\r\x9b\u202e") & set(done.stdout)
        assert "[bold]x[/bold]" in done.stdout
    assert json.loads(shown[-1].stdout)["reason"] == evil


def test_a_purge_needs_a_selection_and_a_confirmation(shell: Shell) -> None:
    for arguments in ([], ["--all", "--fingerprint", "f1"], ["not/an/id"]):
        assert shell.run("dead", "purge", *arguments).exit_code == 2
    done = shell.run("dead", "purge", "--fingerprint", "f1")
    assert done.exit_code == 2
    assert "--yes" in done.stderr
    assert shell.operations.changes == []


def test_a_dry_run_of_a_purge_says_what_it_would_remove(shell: Shell) -> None:
    done = shell.run("dead", "purge", "--all", "--dry-run")
    assert (done.exit_code, done.stdout) == (0, "5 dead letters would be removed\n")
    assert len(shell.operations.by_id) == 5


def test_a_purge_removes_the_selected_letters(shell: Shell) -> None:
    done = shell.run("dead", "purge", LETTER, f"{3:019}", "--yes")
    assert (done.exit_code, done.stdout) == (0, "2 dead letters removed\n")
    for flags, told in ((["--dry-run"], "would be removed"), (["--yes"], "removed")):
        done = shell.run("dead", "purge", f"{1:019}", *flags)
        assert (done.exit_code, done.stdout) == (0, f"1 dead letter {told}\n")
    done = shell.run("dead", "purge", "--fingerprint", "f2", "-y", "--json")
    assert json.loads(done.stdout)["purged"] == 2
    (change, *_) = shell.operations.changes
    assert (change.who, change.action) == ("operator/ann", "dead.purge")
    assert shell.run("dead", "purge", LETTER, "--yes").exit_code == 1


def test_a_purge_asks_for_confirmation_at_a_terminal(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "_is_somebody_there", lambda: True)
    done = shell.run("dead", "purge", "--all", input="n\n")
    assert done.exit_code == 1
    assert "Remove 5 dead letters for good?" in done.stderr
    assert len(shell.operations.by_id) == 5


def test_letters_that_die_after_the_count_are_not_removed(shell: Shell) -> None:
    late = replace(a_letter(50), died=9_999_999_999_999)
    shell.operations.by_id[late.id] = late
    assert "5 dead letters" in shell.run("dead", "purge", "--all", "--yes").stdout
    assert [*shell.operations.by_id] == [late.id]


def test_a_replay_is_planned_and_watched_to_its_end(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_POLL_S", 0.001)
    done = shell.run("dead", "replay", "--fingerprint", "f1", "--rate", "7", "--yes", "--wait")
    assert done.exit_code == 0
    assert done.stdout == ("Replay r1 is done: 3 of 3 sent, 3 acked, 0 died again, 0 skipped\n")
    assert "3 dead letters match" in done.stderr
    assert shell.operations.jobs["r1"].options["rate"] == 7


def test_a_replay_may_go_to_another_session(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_POLL_S", 0.001)
    assert shell.run("dead", "replay", "--all", "--to", "client/joe/2", "--yes").exit_code == 0
    assert shell.operations.jobs["r1"].options["to"] == "joe/2"


def test_one_letter_is_replayed_with_other_data(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_POLL_S", 0.001)
    assert shell.run("dead", "replay", LETTER, "--data", '{"n": 1}', "--yes").exit_code == 0
    assert shell.operations.jobs["r1"].options["data"] == '{"n":1}'
    for wrong in (
        ["--all", "--data", "1"],
        [LETTER, "--data", "{"],
        [LETTER, LETTER, "--data", "1"],
    ):
        assert shell.run("dead", "replay", *wrong, "--yes").exit_code == 2


def test_a_remark_is_made_changed_and_shown(shell: Shell) -> None:
    assert shell.run("dead", "remark", "f1").stdout == "nobody: no note\n"
    done = shell.run("dead", "remark", "f1", "--assignee", "ann", "--note", "known")
    assert done.stdout == "ann: known\n"
    assert shell.run("dead", "remark", "f1", "--note", "").stdout == "ann: no note\n"
    said = json.loads(shell.run("dead", "remark", "f1", "--json").stdout)
    assert (said["assignee"], said["who"].partition("/")[0]) == ("ann", "operator")
    rows = shell.run("dead", "list", "--groups", "--fingerprint", "f1").stdout.splitlines()
    assert ["ann" in row.split("\t") for row in rows] == [False, True]
    assert shell.run("dead", "remark", "none").exit_code == 1
    assert shell.run("dead", "remark", "../f1").exit_code == 2


def test_a_dry_run_of_a_replay_says_what_it_would_do(shell: Shell) -> None:
    done = shell.run("dead", "replay", "--all", "--dry-run")
    assert (done.exit_code, shell.operations.jobs) == (0, {})
    assert "channels: /orders 5" in done.stdout
    done = shell.run("dead", "replay", "--channel", "/none", "--yes", "--json")
    assert (done.exit_code, json.loads(done.stdout)["total"]) == (1, 0)


def test_a_replay_ends_when_the_server_has_it_and_prints_its_id(shell: Shell) -> None:
    shell.operations.pace = 0
    done = shell.run("dead", "replay", "--all", "--yes")
    assert (done.exit_code, done.stdout) == (0, "r1\n")
    assert "holdfast dead replay --watch r1" in done.stderr
    assert shell.operations.looks == 0
    done = shell.run("dead", "replay", "--all", "--yes", "--json")
    assert (done.exit_code, json.loads(done.stdout)["state"]) == (0, "running")


@pytest.mark.parametrize("words", [["--all", "--yes", "--wait"], ["--watch", "r1"]])
def test_waiting_for_a_replay_ends_as_it_ends(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr(replay, "_POLL_S", 0.001)
    shell.run("dead", "replay", "--fingerprint", "f1", "--yes")
    done = shell.run("dead", "replay", *words)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"Replay r{2 if '--all' in words else 1} is done: ")


@pytest.mark.parametrize("words", [["--all", "--yes"], ["--watch", "r1"]])
@pytest.mark.parametrize("wait", [["--wait", "0s"], ["--wait=0s"]])
def test_a_wait_that_ends_before_the_replay_does_not_know_how_that_ends(
    shell: Shell, words: list[str], wait: list[str]
) -> None:
    shell.operations.pace = 0
    shell.run("dead", "replay", "--fingerprint", "f1", "--yes")
    done = shell.run("dead", "replay", *words, *wait)
    assert done.exit_code == 5
    assert "the replay goes on: holdfast dead replay --watch r" in done.stderr
    assert all(job.state is JobState.RUNNING for job in shell.operations.jobs.values())


def test_an_id_behind_wait_is_no_time(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_POLL_S", 0.001)
    done = shell.run("dead", "replay", "--yes", "--wait", LETTER)
    assert (done.exit_code, shell.operations.jobs["r1"].total) == (0, 1)
    assert shell.run("dead", "replay", "--yes", "--all", "--wait=soon").exit_code == 2


def test_a_replay_names_the_receivers_that_are_away_before_it_asks(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "away, so their letters wait until they come back: joe/1 3, ann/2 1"
    shell.operations.away = {"joe/1": 3, "ann/2": 1}
    assert told in shell.run("dead", "replay", "--all", "--dry-run").stdout
    monkeypatch.setattr(options, "_is_somebody_there", lambda: True)
    for more in ([], ["--json"]):
        done = shell.run("dead", "replay", "--all", *more, input="n\n")
        assert done.exit_code == 1
        assert 0 < done.stderr.index(told) < done.stderr.index("Deliver 5 dead letters again?")
    assert shell.operations.jobs == {}
    shell.operations.away = {}
    assert "away" not in shell.run("dead", "replay", "--all", "--dry-run").stdout


def test_waiting_for_a_replay_without_a_terminal_prints_lines(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_BETWEEN_LINES_S", 0.001)
    shell.operations.pace = 0
    done = shell.run("dead", "replay", "--all", "--yes", "--wait", "1s")
    assert "Replaying: 0 acked, 0 died again, 0 of 5\n" in done.stderr


def test_a_replay_is_cancelled(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_POLL_S", 0.001)
    shell.operations.pace = 0
    shell.run("dead", "replay", "--all", "--yes")
    done = shell.run("dead", "replay", "--cancel", "r1")
    assert (done.exit_code, shell.operations.jobs["r1"].state) == (0, JobState.CANCELLED)
    assert shell.run("dead", "replay", "--watch", "r1").exit_code == 1
    assert shell.run("dead", "replay", "--watch", "r9").exit_code == 1


def test_a_replay_without_counts_yet_has_not_failed(shell: Shell) -> None:
    shell.operations.pace = 0
    shell.operations.has_counted = False
    for what in (["--all", "--yes"], ["--cancel", "r1"]):
        assert shell.run("dead", "replay", *what).exit_code == 0


def test_a_dry_run_says_which_letters_it_would_skip_and_why(shell: Shell) -> None:
    shell.operations.skips = {"receiver": 3, "replayed": 1}
    done = shell.run("dead", "replay", "--all", "--dry-run")
    assert done.exit_code == 0
    told = "5 dead letters match, 4 of them would be skipped "
    assert done.stdout.startswith(told + "(3 without a receiver, 1 replayed already); ")


def test_a_replay_that_would_skip_all_letters_does_not_start(shell: Shell) -> None:
    shell.operations.skips = {"receiver": 5}
    done = shell.run("dead", "replay", "--all")
    assert (done.exit_code, shell.operations.jobs) == (1, {})
    assert done.stdout == ""
    told = "5 dead letters match. Nothing was replayed: their receiver joe/1 is gone"
    assert f"{told}; name another with --to\n" in done.stderr
    shell.operations.skips = {"receiver": 2, "generation": 3}
    told = "Nothing was replayed: 2 without a receiver, 3 replayed too often; name another with "
    advice = "--to; allow more replays with --max-replays\n"
    assert told + advice in shell.run("dead", "replay", "--all").stderr
    shell.operations.skips = {"receiver": 1}
    told = "1 dead letter matches. Nothing was replayed: its receiver joe/9 is gone; "
    assert told in shell.run("dead", "replay", LETTER, "--to", "joe/9", "--yes").stderr


def test_a_replay_of_letters_that_do_not_exist_says_so(shell: Shell) -> None:
    lists = "list them with holdfast dead list\n"
    unknown = "9" * 19
    for words, told in [
        ((unknown,), f"there is no dead letter {unknown}: {lists}"),
        ((unknown, "8" * 19), f"there is no dead letter with any of these ids: {lists}"),
        (("--channel", "/none"), f"no dead letters match: {lists}"),
    ]:
        for how in ("--yes", "--dry-run"):
            done = shell.run("dead", "replay", *words, how)
            assert (done.exit_code, done.stdout) == (1, "")
            assert told in done.stderr


def test_a_dry_run_for_one_letter_is_in_the_singular(shell: Shell) -> None:
    done = shell.run("dead", "replay", LETTER, "--dry-run")
    assert done.stdout.startswith("1 dead letter matches; ")
    shell.operations.skips = {"replayed": 1}
    done = shell.run("dead", "replay", LETTER, "--dry-run")
    assert done.stdout.startswith("1 dead letter matches, and would be skipped (1 replayed ")


def test_a_replay_cannot_be_watched_and_cancelled_at_once(shell: Shell) -> None:
    done = shell.run("dead", "replay", "--watch", "r1", "--cancel", "r2")
    assert done.exit_code == 2
    assert "either --watch or --cancel" in done.stderr


@pytest.mark.slow
def test_interrupting_the_wait_cancels_the_replay(shell: Shell) -> None:
    shell.operations.pace = 0
    environment = {**os.environ, "HOLDFAST_URL": shell.url, "HOLDFAST_DATA": str(shell.home)}
    command = [sys.executable, "-m", "holdfast", "dead", "replay", "--all", "--yes", "--wait"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE) as process:
        while not shell.operations.looks:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert b"Replay r1 is cancelled" in process.communicate(timeout=60)[1]
    assert process.returncode != 0
    assert shell.operations.jobs["r1"].state is JobState.CANCELLED


def test_replays_are_listed(shell: Shell) -> None:
    shell.operations.pace = 0
    shell.run("dead", "replay", "--all", "--yes")
    head, row = (line.split("\t") for line in shell.run("dead", "replays").stdout.splitlines())
    found = dict(zip(head, row, strict=True))
    assert (found["ID"], found["STATE"], found["WHO"]) == ("r1", "running", "operator/ann")
    told = json.loads(shell.run("dead", "replays", "--json").stdout)
    assert (told["id"], told["total"]) == ("r1", 5)
    letter = json.loads(shell.run("dead", "list", "--json").stdout.splitlines()[0])
    shell.run("dead", "replay", letter["id"], "--yes")
    for sort, ids in (("total", ["r2", "r1"]), ("-total", ["r1", "r2"])):
        told = shell.run("dead", "replays", "--sort", sort, "--json").stdout.splitlines()
        assert [json.loads(each)["id"] for each in told] == ids


def test_a_replay_that_stopped_is_a_failure(shell: Shell) -> None:
    shell.run("dead", "replay", "--all", "--yes")
    job = shell.operations.jobs["r1"]
    reason = "2 of 10 died again"
    shell.operations.jobs["r1"] = replace(job, state=JobState.STOPPED, over=True, reason=reason)
    done = shell.run("dead", "replay", "--watch", "r1")
    assert done.exit_code == 1
    assert reason in done.stderr


def test_an_export_goes_to_a_pipe_or_to_a_complete_file(shell: Shell) -> None:
    done = shell.run("dead", "export", "--fingerprint", "f2")
    assert [int(json.loads(line)["id"]) for line in done.stdout.splitlines()] == [5, 4]
    path = shell.home / "letters.ndjson"
    done = shell.run("dead", "export", "--output", str(path))
    assert (done.exit_code, len(path.read_text().splitlines())) == (0, 5)
    shell.operations.breaks_after = 2
    path.unlink()
    done = shell.run("dead", "export", "-o", str(path))
    assert done.exit_code == 1
    assert "the response is incomplete" in done.stderr
    assert [*shell.home.glob("letters*")] == []
    done = shell.run("dead", "export", "-o", str(shell.home / "nowhere" / "x"))
    assert done.exit_code == 1
    assert "No such file" in done.stderr


def test_an_import_takes_files_and_pipes(shell: Shell) -> None:
    exported = shell.run("dead", "export").stdout
    shell.operations.by_id.clear()
    path = shell.home / "letters.ndjson"
    path.write_text(exported)
    done = shell.run("dead", "import", str(path))
    assert (done.exit_code, done.stdout) == (0, "5 imported, 0 already existed, 0 refused\n")
    done = shell.run("dead", "import", "-", input=exported + "nonsense\n")
    assert (done.exit_code, done.stdout) == (1, "0 imported, 5 already existed, 1 refused\n")
    assert "line 6" in done.stderr
    done = shell.run("dead", "import", "-", "--json", input="")
    assert json.loads(done.stdout)["imported"] == 0
    assert shell.run("dead", "import", "nowhere.ndjson").exit_code == 2


@pytest.mark.parametrize("text", ["last week", "2h ago", "-1h", "2026-13-01"])
def test_a_time_that_is_neither_a_span_nor_a_date_is_a_usage_error(shell: Shell, text: str) -> None:
    done = shell.run("dead", "list", "--since", text)
    assert done.exit_code == 2
    assert "is not a time" in done.stderr


def test_a_list_can_be_limited_by_time(shell: Shell) -> None:
    assert shell.run("dead", "list", "--since", "1s", "--json").stdout == ""
    assert (
        len(shell.run("dead", "list", "--since", "2020-01-01", "--json").stdout.splitlines()) == 5
    )
    assert shell.run("dead", "list", "--until", "2020-01-01T08:00", "--json").stdout == ""


def on_terminal(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
    """Print for people."""
    terminal = Console(force_terminal=True, **settings)
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setattr(output, "console", lambda: terminal)


def test_lists_are_tables_on_a_terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch, width=72, color_system=None)
    lines = shell.run("dead", "list").stdout.splitlines()
    assert "─" in lines[1]
    assert [line.split()[0] for line in lines[2:]] == [f"{n:019}" for n in range(5, 0, -1)]
    assert all(len(line) <= 72 and "\t" not in line for line in lines)
    assert re.search(r" \d+d ", lines[2])


@pytest.mark.parametrize("width", [80, 100, 200])
def test_a_table_shows_every_column_however_long_others_are(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    reason = "The receiver failed to process the message: disk full on /dev/sda1, " * 3
    shell.operations.by_id = {LETTER: a_letter(2, reason=reason, channel="/orders/of/the/day")}
    on_terminal(monkeypatch, width=width, color_system=None)
    head, _, line = shell.run("dead", "list").stdout.splitlines()
    assert head.split() == ["ID", "AGE", "CHANNEL", "RECEIVER", "STATE", "CODE", "REASON"]
    assert re.fullmatch(rf"{LETTER} +\d+d +/orde\S+ +joe/1 +new +user\.\S+ +The .*", line)
    assert len(line.rstrip()) <= width


def test_a_table_shows_the_receivers_text_without_the_meaning_of_the_code(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "The receiver failed to process the message: disk full"
    letter = a_letter(2, reason=reason, code="user.update.error")
    shell.operations.by_id = {LETTER: letter}
    assert shell.run("dead", "list").stdout.endswith(f"\t{reason}\n")
    on_terminal(monkeypatch, width=100, color_system=None)
    line = shell.run("dead", "list").stdout.splitlines()[-1]
    assert line.rstrip().endswith(" disk full")
    assert "The receiver failed" not in line


def test_a_terminal_too_narrow_for_a_table_gets_lines_with_tabs(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_terminal(monkeypatch, width=40, color_system=None)
    assert shell.run("dead", "list").stdout.startswith("ID\tSINCE\tCHANNEL")


def test_tables_show_the_state_by_colour(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch, width=200, color_system="standard")
    yellow, green = "\x1b[33mnew", "\x1b[32mALIVE"
    assert yellow in shell.run("dead", "list").stdout
    assert green in shell.run("session", "list").stdout
    assert green in shell.run("session", "show", "joe/1").stdout
    # A channel named like a state is not coloured.
    shell.operations.by_id = {LETTER: a_letter(2, channel="new")}
    assert yellow not in shell.run("dead", "show", LETTER).stdout.partition("state")[0]


def test_an_empty_list_on_a_terminal_says_none(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_terminal(monkeypatch, color_system=None)
    assert shell.run("session", "list", "--prefix", "zoe").stdout == "None.\n"


def test_an_export_that_fails_leaves_an_existing_file_unchanged(
    tmp_path: Path, shell: Shell
) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text("old")
    shell.operations.breaks_after = 1
    assert shell.run("dead", "export", "-o", str(path)).exit_code == 1
    assert path.read_text() == "old"
