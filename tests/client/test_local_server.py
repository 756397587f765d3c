"""`holdfast.testing`: a server in the process of a test, its clock and its store."""

import asyncio
import gc
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import ClientState, Message, Refuse, ReplyError
from holdfast.testing import LocalServer, local_server
from tests.pages import ROOT

# A pause that no test waits for.
MINUTE_S = 60


@pytest.fixture
async def local() -> AsyncIterator[LocalServer]:
    async with local_server() as server:
        yield server


async def next_of(heard: "asyncio.Queue[Message]") -> Message:
    async with asyncio.timeout(MINUTE_S):
        return await heard.get()


@pytest.mark.parametrize("transport", ["websocket", "long-polling"])
async def test_clients_that_wait_live_on_when_the_clock_moves(
    local: LocalServer, transport: str
) -> None:
    heard, states = asyncio.Queue[Message](), list[ClientState]()
    async with local.client(transports=[transport], on_state=states.append) as client:
        await client.subscribe("/orders", heard.put_nowait)
        for hours in (1, 100):
            await local.move_clock(hours=hours)
        await local.publish("/orders", 1)
        assert (await next_of(heard)).data == 1
        assert states.count(ClientState.HANDSHAKING) == 1
        assert ClientState.DISCONNECTED not in states


async def test_a_session_without_a_client_ends_when_its_timeout_has_passed(
    local: LocalServer,
) -> None:
    async with local.client("shop/1") as shop:
        await shop.subscribe("/orders")
    await local.publish("/orders", 1)
    await local.move_clock(hours=23)
    assert local.waiting("shop/1") == 1
    await local.move_clock(hours=2)
    assert local.waiting("shop/1") == 0
    assert (await local.next_dead_letter())["content"] == 1


async def test_a_delayed_message_comes_when_its_delay_has_passed(local: LocalServer) -> None:
    heard = asyncio.Queue[Message]()
    async with local.client("shop/1") as shop:
        await shop.subscribe("/orders", heard.put_nowait)
        await local.publish("/orders", "later", delay_s=3600)
        await local.publish("/orders", "now")
        assert (await next_of(heard)).data == "now"
        await local.move_clock(hours=1)
        assert (await next_of(heard)).data == "later"


async def test_the_pause_before_the_next_attempt_passes(local: LocalServer) -> None:
    heard = asyncio.Queue[Message]()

    def busy(message: Message) -> None:
        heard.put_nowait(message)
        if not message.redelivered:
            raise Refuse("communication.busy", delay_s=3600)

    async with local.client("shop/1", terms={"retries": 3}) as shop:
        await shop.subscribe("/orders", busy)
        await local.publish("/orders", 1)
        assert not (await next_of(heard)).redelivered
        while heard.empty():
            # The verdict may be under way.
            await local.move_clock(hours=1)
        assert (await next_of(heard)).redelivered == 1
        await local.acknowledged("shop/1")


async def test_the_clock_moves_the_date_of_messages(local: LocalServer) -> None:
    first = await local.publish("/orders", 1, persistent=True)
    await local.move_clock(days=1)
    second = await local.publish("/orders", 2, persistent=True)
    assert first.timestamp_ns is not None
    assert second.timestamp_ns is not None
    assert second.timestamp_ns - first.timestamp_ns > 24 * 3600 * 10**9


async def test_the_clock_never_goes_back(local: LocalServer) -> None:
    with pytest.raises(ValueError, match="never goes back"):
        await local.move_clock(seconds=-1)


async def test_what_needs_no_store_goes_on_while_it_is_away(local: LocalServer) -> None:
    heard = asyncio.Queue[Message]()
    async with local.client() as client, local.client("shop/1") as shop:
        await client.subscribe("/chatter", heard.put_nowait)
        await shop.subscribe("/orders")
        local.store.pause()
        assert not local.store.is_available
        await local.publish("/chatter", "hello")
        assert (await next_of(heard)).data == "hello"
        with pytest.raises(ReplyError, match="store_unavailable"):
            await local.publish("/orders", 1, persistent=True)
        await local.move_clock(seconds=5)
        await local.store.resume()
        assert local.store.is_available
        assert (await local.publish("/orders", 2, persistent=True)).id
        assert local.waiting("shop/1") == 1


async def test_durable_messages_wait_for_a_silent_store(local: LocalServer) -> None:
    async with local.client("shop/1") as shop:
        await shop.subscribe("/orders")
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        await local.store.silence(0.2)
        await local.publish("/orders", 1, persistent=True)
        assert loop.time() - began_at >= 0.2
        assert local.waiting() == local.waiting("shop/1") == 1


async def test_a_silence_of_the_store_can_be_ended(local: LocalServer) -> None:
    async with local.client("shop/1") as shop:
        await shop.subscribe("/orders")
        await local.store.silence(10 * MINUTE_S)
        publishing = asyncio.create_task(local.publish("/orders", 1, persistent=True))
        await local.store.resume()
        async with asyncio.timeout(MINUTE_S):
            assert (await publishing).id


@pytest.mark.parametrize("is_there", [False, True])
async def test_a_server_ends_without_an_error_although_its_store_is_away(is_there: bool) -> None:
    async with local_server() as local:
        if is_there:
            await local.store.silence(10 * MINUTE_S)
        else:
            local.store.pause()


async def test_waiting_for_what_does_not_happen_ends(local: LocalServer) -> None:
    async with local.client("shop/1") as shop:
        await shop.subscribe("/orders")
    await local.publish("/orders", 1)
    with pytest.raises(TimeoutError, match="no dead letter"):
        await local.next_dead_letter(timeout_s=0.01)
    with pytest.raises(TimeoutError, match="1 messages are not acknowledged"):
        await local.acknowledged(timeout_s=0.01)


async def test_servers_with_other_settings_run_side_by_side(tmp_path: Path) -> None:
    jobs: dict[str, Any] = {"channels": {"/jobs": {"work_queue": True}}, "data": tmp_path / "data"}
    heard = asyncio.Queue[Message]()
    async with local_server(**jobs) as one, local_server() as other:
        assert one.url != other.url
        async with one.client() as first, one.client() as second, other.client() as third:
            for client in (first, second, third):
                await client.subscribe("/jobs", heard.put_nowait)
            await one.publish("/jobs", 1)
            await one.publish("/jobs", 2)
            assert {(await next_of(heard)).data for _ in range(2)} == {1, 2}
            await one.acknowledged()
    assert heard.empty()


async def test_garbage_is_collected_as_before_when_the_server_has_ended() -> None:
    before = gc.get_threshold()
    async with local_server():
        assert gc.get_threshold() != before
    assert gc.get_threshold() == before


def test_a_client_without_the_server_hears_what_tests_need() -> None:
    # A module that is None in this table cannot be imported.
    code = "import sys; sys.modules['pydantic'] = None; import holdfast.testing"
    words = [sys.executable, "-c", code]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stderr
    assert "holdfast.testing needs the server, and pydantic is not installed" in said
    assert "holdfast-bayeux[testing]" in said
