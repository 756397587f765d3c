"""`holdfast rights` says who may do what, and why."""

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.cli.rights import program

PAGE = Path(__file__).parents[2] / "docs/how-to/login.md"
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
    '[{"may": ["subscribe", "create"], "channels": ["/own/**"]},'
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


def test_without_a_file_that_of_the_settings_decides(
    rights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(program, ["check"])
    assert result.exit_code == 2
    assert "name the file with --file" in result.output
    (tmp_path / "passwords").write_text("")
    Path("holdfast.toml").write_text(f'login_passwords = "passwords"\nrights = "{rights}"\n')
    result = CliRunner().invoke(program, ["check"])
    assert (result.exit_code, result.output.strip()) == (0, f"{rights} is valid: 2 rules")
    assert explained("joe", "publish", "/elsewhere")[0] == 1


def test_an_error_in_a_file_is_reported_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "rights.toml").write_text(FILE.replace('"publish"]', '"fly"]', 1))
    result = CliRunner().invoke(program, ["check", "--file", str(tmp_path / "rights.toml")])

    assert result.exit_code == 2
    assert "rule.1: 'fly' is not a right" in result.output


def test_the_rule_that_decides_is_named(rights: str) -> None:
    at = ("--file", rights)

    code, said = explained("ada", "publish", "/rooms/news", *at)
    assert (code, said.splitlines()) == (
        1,
        [
            "allowed: rule 1, * may publish subscribe /rooms/**",
            "where nobody has subscribed, it also needs create: denied: no rule allows it",
        ],
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

    allowed = "allowed: claim 1, ada may create subscribe /own/**"
    code, said = explained("ada", "subscribe", "/own/x", *at)
    assert (code, said.splitlines()) == (
        0,
        [allowed, f"where nobody has subscribed, it also needs create: {allowed}"],
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

    claimed = {"allowed": True, "source": "claim", "rule": 1}
    asked = [{"right": "subscribe", **claimed}, {"right": "create", **claimed}]
    assert (code, json.loads(said)) == (0, {**claimed, "asked": asked})
    code, said = explained("ada", "publish", "/rooms/2", "--file", rights, "--json")
    assert (code, json.loads(said)) == (
        1,
        {
            "allowed": False,
            "source": None,
            "rule": None,
            "asked": [
                {"right": "publish", "allowed": True, "source": "file", "rule": 1},
                {"right": "create", "allowed": False, "source": None, "rule": None},
            ],
        },
    )


@pytest.mark.parametrize("claim", ["", "{}", "[5]", '[{"may": ["fly"], "channels": ["/a"]}]'])
def test_an_unusable_claim_is_a_usage_error(claim: str) -> None:
    assert explained("ada", "subscribe", "/a", "--claim", claim)[0] == 2


def test_the_rights_are_named_that_an_operation_needs_besides_its_own(rights: str) -> None:
    at = ("--file", rights)

    assert explained("ada", "request", "/rooms/news", "--group", "guests", *at) == (
        1,
        "denied: it needs publish: rule 2, @guests may not publish /rooms/news",
    )
    assert explained("ada", "history", "/rooms/1", *at) == (1, "denied: no rule allows it")
    denied = "denied: it needs subscribe: no rule allows it"
    assert explained("ada", "history", "/halls/1", *at) == (1, denied)


def test_the_systems_own_channels_need_a_role(tmp_path: Path) -> None:
    (tmp_path / "rights.toml").write_text(FILE + "[administration]\nreaders = ['ann']\n")
    at = ("--file", str(tmp_path / "rights.toml"))

    role = "only operators and readers may do this"
    assert explained("ann", "subscribe", "/sys/deadMessage", *at) == (0, f"allowed: {role}")
    assert explained("ada", "subscribe", "/sys/deadMessage", *at) == (1, f"denied: {role}")
    presence = "/sys/presence/rooms/1"
    assert explained("ann", "subscribe", presence, *at) == (
        0,
        f"allowed: it needs presence: {role}",
    )
    denied = "denied: it needs presence: no rule allows it"
    assert explained("ada", "subscribe", presence, *at) == (1, denied)


@pytest.mark.parametrize(
    ("operation", "channel"),
    [
        ("publish", "/sys/x"),
        ("publish", "/meta/x"),
        ("subscribe", "/service/x"),
        ("erase", "/service/x"),
        ("publish", "no channel"),
    ],
)
def test_what_no_right_allows_is_a_usage_error(operation: str, channel: str, rights: str) -> None:
    assert explained("ada", operation, channel, "--file", rights)[0] == 2


def test_the_examples_of_the_documentation_say_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = PAGE.read_text()
    file = page.split("## Rights")[1].split("```toml\n")[1].split("```")[0]
    (tmp_path / "rights.toml").write_text(file)
    monkeypatch.chdir(tmp_path)
    examples = page.split(".venv/bin/holdfast rights ")[1:]
    for example in examples:
        words, said = example.split("```")[0].replace("\\\n", "").split("\n", 1)
        result = CliRunner().invoke(program, shlex.split(words))
        assert result.output == said.replace("# ", "")
    assert len(examples) == 3
