"""Two servers and one embedded Valkey: only one at a time may use it, or take an orphan over."""

import os
import signal
from pathlib import Path

import pytest

from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.local import embedded
from holdfast.store.local.embedded import Durability, EmbeddedValkey
from tests.store.caller import calling, until
from tests.store.places import (
    copied,
    is_alive,
    keeping,
    killed_keeper,
    names_in,
    pid_in,
    settings,
    stranger,
)


async def test_a_second_server_is_refused_while_the_first_one_runs(data: Path) -> None:
    async with keeping(data) as caller:
        with pytest.raises(StoreUnavailable, match="another server uses this store"):
            await EmbeddedValkey(data, Durability.EVERYSEC).open()
        assert await caller.link.ask("PING") == b"PONG"
    async with keeping(data):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("name", ["short", "long" * 40])
async def test_an_orphan_is_taken_over_with_its_data(data: Path, name: str) -> None:
    place = data / name
    url = killed_keeper(place)
    async with calling(url) as caller:
        caller.note(10)
        await caller.answered()
    pid = pid_in(place)
    async with keeping(place, Durability.ALWAYS) as caller:
        assert pid_in(place) == pid
        assert await caller.kept() == list(range(10))
        assert await settings(caller, "appendonly", "appendfsync") == ["yes", "always"]
    assert not is_alive(pid)
    assert names_in(place) == ["store"]


@pytest.mark.slow
async def test_an_orphan_without_persistence_gets_it_when_it_is_taken_over(data: Path) -> None:
    async with calling(killed_keeper(data, "memory")) as caller:
        caller.note(10)
        await caller.answered()
    async with keeping(data, Durability.ALWAYS) as caller:
        assert await caller.kept() == list(range(10))
        caller.noted = 10
        caller.note(10)
        await caller.answered()
    async with keeping(data, Durability.ALWAYS) as caller:
        assert await caller.kept() == list(range(20))


@pytest.mark.slow
async def test_an_orphan_that_was_taken_over_is_restarted_when_it_dies(data: Path) -> None:
    killed_keeper(data)
    async with keeping(data, Durability.ALWAYS) as caller:
        os.kill(pid_in(data), signal.SIGKILL)
        caller.note(10)
        await caller.answered()
        assert await caller.kept() == list(range(10))


@pytest.mark.slow
async def test_an_orphan_that_does_not_answer_is_named_in_the_error(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_TIMEOUT_S", 0.1)
    killed_keeper(data)
    pid = pid_in(data)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(StoreUnavailable, match=f"end process {pid} and start again"):
        await EmbeddedValkey(data, Durability.EVERYSEC).open()
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)
    async with keeping(data):
        assert pid_in(data) != pid


@pytest.mark.slow
async def test_a_server_starts_where_a_server_and_its_store_were_both_killed(data: Path) -> None:
    killed_keeper(data)
    os.kill(pid_in(data), signal.SIGKILL)
    assert (data / "store.sock").exists()
    async with keeping(data) as caller:
        assert await caller.kept() == []


@pytest.mark.slow
async def test_a_copy_of_a_directory_in_use_gets_a_store_of_its_own(data: Path) -> None:
    place, copy = data / ("long" * 40), data / "copy"
    async with keeping(place) as caller:
        copied(place, copy)
        async with keeping(copy) as other:
            caller.note(1)
            await caller.answered()
            assert await other.kept() == []
            assert pid_in(copy) != pid_in(place)
        await caller.link.ask("PING")
    assert names_in(copy) == names_in(place) == ["store"]


async def test_a_foreign_valkey_at_the_socket_is_not_taken_over(data: Path) -> None:
    with stranger(data) as other:
        await until((data / "store.sock").exists)
        with pytest.raises(StoreUnavailable, match="another server listens there"):
            await EmbeddedValkey(data, Durability.EVERYSEC).open()
        async with calling(f"unix://{data}/store.sock") as caller:
            assert await caller.link.ask("PING") == b"PONG"
        other.terminate()
