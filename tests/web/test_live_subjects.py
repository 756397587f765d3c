"""What operators see of messages that wait for subjects."""

from tests.web.live_server import LiveServer


async def write(server: LiveServer, *subjects: str) -> None:
    """Publish a message to these subjects, which have no sessions."""
    for subject in subjects:
        destination = {"name": subject, "forceQueuing": True}
        data = {"destinations": [destination], "content": f"for {subject}"}
        server.client().publish("/service/ptp", data)
        await server.store_process.answered()


async def test_subjects_are_listed_with_their_waiting_messages(server: LiveServer) -> None:
    await write(server, "joe", "ann", "joe")
    first = await server.api.queues.subjects(None, 1)
    assert [(each.subject, each.waiting) for each in first.items] == [("ann", 1)]
    rest = await server.api.queues.subjects(first.cursor, 10)
    assert [(each.subject, each.waiting) for each in rest.items] == [("joe", 2)]
    assert rest.cursor is None
    assert rest.items[0].bytes > 0


async def test_a_message_that_waits_for_a_subject_is_found(server: LiveServer) -> None:
    await write(server, "joe")
    (entry,) = await server.api.queues.subject_queue("joe")
    assert (entry.data, entry.state, entry.durable) == ("for joe", "waiting", True)
    trace = await server.api.messages.trace(entry.id)
    assert [(queue.receiver, queue.state) for queue in trace.queues] == [("joe/0", "waiting")]


async def test_a_message_that_waits_for_a_subject_can_be_the_oldest(server: LiveServer) -> None:
    assert (await server.api.system.figures()).oldest_ms is None
    await write(server, "joe")
    server.now += 2
    assert (await server.api.system.figures()).oldest_ms is not None


async def test_figures_add_up_when_messages_have_moved_to_a_session(server: LiveServer) -> None:
    await write(server, "joe", "joe")
    await server.receiver("joe/1")
    await server.store_process.answered()
    figures = await server.api.system.figures()
    assert figures.moved == 2
    parts = figures.acked + figures.waiting + figures.in_flight + figures.dead
    parts += figures.expired + figures.discarded + figures.moved
    assert figures.accepted + figures.restored == parts
    assert figures.unaccounted == 0


async def test_discarded_messages_of_a_subject_leave_queues_and_store(
    server: LiveServer,
) -> None:
    await write(server, "joe", "joe")
    assert (await server.api.queues.clear_subject("joe", "operator")).discarded == 2
    await server.store_process.answered()
    assert (await server.api.queues.subjects()).items == []
    assert server.store_process.bodies() == set()
    assert server.balances()
    assert (await server.audited())[0].action == "subject.clear"
    assert await server.api.queues.subject_queue("joe") == []
    assert (await server.api.queues.clear_subject("joe", "operator")).discarded == 0
