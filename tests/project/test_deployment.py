"""The container files agree with the settings and with what is safe."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from holdfast.cli.main import program
from holdfast.compose.listening import MAIN
from holdfast.settings import OF_THE_COMMAND_LINE, Settings
from holdfast.web.admin.tokens import OPERATOR_FILE
from tests.container import (
    ROOT,
    command_of_the_image,
    flag,
    read_compose,
    read_dockerfile,
    read_final_stage,
    variables_of_the_image,
)
from tests.pages import blocks

PREFIX = "HOLDFAST_"
DEFAULTS = {name: field.default for name, field in Settings.model_fields.items()}


def images() -> Iterator[str]:
    stages = set()
    for keyword, text in read_dockerfile():
        if keyword == "FROM":
            image, *alias = text.split()
            stages.update(alias[1:])
            yield image
        elif keyword == "COPY" and text.startswith("--from="):
            source = text.split()[0].removeprefix("--from=")
            if source not in stages:
                yield source
    yield from (s["image"] for s in read_compose()["services"].values() if "image" in s)


def variables() -> Iterator[str]:
    for instruction in read_dockerfile():
        yield from re.findall(rf"\b{PREFIX}\w+", instruction.text)
    for service in read_compose()["services"].values():
        environment = service.get("environment", {})
        yield from (name for name in environment if name.startswith(PREFIX))


def commands() -> Iterator[list[str]]:
    yield command_of_the_image()
    command = read_compose()["services"]["holdfast"].get("command")
    if command:
        yield shlex.split(command) if isinstance(command, str) else command


@pytest.mark.parametrize("variable", sorted(set(variables())))
def test_each_variable_in_the_container_files_is_a_known_setting(variable: str) -> None:
    is_setting = variable.removeprefix(PREFIX).lower() in Settings.model_fields
    assert is_setting or variable in OF_THE_COMMAND_LINE


@pytest.mark.parametrize("command", list(commands()))
def test_each_flag_in_the_container_files_is_a_setting(command: list[str]) -> None:
    assert command[:2] == ["holdfast", "serve"]
    flags = [word for word in command if word.startswith("--")]
    assert flags
    for each in flags:
        name = each.removeprefix("--").removeprefix("no-").partition("=")[0]
        assert name.replace("-", "_") in Settings.model_fields


def test_the_settings_of_the_image_are_accepted() -> None:
    words = command_of_the_image()[2:]
    flags = [(a, b) for a, b in pairwise([*words, "--"]) if a.startswith("--")]
    given: dict[str, Any] = {
        name.removeprefix("--").replace("-", "_"): value.startswith("--") or value
        for name, value in flags
    }
    assert Settings(**given).host == "0.0.0.0"


@pytest.mark.parametrize("image", sorted(set(images())))
def test_each_image_has_its_version_pinned(image: str) -> None:
    assert re.search(r":\d+\.\d+\.\d+(-[a-z-]+)?$|@sha256:[0-9a-f]{64}$", image)


def test_the_image_has_the_python_that_the_lock_files_are_made_for() -> None:
    bases = {text.split()[0] for keyword, text in read_dockerfile() if keyword == "FROM"}
    # Another image only fetches the JavaScript of the pages from npm.
    pythons = {base for base in bases if not base.startswith("node:")}
    assert len(pythons) == 1
    assert pythons.pop().startswith("python:3.11.")


def test_the_image_installs_only_packages_with_hashes() -> None:
    for _, text in read_dockerfile():
        for install in re.findall(r"pip install [^&]*", text):
            assert "--require-hashes -r" in install or "--no-index" in install


def test_the_container_does_not_run_as_root() -> None:
    user = read_final_stage()["USER"].partition(":")[0]
    assert user.isdigit()
    assert int(user) > 0


def test_the_data_directory_belongs_to_the_user_and_outlives_the_container() -> None:
    stage = read_final_stage()
    assert stage["VOLUME"] == flag("data")
    assert f"--owner={stage['USER']} --mode=700 {flag('data')}" in stage["RUN"]
    assert f"holdfast:{flag('data')}" in read_compose()["services"]["holdfast"]["volumes"]


def test_each_port_is_the_same_inside_and_outside_and_is_published_only_on_loopback() -> None:
    port, admin = DEFAULTS["port"], int(flag("admin").rpartition(":")[2])
    assert admin != port
    assert flag("port") == str(port)
    # Loopback inside the container cannot be reached from outside, even through published ports.
    assert flag("host") == "0.0.0.0" == flag("admin").rpartition(":")[0]
    stage = read_final_stage()
    assert stage["EXPOSE"].split() == [str(port), str(admin)]
    assert f":{port}/readyz" in stage["HEALTHCHECK"]
    published = read_compose()["services"]["holdfast"]["ports"]
    assert published == [f"127.0.0.1:{each}:{each}" for each in (port, admin)]


def test_commands_in_the_container_find_the_administration_and_its_token() -> None:
    variables = variables_of_the_image()
    port = flag("admin").rpartition(":")[2]
    assert variables["HOLDFAST_URL"] == f"http://127.0.0.1:{port}"
    assert variables["HOLDFAST_CLIENT_URL"] == f"http://127.0.0.1:{flag('port')}"
    assert variables["HOLDFAST_TOKEN_FILE"] == f"{flag('data')}/{OPERATOR_FILE}"


def test_every_service_has_a_health_check() -> None:
    _, command = read_final_stage()["HEALTHCHECK"].split("CMD", maxsplit=1)
    name, option, code = json.loads(command)
    assert (name, option) == ("python", "-c")
    compile(code, "HEALTHCHECK", "exec")
    for name, service in read_compose()["services"].items():
        assert service.get("build") == "." or service["healthcheck"]["test"], name


def test_the_grace_period_of_the_container_is_longer_than_the_shutdown_timeout() -> None:
    grace = read_compose()["services"]["holdfast"]["stop_grace_period"]
    assert grace.endswith("s")
    assert float(grace[:-1]) * 1000 > DEFAULTS["shutdown_timeout"]


def test_the_store_keeps_its_records_on_a_volume() -> None:
    compose = read_compose()
    valkey = compose["services"]["valkey"]
    assert "--appendonly yes" in " ".join(valkey["command"])
    assert "valkey:/data" in valkey["volumes"]
    assert "valkey" in compose["volumes"]


def test_the_server_uses_the_store_of_the_compose_file_when_that_is_healthy() -> None:
    holdfast = read_compose()["services"]["holdfast"]
    assert holdfast["environment"]["HOLDFAST_REDIS"].startswith("redis://valkey:6379/")
    assert holdfast["depends_on"]["valkey"]["condition"] == "service_healthy"


def test_the_build_context_has_what_is_copied_and_no_private_files() -> None:
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    assert "*" in rules
    assert allowed >= {"LICENSE", "app", "extensions", "pyproject.toml", "requirements.lock"}
    assert allowed >= {path.name for path in ROOT.glob("hatch_*.py")}
    assert not allowed & {".git", ".venv", "data", "tests", "holdfast.toml"}


def test_the_unit_of_systemd_runs_commands_with_existing_flags() -> None:
    unit = (ROOT / "deploy/holdfast.service").read_text()
    program_line = r"^Exec\w+=/opt/holdfast/bin/(?:python -P -m )?holdfast (\w+) (.+)$"
    lines = re.findall(program_line, unit, re.MULTILINE)
    assert [command for command, _ in lines] == ["serve", "restart"]
    for command, words in lines:
        told = CliRunner().invoke(program, [command, "--help"]).stdout
        flags = [word for word in words.split() if word.startswith("--")]
        assert flags
        assert [each for each in flags if each not in told] == []
    assert "Type=notify" in unit


# Elsewhere it does not exist, because CI takes a skip for a fault of its machine.
if shutil.which("systemd-analyze") is not None:

    def test_the_service_may_do_little_besides_its_work() -> None:
        """What remains of 10 is its network, its sockets and its limit of open files."""
        words = ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager"]
        unit = str(ROOT / "deploy/holdfast.service")
        done = subprocess.run([*words, unit], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_socket_of_systemd_is_the_main_address_of_the_server() -> None:
    unit = (ROOT / "deploy/holdfast.socket").read_text()
    address = f"{DEFAULTS['host']}:{DEFAULTS['port']}"
    assert f"\nListenStream={address}\n" in unit
    assert f"\nFileDescriptorName={MAIN}.0\n" in unit


def read_cluster() -> dict[str, Any]:
    """The objects of the manifest by their kinds."""
    text = (ROOT / "deploy/pipeline.yaml").read_text()
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def test_the_kubernetes_job_runs_a_command_with_existing_flags() -> None:
    pod = read_cluster()["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (driver,) = pod["containers"]
    assert driver["command"] == ["holdfast", "pipeline", "ingest"]
    told = CliRunner().invoke(program, ["pipeline", "ingest", "--help"]).stdout
    for word in driver["args"]:
        assert word.partition("=")[0] in told
    known = {each["name"] for each in driver["env"]}
    assert {*re.findall(r"\$\((\w+)\)", " ".join(driver["args"]))} <= known


def test_the_kubernetes_objects_refer_to_each_other_and_have_no_privileges() -> None:
    cluster = read_cluster()
    pod = cluster["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    account, claim = (cluster[kind]["metadata"]["name"] for kind in _ACCOUNT_AND_CLAIM)
    assert pod["serviceAccountName"] == account == cluster["RoleBinding"]["subjects"][0]["name"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim
    assert f"claimName={claim}" in " ".join(pod["containers"][0]["args"])
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


_ACCOUNT_AND_CLAIM = ("ServiceAccount", "PersistentVolumeClaim")


PAIR = yaml.safe_load((ROOT / "deploy/two-machines/compose.yaml").read_text())["services"]


def test_servers_of_two_machines_are_told_what_exists() -> None:
    given = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in PAIR["holdfast"]["environment"].items()
    }
    for name, value in [("${NODE}", "one"), ("${MACHINE}", "one.example.org")]:
        given = {key: each.replace(name, value) for key, each in given.items()}
    given["host_name"] = json.loads(given["host_name"])
    flags = [word[2:] for word in PAIR["holdfast"]["command"] if word.startswith("--")]
    assert {each.replace("-", "_") for each in flags} <= Settings.model_fields.keys()
    settings = Settings(**given)
    assert settings.standby
    assert settings.durability == "replicas:1"


def test_stores_and_sentinels_of_two_machines_are_as_a_failover_needs_them() -> None:
    stores, sentinels = (" ".join(PAIR[name]["command"]) for name in ("valkey", "sentinel"))
    for line in ("min-replicas-to-write 1", "appendonly yes", "maxmemory-policy noeviction"):
        assert f'"{line}"' in stores
    assert "sentinel down-after-milliseconds holdfast 2000" in sentinels
    assert "sentinel monitor holdfast $$FIRST 6379 2" in sentinels
    assert all(re.search(r":\d+\.\d+\.\d+$", each.get("image", ":1.2.3")) for each in PAIR.values())
    assert all(each["healthcheck"]["test"] for each in PAIR.values())


MACHINES = ("a.example", "b.example", "c.example")


def test_the_page_many_machines_shows_settings_that_are_accepted_on_each_machine() -> None:
    text = (ROOT / "deploy/many-machines/holdfast.toml").read_text()
    assert tomllib.loads(text) == tomllib.loads(_shown("hosts = "))
    for name in MACHINES:
        own = text.replace('own_host = "a.example"', f'own_host = "{name}"')
        settings = Settings(**tomllib.loads(own))
        assert settings.own_host == name
        assert [each.partition(":")[0] for each in settings.hosts] == [*MACHINES]
        assert settings.open


@pytest.mark.parametrize(
    ("folder", "name", "begin"),
    [
        ("proxies", "haproxy.cfg", "defaults"),
        ("proxies", "nginx.conf", "map "),
        ("two-machines", "haproxy.cfg", "backend "),
        ("two-machines", "nginx.conf", "upstream "),
        ("many-machines", "haproxy.cfg", "backend "),
        ("many-machines", "nginx.conf", "map "),
    ],
)
def test_pages_show_what_the_files_of_proxies_have(folder: str, name: str, begin: str) -> None:
    shown = _shown(begin, folder)
    file = (ROOT / "deploy" / folder / name).read_text()
    # Comments are on the page in other words.
    lines = {line.strip() for line in file.splitlines()}
    assert {line.strip() for line in shown.splitlines() if line.strip()} <= lines


def _shown(begin: str, page: str = "many-machines") -> str:
    """The block of code on a page that begins so."""
    [found] = {
        each.text
        for each in blocks(ROOT / "docs" / "how-to" / f"{page}.md")
        if each.text.startswith(begin)
    }
    return found
