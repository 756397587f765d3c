"""The order of replays: that of the first publication, whatever happens meanwhile."""

import pytest

from holdfast.delivery.letters.dead import DeadLetter, LetterState
from holdfast.delivery.messages.outcomes import ACKED
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.replays import run as replay_run
from holdfast.store.replays.job_records import JobState
from holdfast.store.replays.parameters import ReplayOptions
from holdfast.store.replays.survey import Order
from tests.store.hall import ALL, FAST, ended, prepare, resumed, stage
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, letter, until

pytestmark = pytest.mark.untraced

MANY = 700


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_run, "_COUNT_S", 0.01)
    monkeypatch.setattr(replay_run, "_AWAY_S", 0.05)


def _letters(*, receivers: tuple[str, ...] = ("joe/1",)) -> list[DeadLetter]:
    """The latest messages died first, then the first ones in reverse, then the others."""
    latest, first = range(500, MANY), range(199, -1, -1)
    deaths = [*latest, *first, *range(200, 500)]
    return [
        letter(10_000 + at, of=n, receiver=receivers[n % len(receivers)])
        for at, n in enumerate(deaths)
    ]


async def test_letters_are_replayed_in_the_order_of_their_publication(
    shared_valkey: ValkeyServer,
) -> None:
    async with stage(shared_valkey) as (at, hall, jobs):
        await prepare(at, *_letters(receivers=("joe/1", "ann/1")))
        job = await jobs.start(ALL, FAST, "operator")
        assert await ended(job) is JobState.DONE
        assert [n for _, n in hall.delivered] == [*range(MANY)]
        assert (job.total, job.sent, job.acked) == (MANY, MANY, MANY)


async def test_letters_of_one_receiver_are_replayed_in_order(shared_valkey: ValkeyServer) -> None:
    async with stage(shared_valkey) as (at, hall, jobs):
        await prepare(at, *_letters(receivers=("joe/1", "ann/1")))
        which = LetterFilter(receiver="ann/1", state=LetterState.NEW)
        assert await ended(await jobs.start(which, FAST, "operator")) is JobState.DONE
        assert [n for _, n in hall.delivered] == [*range(1, MANY, 2)]


async def test_letters_selected_by_id_are_replayed_in_order(shared_valkey: ValkeyServer) -> None:
    async with stage(shared_valkey) as (at, hall, jobs):
        dead = _letters()
        await prepare(at, *dead)
        which = LetterFilter(ids=tuple(each.id for each in dead if each.message % 3))
        assert await ended(await jobs.start(which, FAST, "operator")) is JobState.DONE
        sent = [n for _, n in hall.delivered]
        assert sent == sorted(sent)
        assert len(sent) == len(which.ids)


@pytest.mark.parametrize("state", [None, LetterState.NEW])
async def test_a_resumed_replay_neither_repeats_a_letter_nor_changes_the_order(
    shared_valkey: ValkeyServer, state: LetterState | None
) -> None:
    which = LetterFilter(state=state)
    async with stage(shared_valkey) as (at, hall, jobs):
        await prepare(at, *_letters(), letter(20_000, of=150, receiver="eve/1"))
        options = ReplayOptions(rate=1500, canary=5)
        job = await jobs.start(which, options, "operator")
        await until(lambda: len(hall.delivered) > 330)
    # The job may have delivered more before its process ended.
    before, skipped = list(hall.delivered), dict(job.skipped)
    async with stage(shared_valkey) as (at, hall, jobs):
        job = await resumed(hall, jobs, job.id)
        assert await ended(job) is JobState.DONE
        assert [n for _, n in before + hall.delivered] == [*range(MANY)]
        assert (job.total, job.sent, job.acked) == (MANY + 1, MANY, MANY)
        assert (skipped, job.skipped) == ({"receiver": 1}, {"receiver": 1})


async def test_a_resumed_replay_does_not_take_letters_again_if_its_progress_was_not_noted(
    shared_valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(shared_valkey) as (at, hall, jobs):
        hall.is_acking = False
        await prepare(at, *_letters())
        # As after a kill: nothing that the job noted after its start has reached the store.
        monkeypatch.setattr(replay_run.Run, "note", lambda run: None)
        job = await jobs.start(ALL, ReplayOptions(rate=3000, canary=0), "operator")
        await until(lambda: len(hall.delivered) > 450)
        for n in range(50):
            at.store.settle("joe/1", [BASE + n], ACKED)
        await at.answered()
    # The job may have delivered more before its process ended.
    before = [n for _, n in hall.delivered]
    monkeypatch.undo()
    monkeypatch.setattr(replay_run, "_COUNT_S", 0.01)
    async with stage(shared_valkey) as (at, hall, jobs):
        running = await resumed(hall, jobs, job.id)
        assert running.reached == ""
        assert await ended(running) is JobState.DONE
        assert before + [n for _, n in hall.delivered] == [*range(MANY)]
        assert (running.sent, running.acked, running.skipped) == (MANY, MANY, {})


async def test_a_store_that_is_killed_during_a_replay_does_not_change_its_order() -> None:
    with ValkeyServer(appendonly="yes", appendfsync="always") as valkey:
        async with stage(valkey) as (at, hall, jobs):
            await prepare(at, *_letters())
            job = await jobs.start(ALL, ReplayOptions(rate=2000, canary=0), "operator")
            await until(lambda: len(hall.delivered) > 250)
            valkey.restart()
            assert await ended(job) is JobState.DONE
            assert [n for _, n in hall.delivered] == [*range(MANY)]


# The order itself


def test_an_order_returns_its_letters_in_steps_of_a_given_size() -> None:
    order = Order()
    for at in range(0, 900, 300):
        order.add(letter(10_000 + n, of=n) for n in range(at, at + 300))
    steps = list(order.steps(400, 10**9))
    assert [len(step) for step in steps] == [400, 400, 100]
    assert [place.message - BASE for step in steps for place in step] == [*range(900)]


def test_an_order_begins_after_the_replay_position_that_was_reached() -> None:
    order = Order()
    order.add(_letters())
    [*_, last] = [step[-1] for step in order.steps(300, 10**9)][:2]
    rest = Order(last.text)
    rest.add(_letters())
    found = [place.message - BASE for step in rest.steps(300, 10**9) for place in step]
    assert found == [*range(600, MANY)]


def test_a_step_exceeds_its_bytes_by_at_most_one_letter() -> None:
    order = Order()
    order.add(letter(10_000 + n, of=n) for n in range(10))
    size = letter(0).size
    assert [len(step) for step in order.steps(100, 3 * size)] == [4, 4, 2]


def test_letters_of_one_message_are_in_the_order_of_their_deaths() -> None:
    order = Order()
    order.add([letter(12, of=1, receiver="ann/1"), letter(11, of=1)])
    [step] = order.steps(100, 10**9)
    assert [int(place.id) - BASE for place in step] == [11, 12]
