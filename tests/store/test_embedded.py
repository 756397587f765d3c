"""The embedded Valkey: restarted when it dies, stopped in order, wherever its directory is."""

import asyncio
import errno
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.resp import Unreachable
from holdfast.store.local import embedded, valkey_process
from holdfast.store.local.embedded import Durability, EmbeddedValkey
from holdfast.store.local.home import Home
from holdfast.store.local.valkey_process import ChildProcess
from tests.store.caller import until
from tests.store.places import (
    environment_of,
    files_of,
    is_alive,
    keeping,
    names_in,
    pid_in,
    settings,
)

LINUX = Path("/proc/self/fd").is_dir()

# Life


@pytest.mark.parametrize("durability", Durability)
async def test_an_embedded_store_ends_with_its_server_and_keeps_what_its_durability_promises(
    data: Path, durability: Durability
) -> None:
    async with keeping(data, durability) as caller:
        caller.note(10)
        await caller.answered()
        pid = pid_in(data)
        appendonly, fsync = await settings(caller, "appendonly", "appendfsync")
        assert await settings(caller, "save", "maxmemory-policy", "port") == ["", "noeviction", "0"]
    assert not is_alive(pid)
    assert names_in(data) == ["store"]
    async with keeping(data, durability) as caller:
        kept = await caller.kept()
    is_kept = durability is not Durability.MEMORY
    assert kept == (list(range(10)) if is_kept else [])
    assert appendonly == ("yes" if is_kept else "no")
    assert not is_kept or fsync == durability.value


async def test_only_the_owner_can_open_the_socket_and_the_home(data: Path) -> None:
    async with keeping(data):
        for path in (data / "store.sock", data / "store"):
            assert path.stat().st_mode & 0o077 == 0


async def test_only_the_owner_can_read_what_is_stored_now_or_was_by_an_earlier_release(
    data: Path,
) -> None:
    def modes() -> set[int]:
        return {each.stat().st_mode & 0o777 for each in Home(data).files.iterdir()}

    before = os.umask(0)
    try:
        async with keeping(data) as caller:
            caller.note(10)
            await caller.answered()
            assert modes() == {0o600}
        for file in Home(data).files.iterdir():
            file.chmod(0o644)
        async with keeping(data):
            assert modes() == {0o600}
    finally:
        os.umask(before)


@pytest.mark.skipif(not LINUX, reason="looks into /proc")
async def test_an_embedded_store_inherits_its_lock_but_no_other_lock_and_no_secret(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET", "s3cret")
    ours = os.open(data / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    async with keeping(data):
        pid = pid_in(data)
        files = files_of(pid)
        assert {"valkey.lock", "valkey.log"} <= files
        assert not {"lock", "keeper.lock"} & files
        assert b"s3cret" not in environment_of(pid)
    os.close(ours)


async def test_an_embedded_store_has_a_process_session_of_its_own(data: Path) -> None:
    """So an interrupt at the terminal does not reach it."""
    async with keeping(data):
        pid = pid_in(data)
        assert os.getsid(pid) == pid


@pytest.mark.slow
async def test_an_embedded_store_that_dies_is_restarted_with_all_its_data(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    starts: list[EmbeddedValkey] = []
    start_again = EmbeddedValkey._start_again

    async def count(store: EmbeddedValkey) -> None:
        await start_again(store)
        starts.append(store)

    monkeypatch.setattr(EmbeddedValkey, "_start_again", count)
    async with keeping(data, Durability.ALWAYS) as caller:
        for _ in range(3):
            caller.note(200)
            caller.link.flush()
            pid = pid_in(data)
            os.kill(pid, signal.SIGKILL)
            caller.note(50)
            await caller.answered()
            # It answers before it counts as started, and is killed again only after that.
            await until(lambda: bool(starts))
            starts.clear()
        assert await caller.kept() == list(range(750))
        assert is_alive(pid_in(data))
    assert caplog.text.count("died: signal 9") == 3


NONE_LEFT = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
FAULTS: dict[str, tuple[Any, str, Exception]] = {
    "the lock": (Home, "lock", NONE_LEFT),
    "the log": (Home, "open_log", NONE_LEFT),
    "the socket": (Home, "prepare_socket", NONE_LEFT),
    "the process": (asyncio, "create_subprocess_exec", NONE_LEFT),
    "the first connection": (EmbeddedValkey, "_dial", Unreachable(str(NONE_LEFT))),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", FAULTS)
async def test_an_embedded_store_that_died_without_descriptors_is_restarted_when_there_are_some(
    data: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, name, error = FAULTS[what]
    refused = 0

    def refuse(*_: object, **__: object) -> None:
        nonlocal refused
        refused += 1
        raise error

    async with keeping(data, Durability.ALWAYS) as caller:
        with monkeypatch.context() as patched:
            patched.setattr(place, name, refuse)
            os.kill(pid_in(data), signal.SIGKILL)
            await until(lambda: refused > 2)
        caller.note(10)
        await caller.answered()
        assert await caller.kept() == list(range(10))


async def test_an_embedded_store_ends_at_once_without_waiting_for_a_signal(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EmbeddedValkey(data, Durability.EVERYSEC)
    await store.open()
    pid = pid_in(data)
    monkeypatch.setattr(ChildProcess, "signal", lambda *_: None)
    await store.close()
    assert not is_alive(pid)


async def test_an_embedded_store_that_does_not_stop_is_killed(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(valkey_process, "_GOODBYE_S", 0.02)
    async with EmbeddedValkey(data, Durability.EVERYSEC):
        pid = pid_in(data)
        os.kill(pid, signal.SIGSTOP)
    assert not is_alive(pid)
    assert "does not stop" in caplog.text


async def test_a_cancelled_start_leaves_no_process_behind(data: Path) -> None:
    store = EmbeddedValkey(data, Durability.EVERYSEC)
    opening = asyncio.create_task(store.open())
    file = data / "store" / "valkey.pid"
    # For a moment the file is there and empty.
    await until(lambda: file.exists() and file.read_text().endswith("\n"))
    pid = pid_in(data)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not is_alive(pid)
    async with keeping(data) as caller:
        assert await caller.kept() == []


# Names


@pytest.mark.parametrize("length", [40, 90, 200])
async def test_a_data_directory_may_have_a_long_name(data: Path, length: int) -> None:
    place = data / ("x" * length)
    for count in (1, 2):
        async with keeping(place) as caller:
            caller.noted = count - 1
            caller.note(1)
            await caller.answered()
            assert len(await caller.kept()) == count
            socket = place / "store.sock"
            home = socket.resolve().parent
            assert socket.is_socket()
        assert home == place or not home.exists()
        assert not socket.is_symlink()


async def test_a_data_directory_may_be_a_relative_path(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data)
    async with keeping(Path("here and there")) as caller:
        assert await caller.link.ask("PING") == b"PONG"


# Damage


async def noted_in(data: Path) -> Path:
    """Note something in a store; the file that has it."""
    async with keeping(data, Durability.ALWAYS) as caller:
        caller.note(100)
        await caller.answered()
    (file,) = (data / "store" / "appendonlydir").glob("*.incr.aof")
    return file


def until_ended(pid: int) -> None:
    """Wait until a process of ours has ended, and leave it to others to hear how."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_a_signal_to_a_store_that_has_just_ended_does_not_hide_how(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_been_signalled = threading.Event()
    waitpid = os.waitpid

    def wait_late(pid: int, options: int) -> tuple[int, int]:
        has_been_signalled.wait(10)
        return waitpid(pid, options)

    async def ending() -> str:
        child = ChildProcess(await asyncio.create_subprocess_exec("sleep", "60"))
        os.kill(child.pid, signal.SIGKILL)
        until_ended(child.pid)
        child.signal(signal.SIGTERM)
        has_been_signalled.set()
        return await child.gone()

    monkeypatch.setattr(os, "waitpid", wait_late)
    # uvloop would wait for it otherwise.
    assert asyncio.run(ending()) == "signal 9"


async def test_a_file_that_ends_in_the_middle_of_a_write_loses_only_that_write(data: Path) -> None:
    file = await noted_in(data)
    os.truncate(file, file.stat().st_size - 5)
    async with keeping(data) as caller:
        assert await caller.kept() == list(range(99))


def repair(command: str) -> None:
    subprocess.run(command, shell=True, input=b"y\n", check=True, capture_output=True)


@pytest.mark.slow
async def test_a_damaged_file_is_reported_with_a_command_that_repairs_it(data: Path) -> None:
    data /= "Joe's data"
    file = await noted_in(data)
    with file.open("r+b") as damaged:
        damaged.seek(file.stat().st_size // 2)
        damaged.write(b"garbage")
    with pytest.raises(StoreUnavailable) as refused:
        await EmbeddedValkey(data, Durability.ALWAYS).open()
    text = str(refused.value)
    assert text.startswith(f"{file} is damaged. Keep a copy of {data / 'store'};")
    command = text.partition("with: ")[2].partition(", or move")[0]
    repair(command)
    async with keeping(data) as caller:
        kept = await caller.kept()
    assert kept == list(range(len(kept)))
    assert 20 < len(kept) < 80


@pytest.mark.parametrize("is_snapshot", [True, False])
async def test_damage_that_no_command_repairs_is_reported_with_what_is_left_to_do(
    data: Path, *, is_snapshot: bool
) -> None:
    file = await noted_in(data)
    if is_snapshot:
        [file] = file.parent.glob("*.base.rdb")
    stored = bytearray(file.read_bytes())
    stored[len(stored) // 2 if is_snapshot else stored.index(b"SELECT")] ^= 1
    file.write_bytes(stored)
    with pytest.raises(StoreUnavailable, match="then restore a backup") as refused:
        await EmbeddedValkey(data, Durability.ALWAYS).open()
    assert str(refused.value).startswith(f"{file} is damaged, and nothing can repair it.")


async def test_an_embedded_store_that_ends_at_once_is_reported_with_the_cause(data: Path) -> None:
    (data / "store" / "appendonlydir").mkdir(parents=True)
    manifest = data / "store" / "appendonlydir" / "appendonly.aof.manifest"
    manifest.write_text("nonsense\n")
    with pytest.raises(StoreUnavailable, match=r"ended at once: .+ \(see .+valkey\.log\)"):
        await EmbeddedValkey(data, Durability.EVERYSEC).open()


def test_a_data_directory_that_is_a_file_is_refused(data: Path) -> None:
    (data / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="Not a directory"):
        asyncio.run(EmbeddedValkey(data / "file", Durability.EVERYSEC).open())


async def test_a_missing_server_binary_is_reported_and_does_not_prevent_a_later_start(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "server_binary", lambda: data / "missing")
    with pytest.raises(StoreUnavailable, match="cannot be started"):
        await EmbeddedValkey(data, Durability.EVERYSEC).open()
    monkeypatch.undo()
    async with keeping(data):
        pass
