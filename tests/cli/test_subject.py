"""`holdfast subject` against an administration."""

import json

from tests.cli.conftest import Shell


def test_subjects_with_waiting_messages_are_listed(shell: Shell) -> None:
    rows = [line.split("\t") for line in shell.run("subject", "list").stdout.splitlines()]
    assert rows[0] == ["SUBJECT", "WAITING", "BYTES", "OLDEST"]
    assert rows[1][:3] == ["joe", "2", "300"]
    done = shell.run("subject", "list", "--json")
    assert [json.loads(line)["subject"] for line in done.stdout.splitlines()] == ["joe"]


def test_the_first_waiting_messages_of_a_subject_are_shown(shell: Shell) -> None:
    done = shell.run("subject", "show", "client/joe", "--limit", "1")
    assert '{"n":1}' in done.stdout
    assert '{"n":2}' not in done.stdout
    told = json.loads(shell.run("subject", "show", "joe", "--json").stdout)
    assert [entry["data"] for entry in told] == [{"n": 1}, {"n": 2}]
    assert json.loads(shell.run("subject", "show", "ann", "--json").stdout) == []


def test_clearing_a_subject_queue_discards_its_messages(shell: Shell) -> None:
    assert shell.run("subject", "clear", "joe", "--yes").exit_code == 0
    assert [each.action for each in shell.operations.changes] == ["subject.clear"]
    assert shell.run("subject", "list", "--json").stdout == ""
    assert shell.run("subject", "clear", "joe", "--yes").stdout == "0 messages were discarded\n"
