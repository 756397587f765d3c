"""`holdfast doctor` finds faults of a machine, with their remedies."""

import asyncio
import json
import os
import resource
import socket
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bench.processes import reserved_port
from holdfast.cli import server_checks
from holdfast.cli.main import program
from holdfast.compose.data_directory import own_directory
from holdfast.compose.workers import Allowance
from holdfast.pipeline.doctor import Check, examine
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT, OLDEST_LAYOUT
from holdfast.store.links.connection import StoreUnavailable
from tests.serving import as_toml
from tests.store.servers import ValkeyServer
from tests.web.backend_application import BackendApplication


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("holdfast.cli.doctor.examine", lambda: ())
    return tmp_path


def checks(*words: str, **settings: Any) -> tuple[int, dict[str, tuple[bool | None, str]]]:
    """The exit code, and for each check whether it passed, and its text."""
    with reserved_port() as port:
        Path("holdfast.toml").write_text(as_toml({"port": port, **settings}))
        done = CliRunner().invoke(program, ["doctor", "--json", *words])
    lines = map(json.loads, done.stdout.splitlines())
    return done.exit_code, {each["name"]: (each["ok"], each["text"]) for each in lines}


def test_a_sound_machine_passes(home: Path) -> None:
    code, seen = checks()
    assert code == 0
    assert seen["store"][0] is True
    assert seen["data directory"] == (True, "data will be created")
    assert not (home / "data").exists()


def test_a_port_in_use_by_another_process_is_a_fault(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, seen = checks(port=taken.getsockname()[1])
    assert code == 1
    assert seen["address"][0] is False
    assert "cannot be used (Address already in use): set host or port" in seen["address"][1]
    assert "--port 8081" in seen["address"][1]


def test_the_port_and_the_directory_of_a_running_server_are_no_faults(home: Path) -> None:
    with (
        own_directory(home / "data"),
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        code, seen = checks(port=taken.getsockname()[1])
    assert code == 0
    assert seen["data directory"] == (None, "data belongs to a running server")
    assert seen["address"][0] is True


def test_several_workers_need_a_supervisor(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_checks, "allowance", lambda: Allowance(2.0, 8 * 1024**3))
    assert "workers" not in checks()[1]
    assert checks(workers=2)[1]["workers"] == (True, "2, each with a shard")
    code, seen = checks(workers=3)
    assert (code, seen["workers"][0]) == (0, None)
    assert "2 processors and 8.0 GiB of memory allow 2, so they share" in seen["workers"][1]
    assert checks(workers=2, supervisor=False)[1]["workers"][0] is False


def test_the_deployment_of_any_data_directory_is_checked(home: Path) -> None:
    place = home / "elsewhere"
    for shard in (1, 2):
        (place / "shards" / str(shard)).mkdir(parents=True)
    place.chmod(0o700)
    code, seen = checks("--data", str(place))
    assert (code, seen["workers"][0]) == (1, False)
    assert f"the deployment in {place} has 3: set workers to 3" in seen["workers"][1]
    code, seen = checks("--data", str(place), workers="auto")
    assert seen["workers"][1].startswith("3, each with a shard: as the deployment was created")
    assert "shard 3" not in seen
    (place / "shards" / "2").chmod(0o777)
    code, seen = checks("--data", str(place), workers=3)
    assert (code, seen["shard 1"][0], seen["shard 2"][0]) == (1, True, False)
    assert "chmod 700" in seen["shard 2"][1]


def test_a_directory_that_others_can_write_is_a_fault_with_its_remedy(home: Path) -> None:
    (home / "data").mkdir()
    (home / "data").chmod(0o777)
    code, seen = checks()
    assert code == 1
    assert seen["data directory"][1].startswith("data: other users can write there")
    assert "chmod 700 data" in seen["data directory"][1]


def test_a_directory_that_cannot_be_created_is_a_fault(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    code, seen = checks()
    assert (code, seen["data directory"][0]) == (1, False)


def test_a_store_without_a_binary_is_a_fault(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking() -> Path:
        raise StoreUnavailable("reinstall it")

    monkeypatch.setattr(server_checks, "server_binary", lacking)
    assert checks()[1]["store"] == (False, "reinstall it")
    monkeypatch.setattr(server_checks, "server_binary", lambda: home / "none")
    code, seen = checks()
    assert code == 1
    assert "set redis" in seen["store"][1]


def test_a_remote_store_must_answer(home: Path) -> None:
    with reserved_port() as port, ValkeyServer(port=str(port)) as store:
        store.set(requirepass="secret")
        url = f"redis://:secret@127.0.0.1:{port}/0"
        assert checks(redis=url)[1]["store"] == (True, f"127.0.0.1:{port} answers")
        code, seen = checks(redis=url.replace("secret", "wr0ng"))
        assert (code, seen["store"][0]) == (1, False)
        assert "WRONGPASS" in seen["store"][1]
        assert "wr0ng" not in seen["store"][1]
        assert "failover" not in seen
        store.kill()
        code, seen = checks(redis=url)
    assert (code, seen["store"][0]) == (1, False)
    assert "cannot be reached" in seen["store"][1]
    assert checks(redis=f"unix://{home}/none")[1]["store"][0] is False


def test_an_upgrade_that_is_not_finished_is_said_and_is_no_fault(home: Path) -> None:
    with ValkeyServer() as store:
        assert "upgrade" not in checks(redis=store.url)[1]
        for layout, said in ((OLDEST_LAYOUT, True), (LAYOUT, False)):
            store.ask("HSET", RedisKeys("holdfast").meta, "version", layout)
            code, seen = checks(redis=store.url)
            assert (code, "upgrade" in seen) == (0, said)
            if said:
                ok, text = seen["upgrade"]
                assert (ok, "releases 0.2 and 0.3" in text) == (None, True)


def test_the_risks_of_a_failover_are_reported_but_are_no_faults(home: Path) -> None:
    at_once = {"repl-diskless-sync-delay": "0"}
    with (
        reserved_port() as port,
        ValkeyServer(port=str(port), **at_once) as store,
        ValkeyServer() as replica,
    ):
        replica.follow(store)
        code, seen = checks(redis=store.url)
    assert (code, seen["failover"][0]) == (0, None)
    assert "Use Sentinels or a cluster" in seen["failover"][1]


async def test_the_backend_must_answer_a_signed_question(home: Path) -> None:
    assert "backend" not in (await asyncio.to_thread(checks))[1]
    async with BackendApplication() as application:
        origin = f"http://127.0.0.1:{application.port}"

        async def check(**more: Any) -> tuple[int, bool | None, str]:
            given = application.settings(**more)
            code, seen = await asyncio.to_thread(checks, backend=given)
            return code, *seen["backend"]

        text = "answers, and refuses a client without credentials, or our secret"
        assert await check() == (0, True, f"{origin} {text}")
        # What the application gets is signed, and is no client's.
        assert [each.data for each in application.asked] == [{"address": ""}]
        application.users[""] = "guest"
        text = "answers: a client without credentials is guest"
        assert await check() == (0, True, f"{origin} {text}")
        application.plan += [500]
        code, ok, text = await check()
        assert (code, ok) == (1, False)
        assert "500" in text
        url = f"https://127.0.0.1:{application.port}/decide"
        code, ok, text = await check(url=url, allow_private=False)
        assert (code, ok) == (1, False)
        assert text.endswith("127.0.0.1 is not public: set allow_private to call it")
        assert len(application.asked) == 3
    code, ok, text = await check()
    assert (code, ok) == (1, False)
    assert text.startswith(f"{origin}: no connection: ")


def test_few_open_files_and_missing_tools_are_reported_but_are_no_faults(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 4096))
    monkeypatch.setattr(server_checks, "_LITTLE_SPACE", 2**60)
    monkeypatch.setattr("shutil.which", lambda name: None)
    code, seen = checks()
    assert code == 0
    assert {name for name, (ok, _) in seen.items() if ok is None} >= {
        "open files",
        "disk",
        "C compiler",
        "npm",
    }
    assert "LimitNOFILE" in seen["open files"][1]


def test_unreadable_settings_end_the_doctor(home: Path) -> None:
    code, seen = checks(prot=1)
    assert (code, seen) == (2, {})


@pytest.mark.parametrize(("words", "code"), [([], 0), (["--pipeline"], 1), (["--start"], 1)])
def test_missing_packages_of_the_pipeline_are_faults_only_on_request(
    home: Path, monkeypatch: pytest.MonkeyPatch, words: Sequence[str], code: int
) -> None:
    lacking = Check("pyspark", False, "missing")
    monkeypatch.setattr("holdfast.cli.doctor.examine", lambda: [lacking])
    told, seen = checks(*words)
    assert told == code
    assert seen["pyspark"] == (False if words else None, "missing")


def test_a_pipeline_that_nobody_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("holdfast.pipeline.doctor.version", missing)
    [check] = examine()
    assert check.ok is False
    assert check.text.startswith("not installed: ")
    assert "'holdfast-bayeux[pipeline-local] @ file:" in check.text
    assert "'holdfast-bayeux[pipeline] @ file:" in check.text


def test_the_files_that_a_server_reads_again_are_checked(home: Path) -> None:
    files = {"rights": "rights.toml", "alerts": "alerts.toml", "login_passwords": "users"}
    Path("rights.toml").write_text('[[rule]]\nwho = ["*"]\nmay = ["publsh"]\nchannels = ["/**"]\n')
    Path("alerts.toml").write_text("oldest = 1000\nleters = 5\n")
    Path("users").write_text("")
    code, seen = checks(**files)
    assert code == 1
    assert seen["rights"][0] is seen["alerts"][0] is False
    assert seen["rights"][1].startswith("rights.toml: line 1: rule.1: 'publsh' is not a right")
    begin = "alerts.toml: line 2: leters: there is no such key: did you mean letters?; correct it"
    assert seen["alerts"][1].startswith(begin)
    assert seen["login_passwords"] == (True, "users")
    Path("rights.toml").write_text("")
    Path("alerts.toml").write_text("letters = 5\n")
    code, seen = checks(**files)
    assert code == 0
    assert (seen["rights"], seen["alerts"]) == ((True, "rights.toml"), (True, "alerts.toml"))


def test_a_certificate_without_its_key_is_a_fault(home: Path) -> None:
    Path("cert.pem").write_text("")
    code, seen = checks(tls_cert="cert.pem", tls_key="key.pem")
    assert (code, seen["TLS"][0]) == (1, False)
    assert seen["TLS"][1].startswith("tls_key: there is no file key.pem; correct it")


def test_an_interpreted_core_is_a_choice_that_has_a_cost(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_checks, "core", lambda: "interpreted")
    code, seen = checks()
    assert (code, seen["core"][0]) == (0, None)
    assert "interpreted: it does the same, with at least a fifth fewer" in seen["core"][1]
    assert "install the release's wheel for cp3" in seen["core"][1]
