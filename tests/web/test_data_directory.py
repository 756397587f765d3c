"""The data directory: no other user may write there, and it must not vanish."""

import asyncio
import os
import time
import urllib.error
import urllib.request
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast.compose import CannotStart, data_directory
from holdfast.compose.data_directory import DirectoryTaken, claimed, own_directory
from holdfast.supervisor.control import CONTROL_FILE, socket_for_commands
from tests.abuse.attacker import Person
from tests.web.programs import Program

TIMEOUT_S = 60.0
SOMEBODY_ELSE = 12345


def refusal(path: Path) -> str:
    with pytest.raises(CannotStart) as refused, own_directory(path):
        pass
    return str(refused.value)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_directory_that_others_can_write_is_refused_with_advice(
    mode: int, tmp_path: Path
) -> None:
    data = tmp_path / "my data"
    data.mkdir()
    data.chmod(mode)
    assert refusal(data) == (
        f"data {data}: other users can write there and change what the server stores: "
        f"prevent it with: chmod 700 '{data}'"
    )
    data.chmod(0o755)
    with own_directory(data) as directory:
        assert directory.is_there()


def abandon(control: Path) -> None:
    """Leave what a supervisor leaves that is killed."""
    with socket_for_commands() as listening:
        listening.bind(str(control))


async def test_servers_whose_supervisor_was_killed_are_waited_for(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with AsyncExitStack() as stack, asyncio.timeout(TIMEOUT_S):
        with own_directory(data) as former:
            abandon(data / CONTROL_FILE)
            claiming = asyncio.create_task(claimed(data, None, data / CONTROL_FILE, stack))
            done, _ = await asyncio.wait([claiming], timeout=0.2)
            assert not done
            name = former.lock_name
        assert (await claiming).lock_name == name


async def test_a_server_of_a_further_shard_is_waited_for_below_a_living_supervisor(
    tmp_path: Path,
) -> None:
    """The first shard's server of the same supervisor has been waited for."""
    data, first = tmp_path / "shards" / "1", tmp_path / CONTROL_FILE
    async with AsyncExitStack() as stack, asyncio.timeout(TIMEOUT_S):
        with own_directory(data) as former, socket_for_commands() as control:
            control.bind(str(first))
            claiming = asyncio.create_task(claimed(data, None, None, stack))
            done, _ = await asyncio.wait([claiming], timeout=0.2)
            assert not done
            name = former.lock_name
        assert (await claiming).lock_name == name


async def test_the_first_server_waits_for_those_of_further_shards_that_were_abandoned(
    tmp_path: Path,
) -> None:
    data, other = tmp_path / "data", tmp_path / "data" / "shards" / "1"
    async with AsyncExitStack() as stack, asyncio.timeout(TIMEOUT_S):
        with own_directory(other):
            abandon(data / CONTROL_FILE)
            # The second one has never been used.
            shards = [other, data / "shards" / "2"]
            claiming = asyncio.create_task(claimed(data, None, data / CONTROL_FILE, stack, shards))
            done, _ = await asyncio.wait([claiming], timeout=0.2)
            assert not done
        await claiming


async def test_servers_that_stay_after_the_death_of_their_supervisor_are_not_waited_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setattr(data_directory, "_LEAVING_S", 0.1)
    async with AsyncExitStack() as stack:
        with own_directory(data):
            abandon(data / CONTROL_FILE)
            with pytest.raises(DirectoryTaken):
                await claimed(data, None, data / CONTROL_FILE, stack)


@pytest.mark.parametrize("has_supervisor", [True, False])
async def test_a_directory_of_another_running_server_is_refused_at_once(
    tmp_path: Path, *, has_supervisor: bool
) -> None:
    data = tmp_path / "data"
    async with AsyncExitStack() as stack:
        with own_directory(data), socket_for_commands() as control:
            if has_supervisor:
                control.bind(str(data / CONTROL_FILE))
            # Without a turn of the loop.
            with pytest.raises(DirectoryTaken):
                claimed(data, None, data / CONTROL_FILE, stack).send(None)


def test_a_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY_ELSE)
    assert f"belongs to another user (uid {data.stat().st_uid})" in refusal(data)


def test_a_link_is_refused_only_if_it_belongs_to_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, link = tmp_path / "data", tmp_path / "link"
    data.mkdir(mode=0o700)
    link.symlink_to(data)
    with own_directory(link) as directory:
        assert directory.is_there()
    found = os.lstat(link)

    def lstat(path: Path) -> os.stat_result:
        fields: list[Any] = list(found)
        fields[4] = SOMEBODY_ELSE
        return os.stat_result(fields)

    monkeypatch.setattr(Path, "lstat", lstat)
    assert f"is a link that belongs to another user (uid {SOMEBODY_ELSE})" in refusal(link)


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_store_directory_that_others_can_write_is_refused(mode: int, tmp_path: Path) -> None:
    store = tmp_path / "data" / "store"
    store.mkdir(parents=True, mode=0o700)
    store.parent.chmod(0o700)
    store.chmod(mode)
    assert refusal(store.parent) == (
        f"data {store}: other users can write there and change what the server stores: "
        f"prevent it with: chmod 700 {store}"
    )
    store.chmod(0o750)
    with own_directory(store.parent) as directory:
        assert directory.is_there()


def test_a_store_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "data" / "store"
    store.mkdir(parents=True, mode=0o700)
    store.parent.chmod(0o700)
    found = store.stat()
    stat = Path.stat

    def of_somebody_else(path: Path, **options: Any) -> os.stat_result:
        if path != store:
            return stat(path, **options)
        fields: list[Any] = list(found)
        fields[4] = SOMEBODY_ELSE
        return os.stat_result(fields)

    monkeypatch.setattr(Path, "stat", of_somebody_else)
    assert f"{store}: belongs to another user (uid {SOMEBODY_ELSE})" in refusal(store.parent)


def test_a_lock_that_is_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "lock").symlink_to(tmp_path / "precious")
    assert refusal(data).startswith(f"data {data}: ")
    assert not (tmp_path / "precious").exists()


def test_a_replaced_directory_counts_as_missing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with own_directory(data) as directory:
        data.rename(tmp_path / "elsewhere")
        assert not directory.is_there()
        with own_directory(data):
            assert not directory.is_there()


def ready(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url + "/readyz", timeout=TIMEOUT_S) as response:
            return response.status, response.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()


def becomes(url: str, status: int) -> str:
    deadline = time.monotonic() + TIMEOUT_S
    while (found := ready(url))[0] != status:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found[1]


def publish(person: Person, data: object) -> str:
    """The error of a publish that must be kept; empty if it was."""
    ext = {"delivery": {"persistent": True}}
    return person.ask(person.message("/a", data=data, ext=ext)).error()


@pytest.mark.parametrize("vanishing", ["data", "data/store"])
def test_no_publish_is_confirmed_while_the_directory_is_missing(
    vanishing: str, tmp_path: Path
) -> None:
    running = Program("--port", "0", home=tmp_path)
    try:
        url = running.place().rpartition("/")[0]
        with Person(url, ext={"ack": True, "delivery": {"session": "joe/1"}}) as person:
            person.subscribe("/a")
            assert publish(person, 1) == ""
            (tmp_path / vanishing).rename(tmp_path / "gone")
            assert becomes(url, 503) == "the data directory is gone"
            assert publish(person, 2).startswith("503:communication.noConnection")
            assert "the data directory is gone: restore it" in running.errors()
            (tmp_path / "gone").rename(tmp_path / vanishing)
            assert becomes(url, 200) == "ready"
            assert publish(person, 3) == ""
        code, _ = running.stop()
        assert code == 0
    finally:
        running.close()
