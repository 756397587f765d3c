"""What operators see of messages that wait for subjects."""

from tests.web.live_house import LiveHouse


async def write(house: LiveHouse, *subjects: str) -> None:
    """Publish a message to these subjects, which have no sessions."""
    for subject in subjects:
        destination = {"name": subject, "forceQueuing": True}
        data = {"destinations": [destination], "content": f"for {subject}"}
        house.client().publish("/service/ptp", data)
        await house.desk.answered()


async def test_subjects_are_listed_with_their_waiting_messages(house: LiveHouse) -> None:
    await write(house, "joe", "ann", "joe")
    first = await house.api.queues.subjects(None, 1)
    assert [(each.subject, each.waiting) for each in first.items] == [("ann", 1)]
    rest = await house.api.queues.subjects(first.cursor, 10)
    assert [(each.subject, each.waiting) for each in rest.items] == [("joe", 2)]
    assert rest.cursor is None
    assert rest.items[0].bytes > 0


async def test_a_message_that_waits_for_a_subject_is_found(house: LiveHouse) -> None:
    await write(house, "joe")
    (entry,) = await house.api.queues.subject_queue("joe")
    assert (entry.data, entry.state, entry.durable) == ("for joe", "waiting", True)
    trace = await house.api.messages.trace(entry.id)
    assert [(queue.receiver, queue.state) for queue in trace.queues] == [("joe/0", "waiting")]


async def test_discarded_messages_of_a_subject_leave_queues_and_store(
    house: LiveHouse,
) -> None:
    await write(house, "joe", "joe")
    assert (await house.api.queues.clear_subject("joe", "operator")).discarded == 2
    await house.desk.answered()
    assert (await house.api.queues.subjects()).items == []
    assert house.desk.bodies() == set()
    assert house.balances()
    assert (await house.audited())[0].action == "subject.clear"
    assert await house.api.queues.subject_queue("joe") == []
    assert (await house.api.queues.clear_subject("joe", "operator")).discarded == 0
