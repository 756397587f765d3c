"""The places of replayed messages in a queue: the same in memory and in the store."""

from collections.abc import AsyncIterator

import pytest

from holdfast.store import replay_run
from holdfast.store.letter_filter import LetterFilter
from holdfast.store.replay_jobs import JobState
from tests.store.desk import desk, until
from tests.store.hall import ALL, FAST, ended
from tests.store.servers import ValkeyServer
from tests.unit.bayeux.harness import Client
from tests.web.live_house import LiveHouse, house_at

REFUSED = "user.update.error"


@pytest.fixture
async def house(
    shared_valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LiveHouse]:
    monkeypatch.setattr(replay_run, "_LOOK_S", 0.01)
    async with house_at(shared_valkey) as house:
        yield house


def _waiting(client: Client) -> list[int]:
    queue = client.session.queue
    return [
        *(entry.message.id for entry in queue.returned.values()),
        *[m.id for m in queue.waiting],
    ]


async def _after_a_restart(house: LiveHouse, key: str = "joe/1") -> list[int]:
    """The queue as the next server would load it if this one was killed."""
    await house.desk.answered()
    async with desk(house.desk.server, is_open=False) as next_:
        return [message.id for _, message in (await next_.loaded())[key].entries]


async def _replayed(house: LiveHouse, client: Client, count: int) -> None:
    """Replay all letters, and wait until they are in the queue."""
    before = client.session.queue.count
    await house.replays.start(ALL, FAST, "operator")
    await until(lambda: client.session.queue.count == before + count)


async def test_replayed_messages_wait_ahead_of_later_ones(
    house: LiveHouse,
) -> None:
    client = await house.receiver()
    await house.publish(1, 2)
    old = _waiting(client)
    await house.refuse(client, REFUSED)
    await house.publish(3, 4)
    new = _waiting(client)
    await _replayed(house, client, 2)
    assert _waiting(client) == [*old, *new]
    assert await _after_a_restart(house) == [*old, *new]


async def test_returned_entries_stay_ahead_of_replayed_ones(house: LiveHouse) -> None:
    client = await house.receiver(retries=-1)
    await house.publish(1)
    await house.refuse(client, REFUSED)
    await house.publish(2, 3)
    await house.connect(client)
    house.bayeux.life.hand_overs.change_hands(client.session, house.now)
    await house.publish(4)
    await _replayed(house, client, 1)
    places = _waiting(client)
    assert len(places) == 4
    assert places.index(min(places)) == 2
    assert await _after_a_restart(house) == places


async def test_replayed_messages_wait_by_priority_and_age(house: LiveHouse) -> None:
    client = await house.receiver()
    sender = house.connected()
    for data, priority in (1, 5), (2, 9), (3, 1):
        sender.publish("/a", data, ext={"delivery": {"priority": priority}})
    await house.desk.answered()
    await house.refuse(client, REFUSED)
    for data, priority in (4, 5), (5, 9), (6, 1):
        sender.publish("/a", data, ext={"delivery": {"priority": priority}})
    await house.desk.answered()
    await _replayed(house, client, 3)
    events = (await house.connect(client)).events
    assert [event["data"] for event in events] == [2, 5, 1, 4, 3, 6]


async def test_hundreds_of_letters_are_replayed_to_a_client_in_the_order_of_publication(
    house: LiveHouse,
) -> None:
    client = await house.receiver()
    await house.publish(*range(300))
    events = (await house.connect(client)).events
    seqs = {event["data"]: event["ext"]["delivery"]["seq"] for event in events}
    for part in range(200, 300), range(100), range(100, 200):
        verdicts = [{"seq": seqs[n], "errorCode": REFUSED} for n in reversed(part)]
        client.publish("/service/delivery", verdicts)
        await house.desk.answered()
    assert client.session.queue.count == 0
    job = await house.replays.start(LetterFilter(channel="/a"), FAST, "operator")
    await until(lambda: client.session.queue.count == 300)
    assert _waiting(client) == await _after_a_restart(house)
    events = (await house.connect(client)).events
    assert [event["data"] for event in events] == [*range(300)]
    await house.connect(client)
    assert await ended(job) is JobState.DONE
    assert (job.sent, job.acked) == (300, 300)
