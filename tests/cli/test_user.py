"""`holdfast user` changes the file of passwords."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.user import program
from holdfast.login.passwords import read_users, verify


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "passwords"


def run(file: Path, *words: str, says: str = "") -> Result:
    return CliRunner().invoke(program, [*words, "--file", str(file)], input=says)


def test_a_user_is_added_changed_listed_and_removed(file: Path) -> None:
    assert run(file, "add", "ada", "--group", "staff", says="correct horse\n").exit_code == 0
    assert verify(read_users(file.read_bytes()), "ada", "correct horse").groups == ("staff",)

    assert run(file, "passwd", "ada", says="battery staple\n").exit_code == 0
    assert verify(read_users(file.read_bytes()), "ada", "battery staple").groups == ("staff",)

    listed = run(file, "list", "--json")
    assert json.loads(listed.output) == [{"user": "ada", "groups": ["staff"]}]
    assert "$argon2" not in run(file, "list").output

    removed = run(file, "remove", "ada")
    assert removed.exit_code == 0
    assert "[revoked]" in removed.stdout
    assert json.loads(run(file, "list", "--json").output) == []


def test_an_error_is_reported_and_changes_nothing(file: Path) -> None:
    run(file, "add", "ada", says="correct horse\n")
    before = file.read_bytes()

    assert run(file, "add", "ada", says="battery staple\n").exit_code == 2
    assert run(file, "add", "a b", says="battery staple\n").exit_code == 2
    assert run(file, "add", "bob", says="short\n").exit_code == 2
    assert run(file, "add", "bob", "--group", "no group", says="battery staple\n").exit_code == 2
    assert run(file, "passwd", "bob", says="battery staple\n").exit_code == 1
    assert run(file, "remove", "bob").exit_code == 1
    assert file.read_bytes() == before
