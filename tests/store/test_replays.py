"""Replays: in order, a canary first, stopped after too many failures, and never twice."""

import asyncio
import time

import pytest

from holdfast.delivery.letters.dead import LetterState
from holdfast.delivery.messages.message import Message
from holdfast.delivery.shared_queues.work import is_work
from holdfast.store.format.records import unpack_message
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.reader import Reader
from holdfast.store.replays import control
from holdfast.store.replays import run as replay_run
from holdfast.store.replays.control import JobNotRunning, Replays
from holdfast.store.replays.job_records import JobState, Sent
from holdfast.store.replays.parameters import ReplayOptions
from holdfast.store.store import Store
from tests.store.hall import ALL, FAST, Scene, ended, prepare, stage
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, KEYS, ids, letter, until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_run, "_COUNT_S", 0.01)
    monkeypatch.setattr(replay_run, "_AWAY_S", 0.05)


async def test_a_replay_delivers_letters_as_messages_of_the_next_generation(scene: Scene) -> None:
    at, hall, jobs = scene
    hall.is_acking = False
    await prepare(at, letter(11, of=1), letter(12, of=2, receiver="ann/1"), letter(13, of=3))
    job = await jobs.start(ALL, FAST, "operator")
    await until(lambda: len(hall.delivered) == 3)
    assert hall.delivered == [("joe/1", 1), ("ann/1", 2), ("joe/1", 3)]
    assert at.queue("joe/1") == {1: "g1", 3: "g1"}
    assert [message.generation for message in hall.messages] == [1, 1, 1]
    assert hall.messages[0].wire == letter(11, of=1).wire
    hall.is_acking = True
    assert await ended(job) is JobState.DONE
    assert (job.total, job.sent, job.acked, job.failed) == (3, 3, 3, 0)
    assert (job.channels, job.receivers) == ({"/orders/new": 3}, {"joe/1": 2, "ann/1": 1})
    await at.answered()
    assert at.queue("joe/1") == {}


async def test_a_letter_of_a_work_queue_returns_to_it(scene: Scene) -> None:
    at, hall, jobs = scene
    hall.is_acking = False
    hall.durable["work:/jobs/a/0"] = True
    await prepare(at, letter(11, of=1, receiver="work:/jobs/a/0"))
    job = await jobs.start(ALL, FAST, "operator")
    await until(lambda: len(hall.delivered) == 1)
    assert at.queue("work:/jobs/a/0") == {1: "g1"}
    # Also behind a restart, a receiver that refuses it leaves it to others.
    [record] = at.server.ask("HVALS", KEYS.bodies)
    assert is_work(unpack_message(BASE + 1, record))
    assert is_work(hall.messages[0])
    hall.is_acking = True
    assert await ended(job) is JobState.DONE
    assert (job.total, job.sent, job.acked, job.skipped) == (1, 1, 1, {})


@pytest.mark.parametrize("ahead_s", [-1_000, 1_000])
async def test_another_shard_gives_the_id_of_a_replay_whatever_its_clock(
    scene: Scene, ahead_s: int
) -> None:
    at, hall, _ = scene
    given = str(int(at.new_id()) + ahead_s * 10**9)
    jobs = Replays(
        *(at.store, at.letters, at.reader),
        receivers=hall,
        audit=at.audit,
        new_id=at.new_id,
        given_id=lambda: given,
    )
    hall.refused = {2}
    first, second = (int(at.new_id()) - BASE for _ in range(2))
    await prepare(at, letter(first, of=1), letter(second, of=2))
    options = ReplayOptions(rate=10_000, canary=0, stop_at=1)
    job = await jobs.start(ALL, options, "operator")
    assert await ended(job) is JobState.DONE
    assert job.id == given
    assert (job.total, job.sent, job.acked, job.failed) == (2, 2, 1, 1)
    assert job.finished is not None
    # By the clock of this shard, and not of the other one.
    assert abs(job.finished - int(at.new_id()) // 10**6) < 100_000
    await at.answered()
    stored = await jobs.get(given)
    assert stored is not None
    assert stored.until == job.until
    await jobs.close()


async def test_a_replay_sends_messages_in_the_order_of_first_publication(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(at, letter(11, of=5), letter(12, of=3), letter(13, of=4), letter(14, of=1))
    assert await ended(await jobs.start(ALL, FAST, "operator")) is JobState.DONE
    assert [n for _, n in hall.delivered] == [1, 3, 4, 5]


async def test_only_the_selected_letters_are_replayed(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(at, letter(11, of=1), letter(12, of=2, channel="/b"), letter(13, of=3))
    job = await jobs.start(LetterFilter(channel="/b"), FAST, "operator")
    assert await ended(job) is JobState.DONE
    assert hall.delivered == [("joe/1", 2)]
    states = [each.state for each in (await at.letters.search.query(ALL, None, 9)).letters]
    assert states == [LetterState.NEW, LetterState.REPLAYED, LetterState.NEW]


async def test_letters_that_cannot_be_replayed_are_skipped_with_the_reason(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(
        at,
        letter(11, of=1),
        letter(12, of=2, receiver="eve/1"),
        letter(13, of=3, generation=3),
        letter(14, of=4),
    )
    at.keep(hall_message := letter_message(4), "joe/1")
    await at.answered()
    plan = await jobs.plan(ALL, FAST, "operator")
    assert (plan.state, plan.total) == (JobState.PLANNED, 4)
    assert plan.skipped == {"receiver": 1, "generation": 1}
    assert (hall.delivered, await jobs.latest()) == ([], [])
    job = await jobs.start(ALL, FAST, "operator")
    assert await ended(job) is JobState.DONE
    assert hall.delivered == [("joe/1", 1)]
    assert job.skipped == {"receiver": 1, "generation": 1, "waiting": 1}
    assert hall_message.id == BASE + 4


async def test_a_plan_counts_what_receivers_would_get_when_they_come_back(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(
        at,
        letter(11, of=1),
        letter(12, of=2, receiver="ann/1"),
        letter(13, of=3, receiver="ann/1"),
        letter(14, of=4, receiver="ann/1", generation=3),
    )
    hall.away = {"ann/1"}
    assert (await jobs.plan(ALL, FAST, "operator")).away == {"ann/1": 2}
    to_joe = FAST.model_copy(update={"to": "joe/1"})
    assert (await jobs.plan(ALL, to_joe, "operator")).away == {}


def letter_message(n: int) -> Message:
    return Message(letter(n).wire, id=BASE + n, channel="/orders/new")


async def test_a_letter_is_replayed_once(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(at, letter(11, of=1))
    assert await ended(await jobs.start(ALL, FAST, "operator")) is JobState.DONE
    job = await jobs.start(ALL, FAST, "operator")
    assert await ended(job) is JobState.DONE
    assert hall.delivered == [("joe/1", 1)]
    assert job.skipped == {"replayed": 1}


async def test_letters_of_a_passing_session_are_replayed_and_not_stored(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(at, letter(11, of=1, receiver="joe/-5"))
    assert await ended(await jobs.start(ALL, FAST, "operator")) is JobState.DONE
    assert hall.delivered == [("joe/-5", 1)]
    assert (hall.messages[0].is_durable, at.bodies()) == (False, set())


async def test_a_replay_may_go_to_another_session(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(at, letter(11, of=1), letter(12, of=2, receiver="eve/1"))
    options = ReplayOptions(rate=10_000, canary=0, to="ann/1")
    assert await ended(await jobs.start(ALL, options, "operator")) is JobState.DONE
    assert hall.delivered == [("ann/1", 1), ("ann/1", 2)]
    assert hall.letters == [11, 12]


async def test_another_session_gets_a_message_with_several_letters_once(
    scene: Scene,
) -> None:
    at, hall, jobs = scene
    letters = [
        letter(11 + 3 * n + at_, of=n, receiver=receiver)
        for n in range(50)
        for at_, receiver in enumerate(("joe/1", "eve/1", "tom/1"))
    ]
    await prepare(at, *letters)
    options = ReplayOptions(rate=10_000, canary=0, to="ann/1")
    assert (await jobs.plan(ALL, options, "operator")).skipped == {"repeated": 100}
    job = await jobs.start(ALL, options, "operator")
    assert await ended(job) is JobState.DONE
    assert hall.delivered == [("ann/1", n) for n in range(50)]
    assert job.skipped == {"repeated": 100}
    assert await at.letters.search.count(LetterFilter(state=LetterState.NEW)) == 100
    entries, _ = await at.audit.read(None, 2)
    assert entries[1].detail == {"to": "ann/1"}


async def test_letters_made_during_a_replay_are_not_replayed_by_it(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(at, *(letter(n, of=n) for n in range(30)))
    hall.refused = {*range(30)}
    options = ReplayOptions(rate=10_000, canary=0, stop_at=1.0)
    job = await jobs.start(ALL, options, "operator")
    assert await ended(job) is JobState.DONE
    assert (job.sent, job.failed, len(hall.delivered)) == (30, 30, 30)
    assert await at.letters.search.count(LetterFilter(state=LetterState.NEW)) == 30


# The canary, and failures


async def test_the_other_letters_wait_until_the_canary_is_acked(scene: Scene) -> None:
    at, hall, jobs = scene
    hall.is_acking = False
    await prepare(at, *(letter(n, of=n) for n in range(20)))
    job = await jobs.start(ALL, ReplayOptions(rate=10_000, canary=3), "operator")
    await until(lambda: len(hall.delivered) == 3)
    await asyncio.sleep(0.1)
    assert (len(hall.delivered), job.state) == (3, JobState.CANARY)
    hall.is_acking = True
    assert await ended(job) is JobState.DONE
    assert [n for _, n in hall.delivered] == [*range(20)]


async def test_a_canary_that_dies_stops_the_replay(scene: Scene) -> None:
    at, hall, jobs = scene
    hall.refused = {*range(20)}
    await prepare(at, *(letter(n, of=n) for n in range(20)))
    job = await jobs.start(ALL, ReplayOptions(rate=10_000, canary=3), "operator")
    assert await ended(job) is JobState.STOPPED
    assert (len(hall.delivered), job.failed) == (3, 3)
    assert job.reason == "3 of 3 died again"
    assert await at.letters.search.count(LetterFilter(state=LetterState.NEW)) == 20


async def test_failures_below_the_limit_do_not_stop_a_replay(scene: Scene) -> None:
    at, hall, jobs = scene
    hall.refused = {4}
    await prepare(at, *(letter(n, of=n) for n in range(20)))
    options = ReplayOptions(rate=10_000, canary=10, stop_at=0.1)
    job = await jobs.start(ALL, options, "operator")
    assert await ended(job) is JobState.DONE
    assert (job.acked, job.failed) == (19, 1)


async def test_too_many_failures_stop_a_replay_after_its_canary(scene: Scene) -> None:
    at, hall, jobs = scene
    hall.refused = {*range(5, 1000)}
    await prepare(at, *(letter(n, of=n) for n in range(200)))
    options = ReplayOptions(rate=300, canary=5, stop_at=0.5)
    job = await jobs.start(ALL, options, "operator")
    assert await ended(job) is JobState.STOPPED
    assert job.acked == 5
    assert len(hall.delivered) < 200


async def test_a_replay_keeps_to_its_rate(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(at, *(letter(n, of=n) for n in range(100)))
    began = time.monotonic()
    job = await jobs.start(ALL, ReplayOptions(rate=40, canary=0), "operator")
    await until(lambda: len(hall.delivered) >= 20)
    assert len(hall.delivered) < 40 * (time.monotonic() - began) * 1.5
    await jobs.cancel(job.id, "operator")


def test_a_replay_with_a_rate_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="rate"):
        ReplayOptions(rate=0)


# Cancelling, restarting


async def test_a_cancelled_replay_sends_nothing_more(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(at, *(letter(n, of=n) for n in range(50)))
    job = await jobs.start(ALL, ReplayOptions(rate=100, canary=0), "operator")
    await until(lambda: len(hall.delivered) > 3)
    found = await jobs.cancel(job.id, "operator/ann")
    assert found is job
    assert (job.state, job.reason) == (JobState.CANCELLED, "cancelled by operator/ann")
    sent = len(hall.delivered)
    await asyncio.sleep(0.1)
    assert len(hall.delivered) == sent == job.sent
    with pytest.raises(JobNotRunning):
        await jobs.cancel(job.id, "operator")
    assert await jobs.cancel("0" * 19, "operator") is None


async def test_another_process_continues_a_replay_without_repeating_a_letter(
    shared_valkey: ValkeyServer,
) -> None:
    async with stage(shared_valkey) as (at, hall, jobs):
        await prepare(at, *(letter(n, of=n) for n in range(60)))
        job = await jobs.start(ALL, ReplayOptions(rate=200, canary=5), "operator")
        await until(lambda: len(hall.delivered) > 20)
    # The job may have delivered more before its process ended.
    first = list(hall.delivered)
    async with stage(shared_valkey) as (at, hall, jobs):
        again = await jobs.get(job.id)
        assert again is not None
        assert again.state is JobState.RUNNING
        assert await jobs.resume() == 1
        running = await jobs.get(job.id)
        assert running is not None
        assert await ended(running) is JobState.DONE
        everything = first + hall.delivered
        assert sorted(n for _, n in everything)[: len(first)] == sorted(n for _, n in first)
        assert len({n for _, n in everything}) == len(everything)
        assert (running.sent, running.acked, running.failed) == (60, 60, 0)
        assert await at.letters.search.count(LetterFilter(state=LetterState.NEW)) == 0


async def test_a_replay_waits_for_its_canary_over_a_restart(shared_valkey: ValkeyServer) -> None:
    async with stage(shared_valkey) as (at, hall, jobs):
        hall.is_acking = False
        await prepare(at, *(letter(n, of=n) for n in range(20)))
        job = await jobs.start(ALL, ReplayOptions(rate=10_000, canary=4), "operator")
        await until(lambda: len(hall.delivered) == 4)
        assert job.state is JobState.CANARY
    async with stage(shared_valkey) as (at, hall, jobs):
        hall.is_acking = False
        hall.refused = {0, 1}
        loaded = await at.loaded()
        hall.unsettled = {Sent("joe/1", message.id) for _, message in loaded["joe/1"].entries}
        assert len(hall.unsettled) == 4
        await jobs.resume()
        await asyncio.sleep(0.1)
        assert hall.delivered == []
        hall.is_acking = True
        running = await jobs.get(job.id)
        assert running is not None
        assert await ended(running) is JobState.STOPPED
        assert (running.failed, hall.delivered) == (2, [])


async def test_a_resumed_replay_counts_outcomes_from_before_the_restart(
    shared_valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look_later(_: object) -> None:
        """Count nothing yet."""

    count = replay_run.Run._count_settled
    monkeypatch.setattr(replay_run.Run, "_count_settled", look_later)
    # The job is about new letters; those that it has taken are not new any more.
    new = LetterFilter(state=LetterState.NEW)
    async with stage(shared_valkey) as (at, hall, jobs):
        hall.is_acking = False
        await prepare(at, *(letter(n, of=n) for n in range(30)))
        job = await jobs.start(new, ReplayOptions(rate=10_000, canary=0, stop_at=1), "operator")
        await until(lambda: len(hall.delivered) == 30)
        # One dies again and two are acked, and the process ends before the job has looked.
        hall.refused = {3}
        for n in (3, 4, 5):
            hall.settle(Sent("joe/1", BASE + n))
        await at.answered()
    assert (job.acked, job.failed) == (0, 0)
    monkeypatch.setattr(replay_run.Run, "_count_settled", count)
    async with stage(shared_valkey) as (at, hall, jobs):
        hall.is_acking = False
        loaded = await at.loaded()
        hall.unsettled = {Sent("joe/1", message.id) for _, message in loaded["joe/1"].entries}
        assert len(hall.unsettled) == 27
        await jobs.resume()
        running = await jobs.get(job.id)
        assert running is not None
        await until(lambda: running.acked + running.failed == 3)
        assert (running.sent, running.acked, running.failed) == (30, 2, 1)
        hall.is_acking = True
        assert await ended(running) is JobState.DONE
        assert (running.sent, running.acked, running.failed) == (30, 29, 1)
        assert hall.delivered == []


async def test_a_replay_continues_when_the_store_is_back() -> None:
    with ValkeyServer(appendonly="yes", appendfsync="always") as valkey:
        async with stage(valkey) as (at, hall, jobs):
            await prepare(at, *(letter(n, of=n) for n in range(40)))
            job = await jobs.start(ALL, ReplayOptions(rate=100, canary=0), "operator")
            await until(lambda: len(hall.delivered) > 5)
            valkey.restart()
            assert await ended(job) is JobState.DONE
            assert [n for _, n in hall.delivered] == [*range(40)]
            assert job.sent == 40


async def test_a_replay_whose_start_has_failed_is_not_under_way_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Store.run, "__kwdefaults__", {"timeout_s": 0.05})
    with ValkeyServer() as valkey:
        async with stage(valkey) as (at, _, jobs):
            await prepare(at, letter(1, of=1))
            valkey.freeze()
            with pytest.raises(StoreUnavailable):
                await jobs.start(ALL, FAST, "operator")
            valkey.thaw()
            await at.answered()
            # Nobody would carry it out before the next start.
            assert await jobs.latest() == []


async def test_a_replay_is_not_stored_if_the_store_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, valkey: ValkeyServer
) -> None:
    async with stage(valkey) as (at, _, jobs):
        await prepare(at, letter(1, of=1))

        async def fail(*_: object) -> None:
            raise StoreUnavailable("it does not answer")

        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(Reader, "ask", fail)
            with pytest.raises(StoreUnavailable):
                await jobs.start(ALL, FAST, "operator")
        await at.answered()
        # Nobody would carry it out before the next start.
        assert await jobs.latest() == []


async def test_a_replay_waits_while_the_store_is_full(valkey: ValkeyServer) -> None:
    async with stage(valkey) as (at, hall, jobs):
        await prepare(at, *(letter(n, of=n) for n in range(10)))
        job = await jobs.start(ALL, ReplayOptions(rate=50, canary=0), "operator")
        await until(lambda: len(hall.delivered) > 2)
        valkey.set(maxmemory="1")
        await asyncio.sleep(0.1)
        sent = len(hall.delivered)
        await asyncio.sleep(0.1)
        assert len(hall.delivered) == sent
        valkey.set(maxmemory="0")
        assert await ended(job) is JobState.DONE
        assert [n for _, n in hall.delivered] == [*range(10)]


async def test_letters_of_a_session_that_ends_during_a_replay_are_skipped(scene: Scene) -> None:
    at, hall, jobs = scene
    await prepare(at, *(letter(n, of=n) for n in range(10)))
    job = await jobs.start(ALL, ReplayOptions(rate=30, canary=0), "operator")
    await until(lambda: len(hall.delivered) > 2)
    at.store.forget("joe/1", ids(*(n for _, n in hall.delivered)))
    del hall.durable["joe/1"]
    assert await ended(job) is JobState.DONE
    assert job.sent == len(hall.delivered) < 10
    assert job.skipped == {"receiver": 10 - job.sent}


# Jobs and audit


async def test_jobs_are_listed_from_the_latest_on_and_old_ones_are_forgotten(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, _, jobs = scene
    monkeypatch.setattr(control, "_MOST", 3)
    started = []
    for _ in range(5):
        job = await jobs.start(ALL, FAST, "operator/ann")
        await ended(job)
        started.append(job.id)
    await at.answered()
    found = await jobs.latest()
    assert [job.id for job in found] == started[:1:-1]
    assert (found[0].state, found[0].who, found[0].which) == (JobState.DONE, "operator/ann", ALL)
    assert found[0].finished is not None
    names = {name for name in at.names() if name.startswith(KEYS.replay(""))}
    assert names == {KEYS.replay(id) for id in started[2:]}


async def test_the_audit_has_the_start_and_the_end_of_a_replay(scene: Scene) -> None:
    at, _, jobs = scene
    await prepare(at, letter(11, of=1))
    job = await jobs.start(ALL, FAST, "operator/ann")
    await ended(job)
    await at.answered_line()
    entries, _ = await at.audit.read(None, 10)
    assert [(entry.who, entry.action, entry.target) for entry in entries] == [
        ("operator/ann", "replay.done", job.id),
        ("operator/ann", "replay.start", job.id),
    ]
    assert entries[0].detail == {"sent": 1, "died_again": 0, "reason": ""}
