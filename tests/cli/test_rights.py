"""`holdfast rights` says who may do what, and why."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.cli.rights import program

FILE = """
[[rule]]
who = ["*"]
may = ["subscribe", "publish"]
channels = ["/rooms/**"]

[[rule]]
who = ["@guests"]
may_not = ["publish"]
channels = ["/rooms/news"]

[revoked]
subjects = ["eve"]
"""
CLAIM = (
    '[{"may": ["subscribe"], "channels": ["/own/**"]},'
    ' {"may_not": ["all"], "channels": ["/rooms/1"]}]'
)


@pytest.fixture
def rights(tmp_path: Path) -> str:
    (tmp_path / "rights.toml").write_text(FILE)
    return str(tmp_path / "rights.toml")


def explained(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(program, ["explain", *words])
    return result.exit_code, result.output.strip()


def test_a_file_is_checked(rights: str) -> None:
    result = CliRunner().invoke(program, ["check", "--file", rights])

    assert (result.exit_code, result.output.strip()) == (0, f"{rights} is valid: 2 rules")
    Path(rights).write_text("[[rule]]" + FILE.split("[[rule]]")[1])
    result = CliRunner().invoke(program, ["check", "--file", rights])
    assert result.output.strip() == f"{rights} is valid: 1 rule"


def test_an_error_in_a_file_is_reported_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "rights.toml").write_text(FILE.replace('"publish"]', '"fly"]', 1))
    result = CliRunner().invoke(program, ["check", "--file", str(tmp_path / "rights.toml")])

    assert result.exit_code == 2
    assert "rule.1: 'fly' is not a right" in result.output


def test_the_rule_that_decides_is_named(rights: str) -> None:
    at = ("--file", rights)

    assert explained("ada", "publish", "/rooms/news", *at) == (
        0,
        "allowed: rule 1, * may publish subscribe /rooms/**",
    )
    assert explained("ada", "publish", "/rooms/news", "--group", "guests", *at) == (
        1,
        "denied: rule 2, @guests may not publish /rooms/news",
    )
    assert explained("ada", "create", "/rooms/x", *at) == (1, "denied: no rule allows it")
    assert explained("eve", "publish", "/rooms/x", *at) == (1, "denied: the subject is revoked")
    assert explained("ada", "publish", "/service/login", *at)[1].startswith(
        "allowed: the built-in rule, "
    )


def test_a_claim_that_decides_is_named(rights: str) -> None:
    at = ("--file", rights, "--claim", CLAIM)

    assert explained("ada", "subscribe", "/own/x", *at) == (
        0,
        "allowed: claim 1, ada may subscribe /own/**",
    )
    code, said = explained("ada", "subscribe", "/rooms/*", *at)
    assert (code, said[:15]) == (1, "denied: claim 2")
    assert explained("ada", "publish", "/rooms/2", *at)[1].startswith("allowed: rule 1")


def test_the_claim_alone_decides_if_there_is_no_file_of_rights() -> None:
    assert explained("ada", "publish", "/anything")[0] == 0
    assert explained("ada", "publish", "/anything", "--claim", CLAIM)[0] == 1
    assert explained("ada", "subscribe", "/own/x", "--claim", CLAIM)[0] == 0


def test_programs_read_the_decision_as_json(rights: str) -> None:
    code, said = explained(
        "ada", "subscribe", "/own/x", "--file", rights, "--claim", CLAIM, "--json"
    )

    assert (code, json.loads(said)) == (0, {"allowed": True, "source": "claim", "rule": 1})


@pytest.mark.parametrize("claim", ["", "{}", "[5]", '[{"may": ["fly"], "channels": ["/a"]}]'])
def test_an_unusable_claim_is_a_usage_error(claim: str) -> None:
    assert explained("ada", "subscribe", "/a", "--claim", claim)[0] == 2
