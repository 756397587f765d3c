"""`holdfast delayed` against an administration."""

import json

from tests.cli.conftest import Shell
from tests.web.fake_operations import NO_MESSAGE, NOW_MS

ID = f"holdfast-{NOW_MS * 1_000_000}"


def test_messages_that_wait_until_they_are_due_are_listed(shell: Shell) -> None:
    rows = [line.split("\t") for line in shell.run("delayed", "list").stdout.splitlines()]
    assert rows[0] == ["ID", "DUE", "CHANNEL", "SENDER", "BYTES", "DATA"]
    assert rows[1][0] == ID
    assert rows[1][2:] == ["/orders/7", "client/ann/1", "120", '{"n":1}']
    told = json.loads(shell.run("delayed", "list", "--json").stdout)
    assert told["due"] - told["accepted"] == 60_000


def test_a_message_is_cancelled_by_its_id_once(shell: Shell) -> None:
    assert shell.run("delayed", "cancel", ID).stdout == f"{ID} was cancelled\n"
    assert [(each.action, each.target) for each in shell.operations.changes] == [
        ("delayed.cancel", ID)
    ]
    assert shell.run("delayed", "cancel", ID).exit_code == 1


def test_a_message_that_does_not_wait_cannot_be_cancelled(shell: Shell) -> None:
    refused = shell.run("delayed", "cancel", NO_MESSAGE)
    assert refused.exit_code == 1
    assert "is not a message that waits until it is due" in refused.stderr
