"""A refusal that was answered stays in effect, whichever process is killed after the answer."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.processes import Processes
from tests.chaos.talker import Message, Talker

JOE = {"ack": True, "delivery": {"session": "joe/1", "retries": -1, "delay": 100}}
# A server that does not wait for its store has long answered by then.
SILENT_S = 0.5

pytestmark = pytest.mark.slow


async def connect(joe: Talker, ack: int, **delivery: Any) -> tuple[list[Message], int]:
    """The events in the answer to a connect that is not held, and the number of its batch."""
    *events, reply = await joe.ask(
        {
            "channel": "/meta/connect",
            "connectionType": joe.connection_type,
            "advice": {"timeout": 0},
            "ext": {"ack": ack, "delivery": delivery},
        }
    )
    assert reply["successful"], reply
    return events, reply["ext"]["ack"]


async def test_a_refused_message_that_stays_survives_all_deaths(tmp_path: Path) -> None:
    server = Processes(tmp_path, {"durability": "always"})
    joe: Talker | None = None
    try:
        await server.start()
        joe = Talker(server.url, timeout_s=30.0)
        await joe.handshake(JOE)
        await joe.subscribe("/a")
        _, batch = await connect(joe, 0)
        await joe.ask({"channel": "/a", "data": 1})
        (event,), batch = await connect(joe, batch)
        refusal = {
            "seq": event["ext"]["delivery"]["seq"],
            "errorCode": "communication.noConnection",
        }
        # Let the server have no chance to tell the store in time.
        server.signal_store(signal.SIGSTOP)
        asked = asyncio.create_task(connect(joe, batch, verdicts=[refusal]))
        await asyncio.sleep(SILENT_S)
        assert not asked.done(), "confirmed, and the store knows nothing of it"
        server.signal_store(signal.SIGCONT)
        _, batch = await asked
        server.signal_store(signal.SIGKILL)
        await server.kill()
        await server.start()
        joe.move(server.url)
        again: list[Message] = []
        while not again:
            again, batch = await connect(joe, batch)
        assert again[0]["data"] == 1
        assert again[0]["ext"]["delivery"]["redelivered"] >= 1
    finally:
        if joe is not None:
            await joe.close()
        await server.close()
