"""Hand-overs that the store has before they happen, with the messages that they bring."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from holdfast.delivery.messages.marks import BatchMark, Mark
from holdfast.delivery.messages.outcomes import ACKED
from holdfast.delivery.messages.session_record import Recorded
from holdfast.store.format.log_scripts import Step
from holdfast.store.framing.log_state import TakenLog
from holdfast.store.framing.shard_log import Taken, Taking
from holdfast.store.writing import turn_writer
from holdfast.store.writing.reconciliation import Knowledge, KnownQueue, Reconciliation
from tests.store.log_owner import ShardProcess, shard_process
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, KEYS, mark, message, session, store_process
from tests.store.test_going_back import Past, back, known_queue


@pytest.fixture(autouse=True)
def lazy_writes_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lazy writes leave when a test sends them, even if the store is slow to answer others."""
    monkeypatch.setattr(turn_writer, "_LAZY_S", 60.0)


@pytest.fixture
async def shard(shared_valkey: ValkeyServer) -> AsyncIterator[ShardProcess]:
    async with shard_process(shared_valkey) as shard:
        yield shard


def batch(*ids: int, number: int = 4, seq: int = 7) -> BatchMark:
    return BatchMark(number, seq, [BASE + id for id in ids])


def take(shard: ShardProcess, n: int, before: str = "", behind: str = "a") -> BatchMark:
    """Take a message for a session that will get it at once."""
    early = batch(n)
    shard.log.take(
        Step(1, before, behind),
        [(message(n), ["joe/1"])],
        done=shard.taken.append,
        hand_overs={"joe/1": early},
    )
    return early


def handed(shard: ShardProcess) -> dict[str, str]:
    return {each: text for each, text in shard.at.hash(KEYS.handed).items() if each}


async def test_a_message_is_stored_together_with_the_hand_over_that_follows(
    shard: ShardProcess,
) -> None:
    early = take(shard, 1)
    assert shard.at.store.early == {"joe/1": early}
    await shard.at.answered_line()
    assert shard.taken == [Taken(Taking.DONE)]
    assert handed(shard) == {"joe/1": f"4 7 {BASE + 1}"}
    del shard.at.store.early["joe/1"]
    await shard.at.answered()
    assert handed(shard) == {"joe/1": f"4 7 {BASE + 1}"}


async def test_the_next_process_takes_it_for_in_flight(shared_valkey: ValkeyServer) -> None:
    async with shard_process(shared_valkey) as before:
        before.at.store.save(session("joe/1"))
        take(before, 1)
        await before.at.answered_line()
        del before.at.store.early["joe/1"]
    async with store_process(shared_valkey) as at:
        loaded = (await at.loaded())["joe/1"]
    [(mark, _)] = loaded.entries
    assert mark == Mark(BASE + 1, 7, 4, 1, 0, 7)


async def test_a_hand_over_that_does_not_follow_is_taken_back_soon(shard: ShardProcess) -> None:
    take(shard, 1)
    await shard.at.answered_line()
    # A moment later, with the acks.
    shard.at.store._writer.send_all()
    # Until the store has heard that, no other batch with this number may be told.
    assert shard.at.store.early == {"joe/1": BatchMark(4, 7, ())}
    await shard.at.answered()
    assert shard.at.store.early == {}
    assert handed(shard) == {"joe/1": "4 7 "}
    assert shard.at.queue("joe/1") == {1: ""}


async def test_it_stays_until_the_message_can_be_handed_over(shard: ShardProcess) -> None:
    early = take(shard, 1)
    shard.at.store._writer.send_all()
    assert shard.at.store.early == {"joe/1": early}
    await shard.at.answered_line()
    assert handed(shard) == {"joe/1": f"4 7 {BASE + 1}"}


async def test_another_hand_over_replaces_it(shard: ShardProcess) -> None:
    take(shard, 1)
    shard.at.store.mark_batch("joe/1", batch(2, number=5))
    assert shard.at.store.early == {}
    await shard.at.answered()
    assert handed(shard) == {"joe/1": f"5 7 {BASE + 2}"}


async def test_marks_of_single_entries_replace_it(shard: ShardProcess) -> None:
    take(shard, 1)
    many = range(2, 60)
    for n in many:
        shard.at.keep(message(n), "joe/1")
    shard.at.store.mark_batch("joe/1", batch(*many))
    await shard.at.answered()
    assert handed(shard) == {"joe/1": "4 7 "}
    assert shard.at.queue("joe/1")[1] == ""
    assert shard.at.queue("joe/1")[2] == "7 7 4 1 0"


async def test_a_reply_without_messages_takes_it_back(shard: ShardProcess) -> None:
    take(shard, 1)
    shard.at.store.mark_batch("joe/1", batch())
    assert shard.at.store.early == {}
    await shard.at.answered()
    assert handed(shard) == {"joe/1": "4 7 "}


async def test_no_batch_is_replaced_whose_acks_the_store_does_not_have(
    shard: ShardProcess,
) -> None:
    shard.at.keep(message(1), "joe/1")
    shard.at.store.mark_batch("joe/1", batch(1))
    await shard.at.answered()
    shard.at.store.settle("joe/1", [BASE + 1], ACKED)
    take(shard, 2)
    assert shard.at.store.early == {}
    await shard.at.answered_line()
    assert handed(shard) == {"joe/1": f"4 7 {BASE + 1}"}


async def test_no_write_of_before_comes_behind_it(shard: ShardProcess) -> None:
    shard.at.store.mark_batch("joe/1", batch(1))
    take(shard, 2)
    assert shard.at.store.early == {}


async def test_there_is_none_for_a_session_with_marks_of_single_entries(
    shard: ShardProcess,
) -> None:
    shard.at.keep(message(1), "joe/1")
    shard.at.store.mark("joe/1", [Mark(BASE + 1, 3, 1, 1, 0, 3)])
    await shard.at.answered()
    take(shard, 2)
    assert shard.at.store.early == {}


async def test_there_is_one_at_most_for_a_session(shard: ShardProcess) -> None:
    early = take(shard, 1)
    take(shard, 2, "a", "b")
    assert shard.at.store.early == {"joe/1": early}
    await shard.at.answered_line()
    assert handed(shard) == {"joe/1": f"4 7 {BASE + 1}"}


async def test_what_is_not_taken_is_not_handed_over(shard: ShardProcess) -> None:
    take(shard, 1, "elsewhere")
    await shard.at.answered_line()
    assert shard.taken == [Taken(Taking.ELSEWHERE)]
    assert shard.at.store.early == {}
    assert handed(shard) == {}


async def test_a_session_that_ends_has_none(shard: ShardProcess) -> None:
    take(shard, 1)
    shard.at.store.forget("joe/1", [BASE + 1])
    await shard.at.answered()
    assert shard.at.store.early == {}
    assert handed(shard) == {}


async def test_a_store_that_went_back_forgets_it(shard: ShardProcess) -> None:
    shard.at.store.save(session("joe/1"))
    take(shard, 1)
    await shard.at.answered_line()
    past = Past(shard.at.server)
    del shard.at.store.early["joe/1"]
    shard.at.store.settle("joe/1", [BASE + 1], ACKED)
    await shard.at.answered()
    shard.owner.of_others = {1: TakenLog("a", "")}
    shard.at.known = Knowledge([session("joe/1")], [known_queue("joe/1")])
    past.come_back()
    # It is made again behind what the store is told, when another batch may have this number.
    take(shard, 2, "a", "b")
    await back(shard.at)
    assert shard.taken == [Taken(Taking.DONE)] * 2
    assert shard.at.store.early == {}
    assert shard.at.queue("joe/1") == {2: ""}
    assert handed(shard) == {}


async def test_a_process_that_gives_the_store_away_leaves_none(shard: ShardProcess) -> None:
    take(shard, 1)
    await shard.at.answered_line()
    await shard.at.store.give()
    assert shard.at.store.early == {}
    assert handed(shard) == {"joe/1": "4 7 "}


async def test_a_store_that_went_back_counts_earlier_attempts_all_the_while(
    shard: ShardProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, seen = shard.at.store, list[dict[int, str]]()
    store.save(session("joe/1"))
    shard.at.keep(message(1), "joe/1")
    store.mark_batch("joe/1", batch(1))
    await shard.at.answered()
    past = Past(shard.at.server)
    store.save(session("eve/1"))
    await shard.at.answered()
    shard.at.known = Knowledge(
        [session("joe/1")], [KnownQueue("joe/1", [message(1)], lambda: [mark(1, 1)])]
    )
    forget = Reconciliation._forget_batches

    async def look_and_forget(self: Reconciliation, sessions: Sequence[Recorded]) -> None:
        await shard.at.answered_line()
        seen.append(shard.at.queue("joe/1"))
        await forget(self, sessions)

    monkeypatch.setattr(Reconciliation, "_forget_batches", look_and_forget)
    past.come_back()
    shard.at.keep(message(2), "joe/1")
    await back(shard.at)
    assert seen == [{1: "0 1 0 1 0"}]
    assert shard.at.queue("joe/1") == {1: "0 1 0 1 0", 2: ""}
    assert handed(shard) == {}


# Hand-overs with messages of this server


def bring(shard: ShardProcess, n: int, **options: Any) -> BatchMark:
    """Keep a message for a session that will get it at once."""
    early = batch(n)
    shard.at.keep(message(n, **options), "joe/1", hand_overs={"joe/1": early})
    return early


async def test_a_message_of_this_server_is_stored_together_with_its_hand_over(
    shard: ShardProcess,
) -> None:
    early = bring(shard, 1)
    assert shard.at.store.early == {"joe/1": early}
    shard.at.store.flush()
    await shard.at.answered_line()
    assert handed(shard) == {"joe/1": f"4 7 {BASE + 1}"}
    del shard.at.store.early["joe/1"]
    await shard.at.answered()
    assert handed(shard) == {"joe/1": f"4 7 {BASE + 1}"}


async def test_what_a_turn_has_for_a_session_is_one_hand_over(shard: ShardProcess) -> None:
    bring(shard, 1)
    bring(shard, 2)
    assert shard.at.store.early == {"joe/1": batch(1, 2)}
    shard.at.store.flush()
    bring(shard, 3)
    await shard.at.answered_line()
    assert handed(shard) == {"joe/1": f"4 7 {BASE + 1} {BASE + 2}"}


async def test_what_does_not_follow_a_message_of_this_server_is_taken_back(
    shard: ShardProcess,
) -> None:
    bring(shard, 1)
    await shard.at.answered()
    shard.at.store._writer.send_all()
    await shard.at.answered()
    assert shard.at.store.early == {}
    assert handed(shard) == {"joe/1": "4 7 "}
    assert shard.at.queue("joe/1") == {1: ""}


async def test_messages_that_replicas_must_confirm_bring_none(
    shared_valkey: ValkeyServer,
) -> None:
    def confirm(_: object, done: Callable[[bool], None]) -> None:
        done(True)

    async with store_process(shared_valkey, confirm=confirm) as at:
        at.keep(message(1), "joe/1", hand_overs={"joe/1": batch(1)})
        assert at.store.early == {}
        await at.answered()
        assert "joe/1" not in at.hash(KEYS.handed)


async def test_a_message_that_is_stored_again_after_a_loss_brings_none(
    shard: ShardProcess,
) -> None:
    shard.at.store.save(session("joe/1"))
    await shard.at.answered()
    past = Past(shard.at.server)
    shard.at.store.save(session("eve/1"))
    await shard.at.answered()
    shard.at.known = Knowledge([session("joe/1")], [])
    past.come_back()
    bring(shard, 1)
    await back(shard.at)
    assert shard.at.store.early == {}
    assert shard.at.queue("joe/1") == {1: ""}
    assert handed(shard) == {}
