"""The places of replayed messages in a queue: the same in memory and in the store."""

from collections.abc import AsyncIterator

import pytest

from holdfast.store.letters.filter import LetterFilter
from holdfast.store.replays import run as replay_run
from holdfast.store.replays.job_records import JobState
from tests.store.hall import ALL, FAST, ended
from tests.store.servers import ValkeyServer
from tests.store.store_process import store_process, until
from tests.unit.bayeux.harness import Client
from tests.web.live_server import LiveServer, server_at

REFUSED = "user.update.error"


@pytest.fixture
async def server(
    shared_valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LiveServer]:
    monkeypatch.setattr(replay_run, "_COUNT_S", 0.01)
    async with server_at(shared_valkey) as server:
        yield server


def _waiting(client: Client) -> list[int]:
    queue = client.session.queue
    return [
        *(entry.message.id for entry in queue.returned.values()),
        *[m.id for m in queue.new],
    ]


async def _after_a_restart(server: LiveServer, key: str = "joe/1") -> list[int]:
    """The queue as the next server would load it if this one was killed."""
    await server.store_process.answered()
    async with store_process(server.store_process.server, is_open=False) as next_:
        return [message.id for _, message in (await next_.loaded())[key].entries]


async def _replayed(server: LiveServer, client: Client, count: int) -> None:
    """Replay all letters, and wait until they are in the queue."""
    before = client.session.queue.count
    await server.replays.start(ALL, FAST, "operator")
    await until(lambda: client.session.queue.count == before + count)


async def test_replayed_messages_wait_ahead_of_later_ones(
    server: LiveServer,
) -> None:
    client = await server.receiver()
    await server.publish(1, 2)
    old = _waiting(client)
    await server.refuse(client, REFUSED)
    await server.publish(3, 4)
    new = _waiting(client)
    await _replayed(server, client, 2)
    assert _waiting(client) == [*old, *new]
    assert await _after_a_restart(server) == [*old, *new]


async def test_returned_entries_stay_ahead_of_replayed_ones(server: LiveServer) -> None:
    client = await server.receiver(retries=-1)
    await server.publish(1)
    await server.refuse(client, REFUSED)
    await server.publish(2, 3)
    await server.connect(client)
    server.bayeux.life.hand_overs.return_for_takeover(client.session, server.now)
    await server.publish(4)
    await _replayed(server, client, 1)
    places = _waiting(client)
    assert len(places) == 4
    assert places.index(min(places)) == 2
    assert await _after_a_restart(server) == places


async def test_replayed_messages_wait_by_priority_and_age(server: LiveServer) -> None:
    client = await server.receiver()
    sender = server.connected()
    for data, priority in (1, 5), (2, 9), (3, 1):
        sender.publish("/a", data, ext={"delivery": {"priority": priority}})
    await server.store_process.answered()
    await server.refuse(client, REFUSED)
    for data, priority in (4, 5), (5, 9), (6, 1):
        sender.publish("/a", data, ext={"delivery": {"priority": priority}})
    await server.store_process.answered()
    await _replayed(server, client, 3)
    events = (await server.connect(client)).events
    assert [event["data"] for event in events] == [2, 5, 1, 4, 3, 6]


async def test_hundreds_of_letters_are_replayed_to_a_client_in_the_order_of_publication(
    server: LiveServer,
) -> None:
    client = await server.receiver()
    await server.publish(*range(300))
    events = (await server.connect(client)).events
    seqs = {event["data"]: event["ext"]["delivery"]["seq"] for event in events}
    for part in range(200, 300), range(100), range(100, 200):
        verdicts = [{"seq": seqs[n], "errorCode": REFUSED} for n in reversed(part)]
        client.publish("/service/delivery", verdicts)
        await server.store_process.answered()
    assert client.session.queue.count == 0
    job = await server.replays.start(LetterFilter(channel="/a"), FAST, "operator")
    await until(lambda: client.session.queue.count == 300)
    assert _waiting(client) == await _after_a_restart(server)
    events = (await server.connect(client)).events
    assert [event["data"] for event in events] == [*range(300)]
    await server.connect(client)
    assert await ended(job) is JobState.DONE
    assert (job.sent, job.acked) == (300, 300)
