"""A server that was frozen while another one took over says at most what it was writing."""

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.chaos.marked import MARK, POINTS, after_the_check
from tests.chaos.stage import Stage
from tests.chaos.talker import Denied, Lost, Talker, reply_to
from tests.store.caller import until

JOE = {"ack": True, "delivery": {"session": "joe/1"}}
TAG = MARK.decode()
# One that speaks whether or not it has a lease.
BROKEN = "before_the_check+broken"

pytestmark = pytest.mark.slow


@dataclass
class Said:
    """What both servers said about one message."""

    # The ids of the events that reached the receiver from the frozen server after it was thawed.
    by_old: list[str] = field(default_factory=list)
    # The same from the other one, before.
    by_new: list[str] = field(default_factory=list)
    is_confirmed: bool = False

    def violations(self, *, may_repeat: bool) -> list[str]:
        """What no client may ever hear."""
        found = []
        if self.is_confirmed and not self.by_new:
            found.append("a publish was confirmed that no receiver gets")
        if self.by_old and not may_repeat:
            found.append("a message was handed out after another server took over")
        if not set(self.by_old) <= set(self.by_new):
            found.append("a message came a second time with another id")
        return found


async def events(talker: Talker, ack: int, *, held_ms: int = 20_000) -> list[dict[str, Any]]:
    message = {"channel": "/meta/connect", "connectionType": "long-polling", "ext": {"ack": ack}}
    found = await talker.ask({**message, "advice": {"timeout": held_ms}})
    return [each for each in found if "data" in each]


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [str(each["ext"]["delivery"]["id"]) for each in found if each["data"]["tag"] == TAG]


async def publish(talker: Talker) -> bool:
    """Whether the message was confirmed."""
    options = {"persistent": True}
    message = {"channel": "/a", "data": {"tag": TAG}, "ext": {"delivery": options}}
    try:
        reply_to("/a", await talker.ask(message))
    except (Denied, Lost):
        return False
    return True


async def play(stage: Stage, point: str) -> Said:
    old = await stage.started("old", ("tests.chaos.marked", point))
    joe, ann = stage.talker(old), stage.talker(old)
    await joe.handshake(JOE)
    await joe.subscribe("/a")
    await events(joe, 0, held_ms=0)
    await ann.handshake({})
    held = asyncio.create_task(events(joe, 1))
    publishing = asyncio.create_task(publish(ann))
    await until(lambda: old.is_frozen)
    new = await stage.started("new")
    said, other = Said(), stage.talker(new)
    await other.handshake(JOE)
    said.by_new = ids(await events(other, 0, held_ms=500))
    await events(other, 1, held_ms=0)
    old.thaw()
    said.is_confirmed = await publishing
    with suppress(Lost):
        said.by_old = ids(await held)
    if not point.endswith("broken"):
        await until(lambda: not old.is_running)
    return said


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Said]:
    """What the servers said, frozen at each point. They wait for leases at the same time."""
    points = [*(each.__name__ for each in POINTS), BROKEN]

    async def of(point: str) -> Said:
        async with AsyncExitStack() as stack:
            return await play(Stage(tmp_path_factory.mktemp("thawed"), stack), point)

    async def of_all() -> list[Said]:
        return await asyncio.gather(*map(of, points))

    return dict(zip(points, asyncio.run(of_all()), strict=True))


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.__name__)
def test_a_thawed_server_says_at_most_what_it_was_writing(
    outcomes: dict[str, Said], point: Any
) -> None:
    said = outcomes[point.__name__]
    assert said.violations(may_repeat=point is after_the_check) == []


def test_a_message_that_was_being_written_comes_again_with_its_id(
    outcomes: dict[str, Said],
) -> None:
    said = outcomes[after_the_check.__name__]
    assert said.by_old == said.by_new != []


def test_a_server_that_speaks_without_a_lease_is_found_out(outcomes: dict[str, Said]) -> None:
    assert outcomes[BROKEN].violations(may_repeat=False)
