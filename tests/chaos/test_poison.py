"""Messages that crash receivers or that they cannot take yet: other messages do not suffer."""

import asyncio
from pathlib import Path

import pytest

from tests.chaos.arena import Arena, arena
from tests.chaos.checker import Result
from tests.chaos.history import What, read
from tests.chaos.manners import Manner
from tests.chaos.talker import SocketTalker, Talker

MESSAGES = 100
POISON = f"insistent-{MESSAGES // 2}"
MAX_ATTEMPTS = 4

pytestmark = pytest.mark.slow


async def receive_what_waits(ring: Arena, manner: Manner, by: type[Talker] = Talker) -> Result:
    """One receiver, for whom all messages wait when it first asks."""
    receiver = ring.add_receiver("joe/1", manner, by=by)
    while not receiver.is_subscribed.is_set():
        await receiver.step()
    publisher = ring.add_publisher("insistent", has_keys=True)
    for _ in range(MESSAGES):
        await publisher.publish("/chaos/a", asyncio.Event())
    async with ring.crowd():
        pass
    return await ring.result()


@pytest.mark.parametrize("by", [Talker, SocketTalker])
@pytest.mark.parametrize("acks", [True, False], ids=["acks", "verdicts"])
async def test_only_the_message_that_kills_its_receiver_dies(
    tmp_path: Path, by: type[Talker], acks: bool
) -> None:
    limits = {"/chaos/**": {"max_attempts": MAX_ATTEMPTS}}
    async with arena(tmp_path, seed=1, channels=limits) as ring:
        result = await receive_what_waits(ring, Manner(acks=acks, dies_of=POISON), by)
    assert result.is_valid, result.report()
    counts = (result.delivered, result.processed, result.dead, result.pending)
    assert counts == (MESSAGES, MESSAGES - 1, 1, 0), result.report()
    scan = [each for each in read(ring.history.path) if each.what is What.SCAN][-1]
    (letter,) = scan.fields["dead"]
    assert (letter["tag"], letter["code"]) == (POISON, "user.update.error")
    assert letter["attempts"] == MAX_ATTEMPTS


async def test_a_receiver_that_holds_back_often_does_not_get_everything_each_time(
    tmp_path: Path,
) -> None:
    async with arena(tmp_path, seed=1) as ring:
        result = await receive_what_waits(ring, Manner(holds_back_at=4, held_s=0.05))
    assert result.is_valid, result.report()
    assert result.processed == MESSAGES, result.report()
    # About every fourth is held back once, and what came with it comes again.
    assert result.duplicated < 2 * MESSAGES, result.report()
