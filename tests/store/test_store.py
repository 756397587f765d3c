"""The store port on a real store: everything is kept, whatever happens to the connection."""

import asyncio
import random
from math import inf
from unittest.mock import Mock

import pytest
from redis import Redis

from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.outcomes import ACKED
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.store import store
from holdfast.store.format import scripts
from holdfast.store.writing import pending_publishes, turn_writer
from holdfast.store.writing.pending_publishes import PendingPublishes
from holdfast.store.writing.turn_writes import PendingPublish
from tests.store.model import SESSIONS, Both, Room
from tests.store.servers import ValkeyServer
from tests.store.store_process import (
    BASE,
    KEYS,
    StoreProcess,
    batch,
    ids,
    letter,
    mark,
    message,
    session,
    store_process,
    until,
)

pytestmark = pytest.mark.untraced

# Keeping


async def test_a_message_is_kept_once_with_an_entry_for_each_receiver(at: StoreProcess) -> None:
    at.keep(message(1), "joe/1", "ann/1")
    await at.answered()
    assert at.kept == {1: [PersistOutcome.KEPT]}
    assert (at.queue("joe/1"), at.queue("ann/1")) == ({1: ""}, {1: ""})
    assert (at.bodies(), at.receivers(1)) == ({1}, {"joe/1", "ann/1"})


async def test_a_publish_is_not_answered_in_its_own_turn(at: StoreProcess) -> None:
    at.keep(message(1), "joe/1")
    at.store.flush()
    assert at.kept == {1: []}


async def test_a_turn_makes_one_call_of_each_kind(at: StoreProcess) -> None:
    calls = await at.link.ask("INFO", "commandstats")
    for n in range(10):
        at.store.save(session("joe/1"))
        at.keep(message(n), "joe/1", "ann/1")
        at.store.mark("joe/1", [mark(n, n + 1)])
        at.store.settle("ann/1", ids(n), ACKED)
        at.store.dead_letter([letter(100 + n, of=n)], "joe/1")
    at.store.forget("ann/1", [])
    await at.answered()
    after = await at.link.ask("INFO", "commandstats")
    assert count_of_scripts(after) - count_of_scripts(calls) == 6
    assert (at.queue("joe/1"), at.queue("ann/1"), at.bodies()) == ({}, {}, set())
    assert at.dead() == [*range(100, 110)]


def count_of_scripts(stats: object) -> int:
    assert isinstance(stats, bytes)
    lines = [line for line in stats.decode().splitlines() if line.startswith("cmdstat_evalsha:")]
    return int(lines[0].split("calls=")[1].split(",")[0]) if lines else 0


async def test_a_thousand_dead_letters_are_sent_over_several_turns_in_order(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_writer, "_TURN_S", 0.0)
    for n in range(1000):
        at.keep(message(n), "joe/1")
    at.store.save(session("joe/1"))
    await at.answered()
    done: list[str] = []
    at.store.dead_letter([letter(2000 + n, of=n) for n in range(1000)], "joe/1")
    at.store.forget("joe/1", [])
    at.store.after(lambda: done.append("of the turn"))
    at.store.flush()
    assert at.link.unanswered == 1
    # A hand-over from now on must not leave before the store knows of it.
    assert not at.store.is_prompt
    at.keep(message(5000), "ann/1")
    at.store.after(lambda: done.append("of a later turn"))
    at.store.flush()
    await until(lambda: len(done) == 2)
    assert done == ["of the turn", "of a later turn"]
    assert at.store.is_prompt
    assert len(at.dead()) == 1000
    assert (at.queue("joe/1"), at.queue("ann/1")) == ({}, {5000: ""})


class Unmade:
    """A letter that is not made yet."""

    def __init__(self, n: int, made: list[int]) -> None:
        self._n, self._made = n, made
        self.message, self.size = letter(n).message, letter(n).size

    def letter(self) -> DeadLetter:
        self._made.append(self._n)
        return letter(self._n)


def dead_letter_a_thousand(at: StoreProcess, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Dead-letter a thousand messages in turns without time; the letters made so far."""
    monkeypatch.setattr(turn_writer, "_TURN_S", 0.0)
    made: list[int] = []
    at.store.dead_letter([Unmade(n, made) for n in range(1000)], None)
    return made


async def test_letters_are_made_with_the_calls_that_carry_them(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dead_letter_a_thousand(at, monkeypatch)
    assert made == []
    at.store.flush()
    # Those of the first call and of the next one.
    assert 0 < len(made) <= 500
    await at.answered()
    assert made == [*range(1000)]
    assert at.dead() == [*range(1000)]


async def test_other_callbacks_run_before_a_large_turn_continues(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dead_letter_a_thousand(at, monkeypatch)
    at.store.flush()
    before, then = len(made), list[int]()
    asyncio.get_running_loop().call_soon(lambda: then.append(len(made)))
    await until(lambda: bool(then))
    assert then == [before]
    await at.answered()
    assert at.dead() == [*range(1000)]


async def test_marks_of_thousands_of_returned_entries_are_sent_over_several_turns(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_writer, "_TURN_S", 0.0)
    for n in range(3000):
        at.keep(message(n), "joe/1")
    await at.answered()
    at.store.mark("joe/1", [mark(n, -1 - n, position=1 + n) for n in range(3000)])
    at.store.flush()
    assert at.link.unanswered == 1
    assert not at.store.is_prompt
    await at.answered()
    assert at.store.is_prompt
    assert at.queue("joe/1") == {n: f"{n + 1} {-1 - n} 0 1 0" for n in range(3000)}


async def test_records_of_many_sessions_are_sent_over_several_turns(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_writer, "_TURN_S", 0.0)
    for n in range(500):
        at.store.save(session(f"joe/{n}"))
    at.store.flush()
    assert at.link.unanswered == 1
    await at.answered()
    assert at.server.ask("HLEN", KEYS.sessions) == 500


async def test_hand_overs_among_very_many_changes_wait_for_the_store(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_writer, "_TURN_S", 0.0)
    at.store.save(session("joe/1"))
    assert at.store.is_prompt
    for n in range(200):
        at.store.save(session(f"joe/{n}"))
    # Otherwise all of them would have to be sent in this turn, ahead of the reply.
    assert not at.store.is_prompt
    at.store.mark("joe/1", [mark(1, 1, batch=1, position=1)])
    at.store.flush()
    assert at.link.unanswered == 1
    await at.answered()
    assert at.store.is_prompt


async def test_marks_of_first_hand_overs_leave_in_one_turn_and_those_of_redeliveries_over_several(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_writer, "_TURN_S", 0.0)
    # A busy machine takes long to make the calls.
    monkeypatch.setattr(store, "_PROMPT_S", inf)
    for n in range(3000):
        at.keep(message(n), "joe/1")
    await at.answered()
    at.store.mark("joe/1", [mark(n, 1 + n, batch=1, position=1 + n) for n in range(3000)])
    at.store.flush()
    assert at.link.unanswered == 5
    assert at.store.is_prompt
    again = [mark(n, 4000 + n, batch=2, position=1 + n) for n in range(3000)]
    at.store.mark("joe/1", [each._replace(attempts=2) for each in again])
    at.store.flush()
    # Nothing is redelivered until the store knows.
    assert at.link.unanswered == 6
    assert not at.store.is_prompt


async def test_marks_of_first_hand_overs_leave_over_several_turns_if_their_replies_wait(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_writer, "_TURN_S", 0.0)
    for n in range(3000):
        at.keep(message(n), "joe/1")
    await at.answered()
    # The store has fallen behind, so the core lets no reply leave before it has answered.
    monkeypatch.setattr(store, "_PROMPT_S", -1.0)
    at.store.mark("joe/1", [mark(n, 1 + n, batch=1, position=1 + n) for n in range(3000)])
    at.store.flush()
    assert at.link.unanswered == 1
    await at.answered()
    assert len(at.queue("joe/1")) == 3000


async def test_a_posted_call_follows_the_rest_of_an_unfinished_turn(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dead_letter_a_thousand(at, monkeypatch)
    at.server.ask("HSET", KEYS.held, "/a", "held")
    at.store.post(scripts.save_channel_holds(KEYS, {"/a": None}))
    # One call has been made; the rest is for later turns.
    assert at.link.unanswered == 1
    await until(lambda: not at.server.ask("EXISTS", KEYS.held))
    assert len(made) == 1000
    assert at.dead() == [*range(1000)]


async def test_ends_of_many_sessions_are_sent_over_several_turns(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_writer, "_TURN_S", 0.0)
    for n in range(1500):
        at.store.forget(f"joe/{n}", [])
    at.store.flush()
    assert at.link.unanswered == 1
    await at.answered()


async def test_a_session_that_returns_does_not_hurry_the_dead_letters_before_it(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dead_letter_a_thousand(at, monkeypatch)
    at.store.forget("joe/1", [])
    at.store.save(session("joe/1"))
    at.store.flush()
    assert at.link.unanswered == 1
    assert len(made) < 1000
    await at.answered()
    assert at.dead() == [*range(1000)]
    assert at.server.ask("HKEYS", KEYS.sessions) == [b"joe/1"]


async def test_a_hand_over_to_a_session_that_returned_sends_all_dead_letters_before_it_at_once(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dead_letter_a_thousand(at, monkeypatch)
    at.store.forget("joe/1", [])
    at.store.save(session("joe/1"))
    at.keep(message(5000), "joe/1")
    at.store.mark_batch("joe/1", batch(5000))
    at.store.flush()
    # Its reply leaves in this turn.
    assert len(made) == 1000


async def test_an_awaited_call_does_not_hurry_the_rest_of_a_turn(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dead_letter_a_thousand(at, monkeypatch)
    at.store.flush()
    running = asyncio.create_task(at.store.run(scripts.save_channel_holds(KEYS, {})))
    await asyncio.sleep(0)
    assert len(made) < 1000
    await running
    assert len(at.dead()) == 1000


async def test_a_turn_with_thousands_of_publishes_takes_effect_in_order(at: StoreProcess) -> None:
    for n in range(12_000):
        at.keep(message(n), "joe/1")
    at.store.settle("joe/1", ids(*range(11_999)), ACKED)
    await at.answered()
    assert all(answers == [PersistOutcome.KEPT] for answers in at.kept.values())
    assert (at.queue("joe/1"), at.bodies()) == ({11_999: ""}, {11_999})


async def test_the_body_of_a_message_is_removed_with_its_last_entry(at: StoreProcess) -> None:
    at.keep(message(1), "joe/1", "ann/1", "eve/1")
    at.store.settle("joe/1", ids(1), ACKED)
    await at.answered()
    assert (at.bodies(), at.receivers(1)) == ({1}, {"ann/1", "eve/1"})
    at.store.settle("ann/1", ids(1), ACKED)
    await at.answered()
    assert (at.bodies(), at.receivers(1)) == ({1}, {"eve/1"})
    at.store.settle("eve/1", ids(1), ACKED)
    await at.answered()
    assert (at.bodies(), at.receivers(1)) == (set(), set())


async def test_settling_an_entry_again_has_no_effect(at: StoreProcess) -> None:
    at.keep(message(1), "joe/1", "ann/1")
    for _ in range(3):
        at.store.settle("joe/1", ids(1), ACKED)
        await at.answered()
    assert (at.queue("ann/1"), at.bodies()) == ({1: ""}, {1})


async def test_the_last_mark_wins(at: StoreProcess) -> None:
    at.keep(message(1), "joe/1")
    at.store.mark("joe/1", [mark(1, 5, batch=2)])
    at.store.mark("joe/1", [mark(1, 6, batch=3, position=4)])
    await at.answered()
    assert at.queue("joe/1") == {1: "4 6 3 1 0"}


async def test_a_batch_replaces_the_record_of_the_one_before(at: StoreProcess) -> None:
    for n in (1, 2, 3):
        at.keep(message(n), "joe/1")
    at.store.mark_batch("joe/1", batch(1, 2, number=4, seq=7))
    await at.answered()
    assert at.queue("joe/1") == {1: "7 7 4 1 0", 2: "8 8 4 1 0", 3: ""}
    at.store.settle("joe/1", ids(1, 2), ACKED)
    at.store.mark_batch("joe/1", batch(3, number=5, seq=9))
    await at.answered()
    assert at.queue("joe/1") == {3: "9 9 5 1 0"}
    assert KEYS.marks("joe/1") not in at.names()


async def test_acks_are_sent_late_unless_their_session_is_handed_more(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_writer, "_LAZY_S", 60.0)
    for n in (1, 2):
        at.keep(message(n), "joe/1", "ann/1")
    at.store.mark_batch("joe/1", batch(1))
    await at.answered()
    at.store.settle("joe/1", ids(1), ACKED)
    at.store.mark_batch("ann/1", batch(1))
    at.store.flush()
    await at.answered_line()
    assert (at.queue("joe/1"), at.queue("ann/1")) == (
        {1: "1 1 1 1 0", 2: ""},
        {1: "1 1 1 1 0", 2: ""},
    )
    # The batch replaces the record of the first, so the ack is sent before it.
    at.store.mark_batch("joe/1", batch(2, number=2, seq=2))
    at.store.flush()
    await at.answered_line()
    assert at.queue("joe/1") == {2: "2 2 2 1 0"}


async def test_the_mark_of_an_entry_overrides_its_batch(at: StoreProcess) -> None:
    at.keep(message(1), "joe/1")
    at.keep(message(2), "joe/1")
    at.store.mark_batch("joe/1", batch(1, 2))
    at.store.mark("joe/1", [mark(2, 0, position=2)])
    await at.answered()
    assert at.queue("joe/1") == {1: "1 1 1 1 0", 2: "2 0 0 1 0"}


async def test_a_batch_is_stored_as_marks_while_another_entry_has_a_mark(at: StoreProcess) -> None:
    for n in (1, 2, 3):
        at.keep(message(n), "joe/1")
    at.store.mark("joe/1", [mark(1, 0, position=5)])
    at.store.mark_batch("joe/1", batch(2))
    await at.answered()
    assert set(at.hash(KEYS.marks("joe/1"))) == {str(id) for id in ids(1, 2)}
    at.store.settle("joe/1", ids(1, 2), ACKED)
    at.store.mark_batch("joe/1", batch(3))
    await at.answered()
    assert (at.queue("joe/1"), at.hash(KEYS.marks("joe/1"))) == ({3: "1 1 1 1 0"}, {})


async def test_the_record_of_a_long_batch_is_removed_with_its_entries(at: StoreProcess) -> None:
    numbers = range(1, 61)
    for n in numbers:
        at.keep(message(n), "joe/1")
    at.store.mark_batch("joe/1", batch(*numbers))
    await at.answered()
    assert at.queue("joe/1") == {n: f"{n} {n} 1 1 0" for n in numbers}
    at.store.settle("joe/1", ids(*numbers), ACKED)
    await at.answered()
    assert at.names() == {KEYS.meta, KEYS.handed}
    assert set(at.hash(KEYS.handed)) == {""}


async def test_an_entry_that_is_gone_is_not_marked(at: StoreProcess) -> None:
    at.store.mark("joe/1", [mark(1, 5)])
    await at.answered()
    assert at.queue("joe/1") == {}


async def test_a_dead_letter_takes_the_place_of_the_entry(at: StoreProcess) -> None:
    at.keep(message(1), "joe/1", "ann/1")
    at.store.dead_letter([letter(7, of=1)], "joe/1")
    await at.answered()
    assert (at.queue("joe/1"), at.queue("ann/1")) == ({}, {1: ""})
    assert (at.bodies(), at.dead()) == ({1}, [7])


async def test_a_letter_of_a_passing_queue_settles_no_stored_entry(at: StoreProcess) -> None:
    at.keep(message(1), "joe/1")
    at.store.dead_letter([letter(7, of=1)], None)
    await at.answered()
    assert (at.queue("joe/1"), at.dead()) == ({1: ""}, [7])


async def test_a_forgotten_session_leaves_no_trace_in_the_store(at: StoreProcess) -> None:
    at.store.save(session("joe/1"))
    at.keep(message(1), "joe/1", "ann/1")
    at.keep(message(2), "joe/1")
    await at.answered()
    at.store.mark_batch("joe/1", batch(1, 2))
    at.store.mark("joe/1", [mark(1, 3)])
    at.store.forget("joe/1", ids(1, 2))
    await at.answered()
    assert (at.bodies(), at.receivers(1)) == ({1}, {"ann/1"})
    assert at.names() == {KEYS.meta, KEYS.handed, KEYS.bodies, KEYS.receivers(BASE + 1)}
    assert set(at.hash(KEYS.handed)) == {""}


async def test_calls_of_one_turn_take_effect_in_the_order_of_events(at: StoreProcess) -> None:
    at.keep(message(1), "joe/1")
    at.store.settle("joe/1", ids(1), ACKED)
    at.keep(message(1), "joe/1")
    at.store.forget("ann/1", [])
    at.store.save(session("ann/1"))
    at.keep(message(2), "ann/1")
    await at.answered()
    assert (at.queue("joe/1"), at.queue("ann/1")) == ({1: ""}, {2: ""})
    assert set(await at.loaded()) == {"ann/1"}


async def test_after_calls_back_when_everything_before_it_is_answered(at: StoreProcess) -> None:
    seen: list[str] = []
    at.store.keep(message(1), ["joe/1"], lambda kept: seen.append(kept.value))
    at.store.after(lambda: seen.append("after"))
    await at.answered()
    assert seen == ["kept", "after"]


async def test_after_calls_back_even_if_nothing_was_sent(at: StoreProcess) -> None:
    await at.answered()
    await at.answered()


async def test_a_callback_that_raises_does_not_affect_other_publishes(at: StoreProcess) -> None:
    def fail(kept: PersistOutcome) -> None:
        raise RuntimeError(kept)

    at.store.keep(message(1), ["joe/1"], fail)
    at.keep(message(2), "joe/1")
    await at.answered()
    assert at.kept == {2: [PersistOutcome.KEPT]}


# The store away, full, emptied


async def test_publishes_are_refused_and_other_calls_wait_while_the_store_is_away() -> None:
    with ValkeyServer(appendonly="yes", appendfsync="always") as valkey:
        async with store_process(valkey) as at:
            at.keep(message(1), "joe/1")
            at.keep(message(2), "joe/1")
            await at.answered()
            valkey.kill()
            await until(lambda: not at.store.is_available)
            at.keep(message(3), "joe/1")
            at.store.settle("joe/1", ids(1), ACKED)
            at.store.mark("joe/1", [mark(2, 1)])
            await until(lambda: at.kept.get(3) == [PersistOutcome.REFUSED])
            valkey.start()
            await at.answered()
            assert at.queue("joe/1") == {2: "0 1 0 1 0"}
            assert at.events == []


@pytest.mark.valkey
async def test_a_store_that_leaves_a_call_unanswered_is_not_prompt(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        await at.answered()
        assert at.store.is_prompt
        at.server.ask("CLIENT", "PAUSE", 5000, "WRITE")
        at.store.save(session("joe/1"))
        at.store.flush()
        await until(lambda: not at.store.is_prompt)
        assert at.store.is_available
        at.server.ask("CLIENT", "UNPAUSE")
        await at.answered()
        assert at.store.is_prompt


async def test_a_publish_without_an_answer_in_time_is_unknown_until_the_answer_comes(
    valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_publishes, "_WAIT_LIMIT_S", 0.1)
    async with store_process(valkey) as at:
        valkey.freeze()
        at.keep(message(1), "joe/1")
        await until(lambda: at.kept == {1: [PersistOutcome.UNKNOWN]})
        valkey.thaw()
        await at.answered()
        assert at.kept == {1: [PersistOutcome.UNKNOWN, PersistOutcome.KEPT]}


async def test_a_process_that_was_suspended_reads_answers_before_it_calls_a_publish_unknown() -> (
    None
):
    loop = Mock()
    loop.time.return_value = 100.0
    heard: list[PersistOutcome] = []
    pending = PendingPublishes(loop, None)
    answered = pending.begin([PendingPublish(message(1), ("joe/1",), heard.append)])
    (_, ring), _ = loop.call_at.call_args
    loop.time.return_value = 130.0
    ring()
    assert heard == []
    answered(b"OK")
    assert heard == [PersistOutcome.KEPT]


async def test_a_full_store_refuses_only_messages(valkey: ValkeyServer) -> None:
    async with store_process(valkey) as at:
        at.store.save(session("joe/1"))
        at.keep(message(1), "joe/1")
        at.keep(message(2), "joe/1")
        await at.answered()
        valkey.set(maxmemory="1", maxmemory_policy="noeviction")
        at.keep(message(3), "joe/1", "ann/1")
        await at.answered()
        assert at.kept[3] == [PersistOutcome.REFUSED]
        at.store.save(session("eve/1"))
        at.store.mark("joe/1", [mark(1, 1)])
        at.store.dead_letter([letter(7, of=2)], "joe/1")
        await at.answered()
        assert (at.queue("joe/1"), at.dead()) == ({1: "0 1 0 1 0"}, [7])
        assert at.states == []


async def test_unanswered_publishes_and_other_calls_are_repeated_when_the_store_was_emptied(
    at: StoreProcess,
) -> None:
    at.store.save(session("joe/1"))
    at.keep(message(1), "joe/1")
    await at.answered()
    at.server.ask("FLUSHALL")
    at.keep(message(2), "joe/1")
    at.store.dead_letter([letter(7, of=1)], "joe/1")
    await at.answered()
    assert (at.events, at.kept[2]) == (["emptied"], [PersistOutcome.KEPT])
    assert at.store.is_available
    at.keep(message(3), "joe/1")
    await at.answered()
    assert (at.queue("joe/1"), at.dead()) == ({2: "", 3: ""}, [7])


async def test_writes_that_wait_for_an_emptied_store_are_bounded(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_MAX_WAITING", 2)
    at.server.ask("FLUSHALL")
    at.store.settle("joe/1", ids(1), ACKED)
    while at.store.is_available:  # noqa: ASYNC110 - it is away for a few turns only
        await asyncio.sleep(0)
    at.store.settle("joe/1", ids(1, 2, 3), ACKED)
    assert at.store.is_full
    await at.answered()
    assert not at.store.is_full


async def test_a_store_that_comes_back_empty_is_reported_as_emptied_and_opened_again(
    valkey: ValkeyServer,
) -> None:
    async with store_process(valkey) as at:
        at.keep(message(1), "joe/1")
        await at.answered()
        valkey.restart()
        at.store.settle("joe/1", ids(1), ACKED)
        await until(lambda: at.events == ["emptied"])
        await until(lambda: at.store.is_available)


async def test_unanswered_calls_are_repeated_after_a_lost_connection(at: StoreProcess) -> None:
    for n in range(200):
        at.keep(message(n), "joe/1", "ann/1")
        at.store.settle("ann/1", ids(n - 3), ACKED)
        if n % 10 == 0:
            at.store.flush()
        if n % 50 == 20:
            at.server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await asyncio.sleep(0)
    await at.answered()
    kept = {n for n, answers in at.kept.items() if answers == [PersistOutcome.KEPT]}
    assert kept == set(at.queue("joe/1"))
    assert at.bodies() == kept


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_a_store_behind_a_bad_connection_matches_the_model(
    monkeypatch: pytest.MonkeyPatch, at: StoreProcess, seed: int
) -> None:
    # A publish that waits for a later turn is refused if the connection is lost until then.
    monkeypatch.setattr(turn_writer, "_TURN_S", inf)
    dice = random.Random(seed)
    both = Both(at.store)
    for _ in range(400):
        key, n = dice.choice(SESSIONS), dice.randrange(8)
        match dice.randrange(12):
            case 0 | 1:
                both.save(key)
            case 2 | 3 | 4:
                await until(lambda: at.store.is_available)
                both.keep(n, dice.sample(SESSIONS, dice.randint(1, 3)))
                # Sent before the link notices a lost connection: from here on it must succeed.
                at.store.flush()
            case 5 if dice.random() < 0.5:
                both.hand_over(key, dice.randint(1, 9))
            case 5:
                both.mark(n, key, dice.randint(1, 9))
            case 6 | 7:
                both.settle(n, key)
            case 8:
                both.dead_letter(n, key, is_durable=dice.random() < 0.8)
            case 9:
                both.forget(key)
            case 10:
                at.store.flush()
                await asyncio.sleep(0)
            case _:
                at.store.flush()
                at.server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                await asyncio.sleep(0)
    await at.answered()
    with Redis.from_url(at.server.url) as redis:
        both.model.check(Room(redis))


async def test_closing_the_store_waits_for_unanswered_calls(at: StoreProcess) -> None:
    at.keep(message(1), "joe/1")
    await at.store.close(5)
    assert at.kept == {1: [PersistOutcome.KEPT]}
