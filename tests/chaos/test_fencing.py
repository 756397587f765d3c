"""Two servers on one store: only one of them speaks for the sessions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.chaos.processes import Processes
from tests.chaos.stage import Stage
from tests.chaos.talker import Denied, Lost, NotSent, Talker, reply_to

ENDS_WITHIN_S = 60.0
JOE = {"ack": True, "delivery": {"session": "joe/1", "retries": -1}}

pytestmark = pytest.mark.slow


class Scene(Stage):
    """With a receiver and publishers."""

    async def joe(self, server: Processes) -> Talker:
        joe = self.talker(server)
        await joe.handshake(JOE)
        await joe.subscribe("/a")
        return joe

    async def publish(self, server: Processes, tag: str) -> None:
        """Raises `Denied` if it is not taken."""
        publisher = self.talker(server)
        await publisher.handshake({})
        options = {"persistent": True}
        message = {"channel": "/a", "data": {"tag": tag}, "ext": {"delivery": options}}
        reply_to("/a", await publisher.ask(message))


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        yield Scene(tmp_path, stack)


async def heard(joe: Talker, ack: int) -> list[str]:
    message = {"channel": "/meta/connect", "connectionType": "long-polling", "ext": {"ack": ack}}
    found = await joe.ask({**message, "advice": {"timeout": 0}})
    return [each["data"]["tag"] for each in found if "data" in each]


async def test_a_frozen_server_cannot_write_after_another_took_over(stage: Scene) -> None:
    old = await stage.started("old")
    await stage.joe(old)
    await stage.publish(old, "before")
    old.freeze()
    new = await stage.started("new")
    joe = await stage.joe(new)
    await stage.publish(new, "meanwhile")
    assert await heard(joe, 0) == ["before", "meanwhile"]
    old.thaw()
    # It may have ended before it can answer.
    with pytest.raises((Denied, Lost, NotSent)) as told:
        await stage.publish(old, "too late")
    assert not isinstance(told.value, Denied) or told.match("503")
    for _ in range(int(ENDS_WITHIN_S / 0.1)):
        if not old.is_running:
            break
        await asyncio.sleep(0.1)
    assert not old.is_running
    await stage.publish(new, "afterwards")
    assert await heard(joe, 1) == ["afterwards"]
