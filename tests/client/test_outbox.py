"""The outbox of a Python client, with servers that come and go."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast import Client, OutboxFull, ReplyError, SyncClient, WrongUse
from holdfast.client.outbox import Outbox
from holdfast.client.posting import Posting
from tests.client.conftest import Basket, Enter
from tests.clients.mortal_server import MortalServer
from tests.serving import ROOT, Server, environment


async def test_messages_posted_while_the_server_is_away_arrive_once_and_in_order(
    mortal: MortalServer, tmp_path: Path, transport: str
) -> None:
    outbox, basket = Outbox(tmp_path / "outbox"), Basket()
    options: dict[str, Any] = {"transports": [transport], "longest_pause_s": 0.2}
    async with (
        Client(mortal.alive.url, session="reader/1", **options) as reader,
        Client(mortal.alive.url, session="writer/1", outbox=outbox, **options) as writer,
    ):
        await reader.subscribe("/outbox/away", basket)
        for number in range(50):
            await writer.post("/outbox/away", number, persistent=True)
        mortal.alive.process.kill()
        for number in range(50, 100):
            await writer.post("/outbox/away", number, persistent=True)
        mortal.kill_and_start()
        assert await basket.data(100) == [*range(100)]
        async with asyncio.timeout(60):
            # The replies to the writer may come later than the messages to the reader.
            while len(outbox):  # noqa: ASYNC110 - an outbox has no events
                await asyncio.sleep(0.01)


async def test_a_client_with_an_outbox_is_entered_without_a_server(
    server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "outbox"
    async with Client(
        "http://127.0.0.1:9", outbox=Outbox(path, max_count=2), connect_timeout_s=0.01
    ) as client:
        await client.post("/outbox/later", 1)
        await client.post("/outbox/later", 2)
        with pytest.raises(OutboxFull):
            await client.post("/outbox/later", 3)
    async with Client(server.url) as reader:
        basket = Basket()
        await reader.subscribe("/outbox/later", basket)
        async with Client(server.url, outbox=Outbox(path)):
            assert await basket.data(2) == [1, 2]


async def test_messages_whose_replies_have_come_leave_the_outbox_even_if_posting_is_cancelled(
    tmp_path: Path,
) -> None:
    outbox = Outbox(tmp_path / "outbox")
    outbox.open()
    for number in range(3):
        outbox.add({"channel": "/outbox/cancelled", "data": number})
    sent: list[asyncio.Future[Any]] = []

    def send(*_: Any, **__: Any) -> Any:
        sent.append(asyncio.get_running_loop().create_future())
        return SimpleNamespace(reply=sent[-1])

    refusal = {"channel": "/outbox/cancelled", "error": "403::publish_denied"}

    posting = asyncio.create_task(Posting(outbox, send, longest_pause_s=0.1).send_all())
    await asyncio.sleep(0)
    sent[0].set_result({})
    sent[1].set_exception(ReplyError(refusal))
    posting.cancel()
    await asyncio.wait([posting])
    assert [message["data"] for _, message in outbox.first(3)] == [2]
    outbox.close()


async def test_closing_a_client_sends_what_is_in_its_outbox(enter: Enter, tmp_path: Path) -> None:
    outbox, basket, reader = Outbox(tmp_path / "outbox"), Basket(), await enter()
    await reader.subscribe("/outbox/closing", basket)
    writer = await enter(outbox=outbox, close_timeout_s=60.0)
    for number in range(1000):
        await writer.post("/outbox/closing", number)
    await writer.close()
    assert len(outbox) == 0
    assert await basket.data(1000) == [*range(1000)]


async def test_a_refused_message_is_reported_and_the_next_one_is_sent(
    enter: Enter, tmp_path: Path
) -> None:
    told = asyncio.Queue[tuple[Any, ReplyError]]()
    outbox = Outbox(tmp_path / "outbox", on_refused=lambda *each: told.put_nowait(each))
    client, basket = await enter(outbox=outbox), Basket()
    await client.subscribe("/outbox/next", basket)
    await client.post("/outbox/*", "bad")
    await client.post("/outbox/next", "good")
    assert await basket.data(1) == ["good"]
    message, error = await told.get()
    assert (message["channel"], message["data"], error.code) == ("/outbox/*", "bad", 405)


async def test_an_exception_of_on_refused_is_logged_and_the_next_message_is_sent(
    enter: Enter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(message: Any, error: ReplyError) -> None:
        raise ValueError(f"no use for {error.code}")

    outbox, basket = Outbox(tmp_path / "outbox", on_refused=fail), Basket()
    client = await enter(outbox=outbox)
    await client.subscribe("/outbox/next", basket)
    await client.post("/outbox/*", "bad")
    await client.post("/outbox/next", "good")
    assert await basket.data(1) == ["good"]
    await client.close()
    assert len(outbox) == 0
    assert "ValueError: no use for 405" in caplog.text


async def test_a_client_without_an_outbox_cannot_post(enter: Enter) -> None:
    client = await enter()
    with pytest.raises(WrongUse):
        await client.post("/outbox/none", 1)


SCRIPT = """
import sys
from holdfast import Outbox, SyncClient
with SyncClient("http://127.0.0.1:9", outbox=Outbox(sys.argv[1]), connect_timeout_s=0.01) as client:
    for number in range(10):
        client.post("/outbox/killed", number)
    print("posted", flush=True)
    sys.stdin.read()
"""


def test_messages_posted_by_a_killed_program_are_sent_by_the_next_one(
    server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "outbox"
    script = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path)],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert script.stdout is not None
    assert script.stdout.readline() == "posted\n"
    os.kill(script.pid, signal.SIGKILL)
    script.communicate(timeout=20)
    with SyncClient(server.url) as reader:
        subscription = reader.subscribe("/outbox/killed")
        with SyncClient(server.url, session="killed/1", outbox=Outbox(path)) as client:
            arrived = [subscription.next(timeout_s=60).data for _ in range(10)]
            client.close(end=True)
    assert arrived == [*range(10)]
