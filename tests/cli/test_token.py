"""`holdfast token`: replaces the tokens of the administration."""

import json
import time
from pathlib import Path

from typer.testing import CliRunner, Result

from holdfast.cli.main import program
from holdfast.web.admin.tokens import Role, open_tokens


def rotate(data: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["token", "rotate", "--data", str(data), *words])


def test_a_token_is_replaced_and_not_shown(tmp_path: Path) -> None:
    before = open_tokens(tmp_path)
    done = rotate(tmp_path)
    after = open_tokens(tmp_path)
    assert (done.exit_code, after.operator != before.operator) == (0, True)
    assert (after.reader, after.former) == (before.reader, {})
    assert after.operator not in done.output
    assert "admin-token has a new token" in done.output


def test_the_readers_token_is_replaced_with_an_overlap(tmp_path: Path) -> None:
    before = open_tokens(tmp_path)
    done = rotate(tmp_path, "--role", "reader", "--overlap", "10m", "--json")
    after = open_tokens(tmp_path)
    assert after.operator == before.operator
    assert after.role(before.reader) is Role.READER
    assert 0 < after.former[Role.READER].until_s - time.time() <= 600
    told = json.loads(done.output)
    assert (told["role"], told["file"]) == ("reader", str(tmp_path / "reader-token"))


def test_what_cannot_be_replaced_is_said(tmp_path: Path) -> None:
    assert rotate(tmp_path).exit_code == 2
    assert rotate(tmp_path, "--role", "king").exit_code == 2
    open_tokens(tmp_path)
    assert rotate(tmp_path, "--overlap", "soon").exit_code == 2
