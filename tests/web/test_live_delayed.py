"""What operators see of delayed messages, and that the store and the figures agree."""

from typing import Any

from holdfast.delivery.basics.steps import Reason
from tests.web.live_server import LiveServer, refused_with

HOUR = 3_600_000
UNKNOWN = "user.oid.unknown"


async def delay(server: LiveServer, *delays: int, channel: str = "/a", **qos: Any) -> None:
    """Publish messages with these delays; each has its delay as data."""
    client = server.client()
    for each in delays:
        client.publish(channel, each, ext={"delivery": {"delay": each, **qos}})
    await server.store_process.answered()


async def test_delayed_messages_are_listed_in_parts_by_due_time(server: LiveServer) -> None:
    await delay(server, 3 * HOUR, HOUR, 2 * HOUR)
    first = await server.api.delayed.delayed(None, 2)
    assert [each.data for each in first.items] == [HOUR, 2 * HOUR]
    assert first.items[0].due - first.items[0].accepted == HOUR
    assert first.items[0].durable
    rest = await server.api.delayed.delayed(first.cursor, 2)
    assert ([each.data for each in rest.items], rest.cursor) == ([3 * HOUR], None)


async def test_a_delayed_message_is_found_in_its_queue(server: LiveServer) -> None:
    await delay(server, HOUR)
    (waiting,) = (await server.api.delayed.delayed()).items
    trace = await server.api.messages.trace(waiting.id)
    assert [(each.receiver, each.state) for each in trace.queues] == [("delay:/0", "waiting")]


async def test_a_cancelled_message_leaves_the_store_and_is_in_the_audit(
    server: LiveServer,
) -> None:
    await delay(server, HOUR)
    (waiting,) = (await server.api.delayed.delayed()).items
    await server.api.delayed.cancel_delayed(waiting.id, "operator")
    await server.store_process.answered()
    assert server.store_process.bodies() == set()
    assert server.bayeux.state.counters.discarded[Reason.CANCELLED] == 1
    (entry,) = await server.audited()
    assert (entry.action, entry.target, entry.outcome) == ("delayed.cancel", waiting.id, "ok")
    assert entry.detail == {"channel": "/a"}
    with refused_with(UNKNOWN):
        await server.api.delayed.cancel_delayed(waiting.id, "operator")


async def test_the_id_of_another_node_cancels_nothing(server: LiveServer) -> None:
    await delay(server, HOUR)
    (waiting,) = (await server.api.delayed.delayed()).items
    with refused_with(UNKNOWN):
        await server.api.delayed.cancel_delayed(waiting.id.replace("test-", "other-"), "operator")
    assert len((await server.api.delayed.delayed()).items) == 1


async def test_figures_add_up_while_messages_wait_and_when_they_were_delivered(
    server: LiveServer,
) -> None:
    await server.receiver("joe/1")
    await delay(server, 1, HOUR)
    figures = await server.api.system.figures()
    assert (figures.waiting, figures.published, figures.unaccounted) == (2, 0, 0)
    for _ in range(2):
        server.now += 1
        server.bayeux.tick(server.now)
        await server.store_process.answered()
    figures = await server.api.system.figures()
    assert (figures.waiting, figures.published, figures.unaccounted) == (2, 1, 0)
    assert figures.moved == 1
