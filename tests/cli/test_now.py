"""`holdfast now`: one answer, then the end."""

import json

from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.web.admin.alert_limits import Alert
from holdfast.web.admin.alerts import RaisedAlert
from holdfast.web.admin.now_tables import tables
from holdfast.web.admin.now_views import (
    CodeNow,
    FirstItems,
    ReceiverNow,
    WorkerNow,
)
from holdfast.web.admin.session_views import Hold
from tests.cli.conftest import Shell
from tests.web.fake_operations import NOW_MS, a_lost_shard, a_shard, nothing_waits

SENTENCE = "shop/1 has been held back since 10:02 CET and 1,204 messages wait for it"


def stuck() -> FirstItems[ReceiverNow]:
    held = ReceiverNow(
        receiver="shop/1",
        state=DispatcherState.ALIVE,
        since=None,
        hold=Hold("the till is shut", "operator/ann", NOW_MS, None),
        waiting=1204,
        in_flight=0,
        bytes=9000,
        oldest=NOW_MS - 60_000,
        oldest_id="holdfast-7",
    )
    return FirstItems([held], 3)


def test_a_quiet_server_has_one_sentence(shell: Shell) -> None:
    done = shell.run("now")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == "nothing waits"
    assert "Receivers" not in done.stdout


def test_what_is_stuck_is_named_first_and_listed_with_how_many_more(shell: Shell) -> None:
    shell.operations.standing = nothing_waits(
        sentence=SENTENCE,
        waiting=1204,
        held_back=stuck(),
        letters=FirstItems([CodeNow("x", 3), CodeNow(None, 2)], 0),
    )
    done = shell.run("now")
    assert done.exit_code == 0
    assert done.stdout.startswith(SENTENCE)
    assert "the till is shut (operator/ann, " in done.stdout
    assert "holdfast-7" in done.stdout
    assert "\nand 3 more\n" in done.stdout
    assert done.stdout.endswith("CODE\tLETTERS\nx\t3\n\t2\n")


def test_each_list_that_has_a_field_is_sorted_by_it(shell: Shell) -> None:
    workers = [WorkerNow("/jobs", f"ann/{n}", n, 2, NOW_MS, NOW_MS) for n in (2, 10, 1)]
    codes = [CodeNow("x", 3), CodeNow(None, 2)]
    shell.operations.standing = nothing_waits(
        workers=FirstItems(workers, 0), letters=FirstItems(codes, 0)
    )
    for sort, waiting in (("waiting", [1, 2, 10]), ("-waiting", [10, 2, 1])):
        told = json.loads(shell.run("now", "--sort", sort, "--json").stdout)
        assert [each["waiting"] for each in told["workers"]["items"]] == waiting
        assert [each["code"] for each in told["letters"]["items"]] == ["x", None]
    assert "CODE\tLETTERS\n\t2\nx\t3\n" in shell.run("now", "--sort", "letters").stdout
    refused = shell.run("now", "--sort", "colour")
    assert (refused.exit_code, "choose one of alert" in refused.stderr) == (2, True)


def test_raised_alerts_are_listed_with_what_to_do(shell: Shell) -> None:
    alert = RaisedAlert(Alert.AUDIT, NOW_MS, "the audit found 3 violations", "run it again")
    shell.operations.standing = nothing_waits(alerts=FirstItems([alert], 0))
    told = shell.run("now").stdout
    assert "\nAlerts\n" in told
    assert "the audit found 3 violations" in told
    assert "run it again" in told
    [shown] = json.loads(shell.run("now", "--json").stdout)["alerts"]["items"]
    assert (shown["alert"], shown["since"]) == ("audit", NOW_MS)


def test_workers_are_listed_with_their_queue(shell: Shell) -> None:
    worker = WorkerNow("/jobs", "ann/1", 1, 2, NOW_MS, NOW_MS)
    shell.operations.standing = nothing_waits(workers=FirstItems([worker], 0))
    told = shell.run("now").stdout
    assert (
        "\nWorkers\nCHANNEL\tRECEIVER\tWAITING\tOLDEST\tIN WORK\tSINCE\n/jobs\tann/1\t1\t" in told
    )


def test_each_of_several_workers_has_a_row(shell: Shell) -> None:
    shell.operations.standing = nothing_waits(shards=FirstItems([a_shard(0), a_lost_shard(1)], 0))
    lines = shell.run("now").stdout.splitlines()
    begin = lines.index("Shards")
    assert lines[begin + 1].startswith(
        "SHARD\tSTATE\tSINCE\tRESTARTS\tLAST END\tPID\tSESSIONS\tSTORE\t"
    )
    assert lines[begin + 2].startswith("0\tserving\t")
    assert lines[begin + 3].startswith("1\taway\t")


def test_the_lists_are_printed_as_the_server_defines_them(shell: Shell) -> None:
    shell.operations.standing = nothing_waits(held_back=stuck())
    lines = shell.run("now").stdout.splitlines()
    [table] = [each for each in tables() if each.name == "held_back"]
    heads = [column.name.upper().replace("_", " ") for column in table.columns]
    assert lines[lines.index(table.title) + 1].split("\t") == heads


def test_every_column_is_explained(shell: Shell) -> None:
    told = [
        json.loads(line) for line in shell.run("now", "--columns", "--json").stdout.splitlines()
    ]
    assert {(each["list"], each["column"]) for each in told} == {
        (table.name, column.name) for table in tables(has_hosts=False) for column in table.columns
    }
    assert "The queue: of a session (joe/1)" in shell.run("now", "--columns").stdout


def test_json_has_the_whole_view(shell: Shell) -> None:
    shell.operations.standing = nothing_waits(sentence=SENTENCE, held_back=stuck())
    told = json.loads(shell.run("now", "--json").stdout)
    assert told["sentence"] == SENTENCE
    assert told["held_back"]["more"] == 3
    assert told["held_back"]["items"][0]["receiver"] == "shop/1"
    assert told["figures"]["node"] == "holdfast"


def test_a_wrong_limit_is_a_wrong_use(shell: Shell) -> None:
    assert shell.run("now", "--limit", "101").exit_code == 2


def test_a_server_that_is_away_is_told_by_the_exit_code(shell: Shell) -> None:
    done = shell.run("now", "--url", "http://127.0.0.1:1")
    assert (done.exit_code, done.stdout) == (3, "")
