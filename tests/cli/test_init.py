"""`holdfast init` writes files with which a server starts, and overwrites none."""

import base64
import json
import re
import shlex
import socket
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from typer.testing import CliRunner, Result

from holdfast.cli import first_files, init
from holdfast.cli.first_files import settings_text
from holdfast.cli.main import program
from holdfast.login.passwords import read_users, verify
from holdfast.login.rights_file import read_rights
from holdfast.settings import OFTEN_SET, Settings
from tests.serving import ROOT
from tests.web import programs


def run(home: Path, *words: str, says: str = "", **variables: str) -> Result:
    known = {"HOLDFAST_PASSWORD": "", **variables}
    return CliRunner().invoke(program, ["init", str(home), *words], input=says, env=known)


def made(home: Path, *words: str, **variables: str) -> dict[str, Any]:
    result = run(home, *words, "--yes", "--json", **variables)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def settings_in(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / "holdfast.toml").read_text())


def test_without_options_it_writes_settings_for_this_machine(tmp_path: Path) -> None:
    told = made(tmp_path)
    assert told == {
        "written": [str(tmp_path / "holdfast.toml")],
        "next": [f"holdfast serve --config {tmp_path}/holdfast.toml"],
    }
    assert settings_in(tmp_path) == {
        "host": "127.0.0.1", "port": 8080, "data": str(tmp_path / "data"),
    }  # fmt: skip


def test_the_settings_have_each_one_that_people_set_with_what_it_means(tmp_path: Path) -> None:
    text = settings_text({"port": 9000})
    assert re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE) == [*OFTEN_SET]
    assert "\n# Port to listen on; 0 picks a free one.\nport = 9000\n" in text
    # Whoever removes a # has a line that the server understands.
    given = tomllib.loads(re.sub(r"^# (?=\w+ = )", "", text, flags=re.MULTILINE))
    assert [*given] == [*OFTEN_SET]
    Settings(**given)


def test_who_is_reachable_by_others_gets_a_login_and_its_rights(tmp_path: Path) -> None:
    told = made(tmp_path, "--host", "0.0.0.0", "--host-name", "push.example.org", "--user", "ada")
    given = settings_in(tmp_path)
    assert given["host_name"] == ["push.example.org"]
    assert given["admin"] == "127.0.0.1:8081"
    assert "open" not in given
    users = tmp_path / "users"
    assert stat.S_IMODE(users.stat().st_mode) == 0o600
    assert verify(read_users(users.read_bytes()), "ada", told["password"]).subject == "ada"
    assert '"ada"' in (tmp_path / "rights.toml").read_text()
    read_rights((tmp_path / "rights.toml").read_bytes())


def test_a_password_from_the_environment_is_not_shown(tmp_path: Path) -> None:
    told = made(tmp_path, "--login", HOLDFAST_PASSWORD="correct horse")
    assert "password" not in told
    assert (
        verify(read_users((tmp_path / "users").read_bytes()), "admin", "correct horse").subject
        == "admin"
    )


def test_a_server_without_a_login_that_others_reach_is_open_knowingly(tmp_path: Path) -> None:
    made(tmp_path, "--host", "0.0.0.0", "--no-login")
    assert settings_in(tmp_path)["open"] is True


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["--user", "a b", "--login"], "use letters, digits and . @ + ~ -"),
        (["--run-by", "docker"], "none of terminal, systemd, compose"),
        (["--host-name", "https://a.example"], "host_name"),
    ],
)
def test_a_mistake_writes_nothing_and_gets_a_sentence(
    words: list[str], advice: str, tmp_path: Path
) -> None:
    result = run(tmp_path / "new", *words, "--yes")
    assert result.exit_code == 2
    assert advice in result.output
    assert not (tmp_path / "new").exists()


def test_a_file_is_overwritten_only_with_force(tmp_path: Path) -> None:
    (tmp_path / "rights.toml").write_text("mine")
    refused = run(tmp_path, "--login", "--yes")
    assert refused.exit_code == 2
    assert f"rights.toml exists in {tmp_path}" in refused.output
    assert "--force" in refused.output
    assert [*tmp_path.iterdir()] == [tmp_path / "rights.toml"]

    made(tmp_path, "--login", "--force")
    assert (tmp_path / "rights.toml").read_text() != "mine"


def test_where_nobody_can_be_asked_it_says_what_to_do(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 2
    assert "--yes" in result.output
    assert [*tmp_path.iterdir()] == []


def test_it_asks_what_no_option_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "_is_somebody_there", lambda: True)
    monkeypatch.setattr(first_files, "_HOMES", ())
    answers = ["0.0.0.0", "9000", "push.example.org", "y", "ada", "systemd"]
    password = ["correct horse", "correct horse"]
    result = run(tmp_path, says="\n".join([*answers, *password, ""]))
    assert result.exit_code == 0, result.output
    assert settings_in(tmp_path)["port"] == 9000
    assert (
        verify(read_users((tmp_path / "users").read_bytes()), "ada", "correct horse").subject
        == "ada"
    )
    assert (tmp_path / "holdfast.service").exists()
    assert "correct horse" not in result.output


def test_what_it_writes_serves_and_the_first_login_is_an_operator(tmp_path: Path) -> None:
    port = free_port()
    told = made(tmp_path, "--login", "--user", "ada", "--port", str(port))
    [line] = told["next"]
    words = shlex.split(line)
    assert words[:2] == ["holdfast", "serve"]
    with programs.program(*words[2:], home=tmp_path) as running:
        assert running.place() == f"http://127.0.0.1:{port}/cometd"
        url = f"http://127.0.0.1:{port}/admin/api/v1/about"
        assert asked(url, f"ada:{told['password']}")["role"] == "operator"
        with pytest.raises(HTTPError, match="401"):
            asked(url, "ada:guessed")


def test_a_unit_is_refused_whose_user_could_not_enter_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "root"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(first_files, "_HOMES", (closed,))
    monkeypatch.setattr("os.getuid", lambda: 0)
    result = run(closed / "push", "--run-by", "systemd", "--yes")
    assert result.exit_code == 2
    told = " ".join(result.output.split())
    assert f"{closed}/push is in " in told
    assert "the server runs as the user holdfast: install Holdfast" in told
    assert not (closed / "push").exists()


def test_the_service_sees_an_environment_whose_python_is_in_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_files, "_HOMES", (Path("/nowhere"),))
    made(tmp_path / "a", "--run-by", "systemd")
    assert "\nProtectHome=yes\n" in (tmp_path / "a/holdfast.service").read_text()
    (tmp_path / "bin").mkdir(mode=0o755)
    (tmp_path / "bin/python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    monkeypatch.setattr(first_files, "_HOMES", (Path(sys.executable).resolve().parent,))
    monkeypatch.setattr(first_files, "_user", lambda: "ada")
    made(tmp_path / "b", "--run-by", "systemd")
    assert "\nProtectHome=read-only\n" in (tmp_path / "b/holdfast.service").read_text()


def test_the_unit_starts_the_server_of_this_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root's own Python is of no use to the unit's user.
    monkeypatch.setattr(first_files, "_HOMES", ())
    port = free_port()
    told = made(tmp_path, "--run-by", "systemd", "--port", str(port))
    unit = (tmp_path / "holdfast.service").read_text()
    assert told["next"][-1] == f"systemctl enable --now {tmp_path}/holdfast.service"
    assert f"\nReadWritePaths={tmp_path}/data\n" in unit
    assert "/opt/" not in unit.replace("/opt/holdfast may be", "")
    assert "/var/lib/" not in unit
    assert "\nUser=root\n" not in unit
    [start] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    words = start.split()
    assert words[1:5] == ["-P", "-m", "holdfast", "serve"]
    with programs.program(*words[5:], home=tmp_path) as running:
        assert running.place() == f"http://127.0.0.1:{port}/cometd"


def test_the_compose_file_runs_the_image_with_these_settings(tmp_path: Path) -> None:
    told = made(tmp_path, "--run-by", "compose", "--login")
    service = yaml.safe_load((tmp_path / "docker-compose.yml").read_text())["services"]["holdfast"]
    assert told["next"][-1] == f"docker compose --project-directory {tmp_path} up"
    assert service["command"] == ["holdfast", "serve", "--config", "/etc/holdfast/holdfast.toml"]
    assert service["ports"] == ["127.0.0.1:8080:8080", "127.0.0.1:8081:8081"]
    given = settings_in(tmp_path)
    assert (given["host"], given["admin"]) == ("0.0.0.0", "0.0.0.0:8081")
    assert given["login_passwords"] == "/etc/holdfast/users"
    owner = (tmp_path / "users").stat().st_uid
    assert service["user"].split(":")[0] == str(owner)
    assert owner != 0


def test_the_deployed_unit_is_the_one_that_init_adapts() -> None:
    packaged = ROOT / "app/cli/holdfast.service"
    assert (ROOT / "deploy/holdfast.service").resolve() == packaged


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def asked(url: str, login: str) -> Any:
    head = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()}
    with urlopen(Request(url, headers=head)) as answer:
        return json.load(answer)
