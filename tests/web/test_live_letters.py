"""The administration of a running server, with its store on a real Valkey: letters, replays."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import pytest

from holdfast.delivery.letters.dead import LetterState
from holdfast.store.format.operator_input import GroupedBy
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.replays.job_records import JobState
from holdfast.store.replays.parameters import Edit, ReplayOptions
from holdfast.web.admin.faults import RequestFailed
from holdfast.web.admin.letter_views import Replay
from tests.store.store_process import until
from tests.web.live_server import LETTER_AGE_MS, LiveServer, refused_with

ALL = LetterFilter()
REFUSED = "user.update.error"
CAREFUL = ReplayOptions(rate=1000, canary=1)


# Dead letters


async def test_a_dead_letter_shows_everything_about_its_message(server: LiveServer) -> None:
    client = await server.receiver()
    sender = server.connected()
    options = {
        "priority": 7,
        "properties": {"color": "red"},
        "expiration": {"lifeTime": 60_000},
    }
    sender.publish("/a", {"n": 1}, ext={"delivery": options})
    await server.store_process.answered()
    await server.refuse(client, REFUSED, "broken")
    (letter,) = await server.dead()
    assert (letter.channel, letter.receiver, letter.subject) == ("/a", "joe/1", "joe")
    assert (letter.sender, letter.code, letter.state) == (
        sender.session.name,
        REFUSED,
        LetterState.NEW,
    )
    assert "broken" in letter.reason
    assert (letter.data, letter.properties, letter.priority) == ({"n": 1}, {"color": "red"}, 7)
    assert letter.expiration == {"lifeTime": 60_000, "forceDestroy": False}
    assert (letter.generation, letter.replays, letter.attempts) == (0, 0, 1)
    (attempt,) = letter.history
    assert (attempt.n, attempt.node, attempt.transport) == (1, "here", "long-polling")
    assert attempt.outcome == REFUSED
    assert letter.published <= letter.died == letter.expires - LETTER_AGE_MS
    assert letter.message.startswith(f"test-{letter.published}")


async def test_letters_are_listed_in_pages_from_the_newest_on(server: LiveServer) -> None:
    await server.killed(1, 2, 3)
    page = await server.api.letters.letters(ALL, None, 2)
    rest = await server.api.letters.letters(ALL, page.cursor, 2)
    found = [item.id for item in page.items + rest.items]
    assert found == sorted(found, reverse=True)
    assert len(found) == 3
    assert [item.id for item in (await server.api.letters.letters(ALL, None, 9)).items] == found


async def test_lists_of_letters_have_a_part_of_the_fields_of_letters(server: LiveServer) -> None:
    await server.killed(1)
    (summary,) = (await server.api.letters.letters(ALL, None, 1)).items
    (letter,) = await server.dead()
    names = summary.__dataclass_fields__
    assert [getattr(letter, name) for name in names] == [getattr(summary, name) for name in names]


async def test_letters_are_filtered_by_receiver_subject_and_state(server: LiveServer) -> None:
    await server.killed(1, key="joe/1")
    await server.killed(2, key="ann/1")

    async def data(**conditions: Any) -> list[Any]:
        page = await server.api.letters.letters(LetterFilter(**conditions), None, 10)
        return [(await server.api.letters.letter(item.id)).data for item in page.items]

    assert await data(receiver="joe/1") == [1]
    assert await data(subject="ann", state=LetterState.NEW) == [2]
    assert await data(state=LetterState.REPLAYED) == []
    assert await data(channel="/a", until=0) == []


async def test_letters_with_the_same_fingerprint_form_a_group(server: LiveServer) -> None:
    await server.killed(1, 2, key="joe/1")
    await server.killed(3, key="ann/1")
    groups = await server.api.letters.groups(None, None, 10)
    (group,) = groups.items
    assert (group.count, group.receivers, group.channel, groups.total) == (3, 2, "/a", 3)
    assert group.sample == (await server.dead())[0].id


async def test_letters_of_several_channels_form_a_group_by_their_code(server: LiveServer) -> None:
    await server.killed(1, key="joe/1")
    groups = await server.api.letters.groups(None, None, 10, by=GroupedBy.CODE)
    (group,) = groups.items
    assert (group.count, group.channel, group.fingerprint, group.remark) == (1, "/**", None, None)
    with pytest.raises(RequestFailed, match="by cause"):
        await server.api.letters.groups("f1", None, 10, by=GroupedBy.CODE)


async def test_groups_are_listed_in_pages(server: LiveServer) -> None:
    # In this order of their size.
    for channel, count in (("/a", 3), ("/b", 2), ("/c", 1)):
        client = await server.receiver()
        client.subscribe(channel)
        for n in range(count):
            server.for_extensions.publish(channel, n)
        await server.store_process.answered()
        await server.api.sessions.end_session("joe/1", "operator")
        await server.store_process.answered()
    found, cursor = [], None
    for _ in range(3):
        part = await server.api.letters.groups(None, cursor, 1)
        found += [(each.channel, each.count) for each in part.items]
        cursor = part.cursor
    assert (found, cursor) == ([("/a", 3), ("/b", 2), ("/c", 1)], None)
    with refused_with("user.illegalArgument"):
        await server.api.letters.groups(None, "-1", 1)


async def test_operators_write_a_remark_about_a_group(server: LiveServer) -> None:
    await server.killed(1)
    [group] = (await server.api.letters.groups(None, None, 10)).items
    assert group.fingerprint is not None
    assert group.remark is None
    said = await server.api.letters.remark(
        group.fingerprint, "ann", "known since May", who="operator/joe"
    )
    assert (said.assignee, said.note, said.who) == ("ann", "known since May", "operator/joe")
    [group] = (await server.api.letters.groups(group.fingerprint, None, 10)).items
    assert group.remark == said
    with refused_with("user.oid.unknown"):
        await server.api.letters.remark("nobody", "ann", "", who="operator")
    refused, entry = (await server.audited())[:2]
    assert (refused.action, refused.outcome) == ("dead.remark", "user.oid.unknown")
    assert (entry.target, entry.detail["assignee"]) == (group.fingerprint, "ann")


async def test_a_purge_first_says_what_it_would_remove(server: LiveServer) -> None:
    await server.killed(1, 2, key="joe/1")
    await server.killed(3, key="ann/1")
    which = LetterFilter(subject="joe")
    planned = await server.api.letters.purge(which, dry_run=True, who="operator")
    assert (planned.matched, planned.purged, planned.dry_run) == (2, 0, True)
    done = await server.api.letters.purge(which, dry_run=False, who="operator")
    assert (done.matched, done.purged, done.dry_run) == (2, 2, False)
    assert [letter.data for letter in await server.dead()] == [3]
    entry = (await server.audited())[0]
    assert (entry.action, entry.detail) == (
        "dead.purge",
        {"filter": {"subject": "joe"}, "purged": 2},
    )


async def test_exported_letters_can_be_imported(server: LiveServer) -> None:
    await server.killed(1, 2)
    lines = [line async for line in server.api.letters.export(ALL, "operator")]
    before = await server.dead()
    await server.api.letters.purge(ALL, all=True, dry_run=False, who="operator")
    done = await server.api.letters.import_(_lines([*lines, b"nonsense"]), "operator")
    assert (done.imported, done.repeated, done.refused) == (2, 0, 1)
    assert done.refusals[0].line == 3
    assert await server.dead() == before
    done = await server.api.letters.import_(_lines(lines), "operator")
    assert (done.imported, done.repeated) == (0, 2)
    actions = [entry.action for entry in await server.audited()]
    assert actions[:4] == ["dead.import", "dead.import", "dead.purge", "dead.export"]


async def test_an_export_that_breaks_off_is_audited(server: LiveServer) -> None:
    await server.killed(1, 2)
    lines = server.api.letters.export(ALL, "operator")
    assert isinstance(lines, AsyncGenerator)
    assert await anext(lines)
    await lines.aclose()
    entry = (await server.audited())[0]
    assert (entry.action, entry.outcome) == ("dead.export", "internal.interrupted")


async def _lines(lines: Sequence[bytes]) -> AsyncIterator[bytes]:
    for line in lines:
        yield line


# Replays


async def replayed(server: LiveServer, options: ReplayOptions = CAREFUL) -> str:
    """A replay of everything, begun; its id."""
    job = await server.api.letters.replay_start(
        ALL, options, all=True, dry_run=False, who="operator"
    )
    assert job.id is not None
    return job.id


async def in_state(server: LiveServer, id: str, state: JobState) -> Replay:
    async with asyncio.timeout(60):
        while True:
            job = await server.api.letters.replay(id)
            if job.state is state:
                return job
            await asyncio.sleep(0.02)


async def test_replayed_letters_are_delivered_again_and_acknowledged(server: LiveServer) -> None:
    await server.killed(1, 2)
    client = await server.receiver()
    plan = await server.api.letters.replay_start(
        ALL, CAREFUL, all=True, dry_run=True, who="operator"
    )
    assert (plan.id, plan.state, plan.total, plan.receivers) == (
        None,
        JobState.PLANNED,
        2,
        {"joe/1": 2},
    )
    id = await replayed(server)
    await until(lambda: client.session.queue.count == 1)
    await in_state(server, id, JobState.CANARY)
    (event,) = (await server.connect(client)).events
    assert (event["data"], event["ext"]["delivery"]["generation"]) == (1, 1)
    letter = (await server.dead())[-1]
    assert event["ext"]["delivery"]["id"] == letter.message, "it is the message of before"
    await server.connect(client)
    await until(lambda: client.session.queue.count == 1)
    assert (await server.connect(client)).data == [2]
    await server.connect(client)
    job = await in_state(server, id, JobState.DONE)
    assert (job.total, job.sent, job.acked, job.died_again, job.skipped) == (2, 2, 2, 0, 0)
    assert {letter.state for letter in await server.dead()} == {LetterState.REPLAYED}
    assert server.store_process.queue("joe/1") == {}
    assert [each.id for each in await server.api.letters.replays()] == [id]
    assert server.balances()


async def test_letters_can_be_replayed_to_another_session(server: LiveServer) -> None:
    await server.killed(1, 2)
    client = await server.receiver("ann/1")
    options = ReplayOptions(rate=1000, canary=0, to="ann/1")
    id = await replayed(server, options)
    await until(lambda: client.session.queue.count == 2)
    assert [event["data"] for event in (await server.connect(client)).events] == [1, 2]
    await server.connect(client)
    job = await in_state(server, id, JobState.DONE)
    assert (job.options["to"], job.acked, job.receivers) == ("ann/1", 2, {"joe/1": 2})


async def test_an_edited_letter_that_fails_again_names_its_origin(
    server: LiveServer,
) -> None:
    await server.killed({"n": "one"})
    [letter] = await server.dead()
    client = await server.receiver()
    options = ReplayOptions(rate=1000, canary=1, edit=Edit(data={"n": 1}))
    which = LetterFilter(ids=(letter.id,))
    job = await server.api.letters.replay_start(which, options, dry_run=False, who="operator")
    id = str(job.id)
    await until(lambda: client.session.queue.count == 1)
    await server.refuse(client, REFUSED)
    job = await in_state(server, id, JobState.STOPPED)
    assert job.options["edit"] == {"data": {"n": 1}}
    latest, original = await server.dead()
    assert (latest.data, latest.message) == ({"n": 1}, f"test-{id}")
    assert latest.properties == {"__deadMessageId": letter.id}
    assert (original.data, original.state, original.replay) == (
        {"n": "one"},
        LetterState.REPLAYED,
        id,
    )
    assert server.balances()


async def test_a_replay_that_fails_again_stops(server: LiveServer) -> None:
    await server.killed(1, 2, 3)
    client = await server.receiver()
    id = await replayed(server)
    await until(lambda: client.session.queue.count == 1)
    await server.refuse(client, REFUSED)
    job = await in_state(server, id, JobState.STOPPED)
    assert (job.sent, job.died_again, job.reason) == (1, 1, "1 of 1 died again")
    latest = (await server.dead())[0]
    assert (latest.data, latest.generation, latest.state) == (1, 1, LetterState.NEW)
    with refused_with("user.wrongApiUsage"):
        await server.api.letters.replay_cancel(id, "operator")


async def test_a_replay_can_be_cancelled(server: LiveServer) -> None:
    await server.killed(1, 2, 3)
    client = await server.receiver()
    id = await replayed(server)
    await until(lambda: client.session.queue.count == 1)
    job = await server.api.letters.replay_cancel(id, "operator/ann")
    assert (job.state, job.sent) == (JobState.CANCELLED, 1)
    assert client.session.queue.count == 1, "what was sent stays sent"
    actions = [entry.action for entry in await server.audited()]
    assert "replay.cancel" in actions
    assert "replay.start" in actions


async def test_letters_of_an_unnamed_session_can_be_replayed_while_it_exists(
    server: LiveServer,
) -> None:
    client = await server.receiver(None)
    await server.publish(1)
    await server.refuse(client, REFUSED)
    id = await replayed(server)
    await until(lambda: client.session.queue.count == 1)
    assert (await server.connect(client)).data == [1]
    await server.connect(client)
    assert (await in_state(server, id, JobState.DONE)).acked == 1


async def test_a_replay_skips_letters_whose_receiver_is_gone(server: LiveServer) -> None:
    await server.killed(1, 2)
    job = await in_state(server, await replayed(server), JobState.DONE)
    assert (job.sent, job.skipped, job.skips) == (0, 2, {"receiver": 2})
    assert {letter.state for letter in await server.dead()} == {LetterState.NEW}


async def test_a_replay_starts_even_if_its_caller_is_gone(server: LiveServer) -> None:
    await server.killed(1)
    client = await server.receiver()
    start = server.api.letters.replay_start(ALL, CAREFUL, all=True, dry_run=False, who="operator")
    asking = asyncio.create_task(start)
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await until(lambda: client.session.queue.count == 1)
