"""`holdfast work` against an administration."""

import json

from tests.cli.conftest import Shell


def test_work_queues_are_listed_with_the_number_of_their_receivers(shell: Shell) -> None:
    rows = [line.split("\t") for line in shell.run("work", "list").stdout.splitlines()]
    assert rows[0] == ["CHANNEL", "WAITING", "BYTES", "OLDEST", "RECEIVERS"]
    assert (rows[1][:3], rows[1][4]) == (["/jobs", "2", "300"], "1")


def test_the_first_waiting_messages_of_a_work_queue_are_shown(shell: Shell) -> None:
    told = json.loads(shell.run("work", "show", "/jobs", "--limit", "1", "--json").stdout)
    assert [entry["data"] for entry in told] == [{"n": 1}]


def test_receivers_are_listed_with_their_waiting_messages_and_those_in_flight(shell: Shell) -> None:
    rows = [
        line.split("\t") for line in shell.run("work", "receivers", "/jobs").stdout.splitlines()
    ]
    assert rows[0] == ["KEY", "STATE", "ACTIVE", "HAS CONNECTION", "WAITING", "IN FLIGHT"]
    assert rows[1][0] == "joe/1"


def test_the_items_of_a_list_without_pages_are_sorted(shell: Shell) -> None:
    for sort, numbers in (("id", [1, 2]), ("-id", [2, 1])):
        told = json.loads(shell.run("work", "show", "/jobs", "--sort", sort, "--json").stdout)
        assert [entry["data"]["n"] for entry in told] == numbers
    refused = shell.run("work", "show", "/jobs", "--sort", "colour")
    assert (refused.exit_code, "choose one of id" in refused.stderr) == (2, True)


def test_clearing_a_work_queue_needs_a_confirmation(shell: Shell) -> None:
    assert shell.run("work", "clear", "/jobs").exit_code == 2
    assert shell.operations.changes == []
    assert shell.run("work", "clear", "/jobs", "--yes").stdout == "2 messages were discarded\n"
    assert [each.action for each in shell.operations.changes] == ["work.clear"]


def test_a_list_without_pages_says_when_it_is_cut_short(shell: Shell) -> None:
    cut = shell.run("work", "show", "/jobs", "--limit", "1")
    assert len(cut.stdout.splitlines()) == 2
    assert cut.stderr == "Showing 1; there are more: use --limit\n"
    assert shell.run("work", "show", "/jobs", "--limit", "2").stderr == ""
