"""A history is one more receiver of its messages in the store: each message is there once."""

from functools import partial
from typing import TYPE_CHECKING

import pytest

from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.delivery.messages.keeping import HistoryDepth, Keeping
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.journal.frame import decode
from holdfast.journal.unfold import unfold
from holdfast.journal.writer import JournalWriter
from holdfast.settings import ChannelSettings
from tests.store.servers import ValkeyServer
from tests.store.store_process import (
    BASE,
    KEYS,
    StoreProcess,
    batch,
    ids,
    message,
    session,
    store_process,
    until,
)
from tests.unit.bayeux.harness import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

CHANNEL = "/orders/new"
DEPTH = HistoryDepth(3)


def kept(n: int, key: str = "") -> Message:
    made = message(n, key=key)
    made.keeping, made.is_durable = Keeping(DEPTH), True
    return made


def bodies(at: StoreProcess) -> list[int]:
    return sorted(int(id) - BASE for id in at.server.ask("HKEYS", KEYS.bodies))


async def restarted(at: StoreProcess, rule: ChannelSettings) -> Server:
    """The next server, after it has loaded what is in the store."""
    server = Server(keeper=at.store, channels={"/orders/**": rule})
    async for loaded in at.store.load(partial(restore_without_session, server.bayeux.life)):
        restore(server.bayeux.life, loaded.record, loaded.entries, server.now)
    await at.answered()
    return server


async def test_a_message_stays_while_a_queue_or_the_history_has_it(at: StoreProcess) -> None:
    at.store.save(session("joe/1"))
    at.keep(kept(1), "joe/1", CHANNEL)
    at.keep(kept(2), CHANNEL)
    at.keep(kept(3, key="once"), "joe/1", CHANNEL)
    await at.answered()
    assert bodies(at) == [1, 2, 3]
    at.store.settle("joe/1", ids(1), ACKED)
    at.store.leave_history(CHANNEL, BASE + 2)
    at.store.leave_history(CHANNEL, BASE + 3)
    await at.answered()
    assert bodies(at) == [1, 3]
    at.store.leave_history(CHANNEL, BASE + 1)
    at.store.settle("joe/1", ids(3), ACKED)
    await at.answered()
    assert bodies(at) == []
    assert at.server.ask("KEYS", KEYS.receivers(BASE + 1)) == []


async def test_a_session_that_catches_up_keeps_a_message_that_leaves_the_history(
    at: StoreProcess,
) -> None:
    at.store.save(session("joe/1"))
    at.keep(kept(1), CHANNEL)
    await at.answered()
    at.keep(kept(1), "joe/1")
    at.store.leave_history(CHANNEL, BASE + 1)
    await at.answered()
    assert bodies(at) == [1]
    assert [e.id - BASE for e, _ in (await at.loaded())["joe/1"].entries] == [1]


@pytest.mark.parametrize("is_handed", [False, True])
async def test_a_copy_from_a_history_is_still_initial_after_a_restart(
    at: StoreProcess, *, is_handed: bool
) -> None:
    for key in ("joe/1", "joe/2"):
        at.store.save(session(key))
    first = kept(1)
    first.addressed = ("joe",)
    at.keep(first, "joe/1", CHANNEL)
    await at.answered()
    at.keep(first.initial(), "joe/2")
    if is_handed:
        at.store.mark_batch("joe/2", batch(1))
    await at.answered()
    found = await at.loaded()
    (_, own), (mark, copy) = found["joe/1"].entries[0], found["joe/2"].entries[0]
    assert (own.is_initial, own.addressed) == (False, ("joe",))
    assert (copy.is_initial, copy.addressed) == (True, ())
    assert (copy.id, copy.wire, mark.attempts) == (own.id, own.wire, int(is_handed))
    at.store.settle("joe/2", ids(1), ACKED)
    await at.answered()
    assert at.hash(KEYS.marks("joe/2")) == {}
    assert at.receivers(1) == {"joe/1"}, "no server has loaded the history"


async def test_a_message_that_left_its_history_leaves_the_store_a_little_later(
    at: StoreProcess,
) -> None:
    at.keep(kept(1), CHANNEL)
    await at.answered()
    at.store.leave_history(CHANNEL, BASE + 1)
    at.keep(kept(2), CHANNEL)
    await until(lambda: at.kept[2] == [PersistOutcome.KEPT])
    await until(lambda: bodies(at) == [2])


async def test_the_next_server_loads_histories_and_shares_their_messages_with_queues(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    at.store.save(session("joe/1"))
    for n in range(1, 6):
        at.keep(kept(n), "joe/1", CHANNEL)
    await at.answered()
    async with store_process(shared_valkey) as other:
        server = await restarted(other, ChannelSettings(history=DEPTH.entries, durable=True))
        histories = server.bayeux.state.hub.histories
        assert [each.id - BASE for each in histories] == [3, 4, 5]
        (joe,) = server.bayeux.state.sessions
        assert joe.queue.messages()[-1] is list(histories)[-1], "queue and history share it"
        other.store.settle("joe/1", ids(1, 2, 3, 4, 5), ACKED)
        await other.answered()
        assert bodies(other) == [3, 4, 5]
        assert server.balances()


async def test_the_next_server_removes_a_history_that_its_rules_no_longer_keep(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    at.keep(kept(1), CHANNEL)
    await at.answered()
    async with store_process(shared_valkey) as other:
        await restarted(other, ChannelSettings())
        assert bodies(other) == []


async def test_histories_of_many_channels_are_loaded(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    for n in range(2000):
        each = kept(n)
        each.channel = f"/orders/{n % 700}"
        at.keep(each, each.channel)
    await at.answered()
    async with store_process(shared_valkey) as other:
        server = await restarted(other, ChannelSettings(history=DEPTH.entries))
        histories = server.bayeux.state.hub.histories
        assert len(histories) == 2000
        found = histories.get("/orders/42")
        assert found is not None
        assert [each.id - BASE for each in found] == [42, 742, 1442]


async def test_the_journal_does_not_count_histories_as_receivers(at: StoreProcess) -> None:
    writer = JournalWriter("test", at.store.journal, now=0.0, now_ns=lambda: BASE)
    at.store.journal.note_for(writer)
    at.store.save(session("joe/1"))
    at.keep(kept(1), "joe/1", CHANNEL)
    at.keep(kept(2), CHANNEL)
    await at.answered()
    at.store.leave_history(CHANNEL, BASE + 1)
    await at.answered()
    writer.flush(0.0)
    await at.answered()
    frames: Sequence[tuple[bytes, dict[bytes, bytes]]]
    frames = at.server.ask("XRANGE", KEYS.journal("test"), "-", "+")
    events = [event for _, fields in frames for event in unfold(decode(fields[b"frame"]))]
    assert {event.receiver for event in events if event.receiver} <= {"joe/1"}
    published = [event.msg - BASE for event in events if event.kind == "published" and event.msg]
    assert sorted(published) == [1, 2]


async def test_a_message_that_a_full_store_refuses_enters_no_history(at: StoreProcess) -> None:
    at.server.set(maxmemory="1")
    at.keep(kept(1), CHANNEL)
    await until(lambda: at.kept[1] == [PersistOutcome.REFUSED])
    at.server.set(maxmemory="0")
    await at.answered()
    assert bodies(at) == []
