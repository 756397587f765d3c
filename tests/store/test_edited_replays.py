"""Edited replays: a letter goes out as a new message with other data, and stays as it is."""

import orjson
import pytest

from holdfast.delivery.letters.dead import LetterState
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.replays import run as replay_run
from holdfast.store.replays.job_records import EDITED, JobState, Sent
from holdfast.store.replays.parameters import Edit, ReplayOptions
from tests.store.hall import Scene, ended, prepare, resumed, stage
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, letter, message

BROKEN = LetterFilter(ids=(str(BASE + 11),))
MENDED = ReplayOptions(rate=10_000, canary=0, edit=Edit(data={"order": [1, None]}))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_run, "_COUNT_S", 0.01)


async def test_an_edited_replay_sends_a_new_message_and_leaves_the_letters_data_unchanged(
    scene: Scene,
) -> None:
    at, hall, jobs = scene
    await prepare(at, letter(11, of=1))
    # Another session waits for the message that the receiver could not process.
    at.keep(message(1), "ann/1")
    job = await jobs.start(BROKEN, MENDED, "operator")
    assert await ended(job) is JobState.DONE
    (sent,) = hall.messages
    assert (sent.id, sent.generation) == (int(job.id), 1)
    assert sent.properties == {EDITED: str(BASE + 11)}
    assert orjson.loads(sent.wire) == {"channel": "/orders/new", "data": {"order": [1, None]}}
    kept = await at.letters.search.get(str(BASE + 11))
    assert kept is not None
    assert (kept.wire, kept.message, kept.job) == (letter(11, of=1).wire, BASE + 1, job.id)
    assert kept.state is LetterState.REPLAYED
    assert (await at.loaded())["ann/1"].entries[0][1].wire == message(1).wire
    assert (job.sent, job.acked, job.failed) == (1, 1, 0)


async def test_a_letter_can_be_edited_only_once(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(at, letter(11, of=1))
    await ended(await jobs.start(BROKEN, MENDED, "operator"))
    again = await jobs.start(BROKEN, MENDED, "operator")
    await ended(again)
    assert (len(hall.messages), again.skipped) == (1, {"replayed": 1})


async def test_an_edit_with_a_filter_for_many_letters_is_refused(scene: Scene) -> None:
    _, _, jobs = scene
    with pytest.raises(ValueError, match="only one letter"):
        await jobs.start(LetterFilter(), MENDED, "operator")


async def test_an_edited_message_survives_a_restart_with_its_data_and_properties(
    shared_valkey: ValkeyServer,
) -> None:
    async with stage(shared_valkey) as (at, hall, jobs):
        hall.is_acking = False
        await prepare(at, letter(11, of=1))
        job = await jobs.start(BROKEN, MENDED, "operator")
        while not hall.messages:
            await at.answered()
        [sent] = hall.messages
    async with stage(shared_valkey) as (at, hall, jobs):
        hall.is_acking = False
        again = await resumed(hall, jobs, job.id)
        assert hall.unsettled == {Sent("joe/1", int(job.id))}
        [(_, loaded)] = (await at.loaded())["joe/1"].entries
        assert (loaded.wire, loaded.properties) == (sent.wire, sent.properties)
        hall.is_acking = True
        assert await ended(again) is JobState.DONE
        assert (again.sent, again.acked, hall.delivered) == (1, 1, [])


async def test_the_audit_says_who_edited_which_letter(scene: Scene) -> None:
    at, _, jobs = scene
    await prepare(at, letter(11, of=1))
    await ended(await jobs.start(BROKEN, MENDED, "operator/ann"))
    await at.answered_line()
    *_, begun = (await at.audit.read(None, 10))[0]
    assert (begun.who, begun.action) == ("operator/ann", "replay.start")
    assert begun.detail == {"edited": str(BASE + 11), "bytes": 18}
