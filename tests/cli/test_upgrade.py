"""`holdfast upgrade` against an administration."""

import json

from holdfast.store.format.layouts import LAYOUT, OLDEST_LAYOUT
from tests.cli.conftest import Shell


def test_it_says_which_releases_read_the_store_and_what_finishing_changes(shell: Shell) -> None:
    said = shell.run("upgrade").stdout
    assert said.startswith(f"the store has layout {OLDEST_LAYOUT}, which releases 0.3 read, too.\n")
    assert said.endswith("\n  - requests are apart\n")
    assert shell.operations.changes == []


def test_it_is_finished_once_and_only_when_somebody_says_so(shell: Shell) -> None:
    refused = shell.run("upgrade", "--finish")
    assert (refused.exit_code, "use --yes" in refused.stderr) == (2, True)
    assert shell.operations.changes == []
    for _ in range(2):
        done = shell.run("upgrade", "--finish", "--yes")
        assert done.stdout == (
            f"the store has the newest layout, {LAYOUT}: nothing is left to finish\n"
        )
        (change,) = shell.operations.changes
        assert (change.action, change.target) == ("upgrade.finish", "store")


def test_it_answers_in_json(shell: Shell) -> None:
    told = json.loads(shell.run("upgrade", "--json").stdout)
    assert (told["finished"], told["layout"], told["newest"]) == (False, OLDEST_LAYOUT, LAYOUT)
    told = json.loads(shell.run("upgrade", "--finish", "--yes", "--json").stdout)
    assert told["finished"] is True


def test_without_a_server_it_fails(shell: Shell) -> None:
    assert shell.run("upgrade", "--url", "http://127.0.0.1:1").exit_code == 3
