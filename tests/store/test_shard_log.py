"""The log of a shard, as the process writes it that has the shard."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from holdfast.cluster.frames import write
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark
from holdfast.delivery.messages.outcomes import Move
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.store.format.log_scripts import Step
from holdfast.store.framing.log_state import StoredFrame, TakenLog
from holdfast.store.framing.shard_log import Taken, Taking
from holdfast.store.links.reply_errors import ScriptFailed
from holdfast.store.writing import turn_writer
from holdfast.store.writing.reconciliation import Knowledge
from tests.store.log_owner import ShardProcess, crossing, passing, shard_process
from tests.store.servers import ValkeyServer
from tests.store.store_process import KEYS, letter, message
from tests.store.test_going_back import Past, back, known_queue
from tests.store.test_journaling import Notebook, notes

KEPT = [PersistOutcome.KEPT]


@pytest.fixture
async def shard(shared_valkey: ValkeyServer) -> AsyncIterator[ShardProcess]:
    async with shard_process(shared_valkey) as shard:
        yield shard


async def test_messages_that_cross_are_in_the_log_when_their_publishers_hear_that_they_are_kept(
    shard: ShardProcess,
) -> None:
    seen: list[list[list[int]]] = []
    shard.publish(1, "joe/1")
    shard.at.keep(message(2), "joe/1")
    shard.at.store.keep(crossing(3), [], lambda _: seen.append(shard.frames()))
    await shard.at.answered()
    assert seen == [[[1, 3]]]
    assert shard.at.kept == {1: KEPT, 2: KEPT}
    assert shard.at.queue("joe/1") == {1: "", 2: ""}
    assert shard.owner.appended == [(1, 2, False)]
    assert shard.place().total == 2


async def test_what_does_not_cross_leaves_no_frame(shard: ShardProcess) -> None:
    shard.at.keep(message(1), "joe/1")
    shard.at.keep(message(2, key="k"), "joe/1")
    shard.at.store.move([Move(message(1), "joe/1", ["ann/1"], 1, 0)])
    await shard.at.answered()
    assert shard.at.queue("ann/1") == {1: ""}
    assert KEYS.log not in shard.at.names()
    assert shard.owner.appended == []


async def test_a_moved_message_is_framed_once(shard: ShardProcess) -> None:
    kept = shard.publish(1, "joe/0")
    await shard.at.answered()
    shard.at.store.move([Move(kept, "joe/0", ["joe/1"], 1, 0)])
    shard.at.keep(message(2), "joe/0")
    await shard.at.answered()
    assert shard.frames() == [[1]]
    shard.at.store.move([Move(crossing(2), "joe/0", ["joe/1"], 1, 0)])
    await shard.at.answered()
    assert shard.frames() == [[1], [2]]
    assert shard.at.queue("joe/1") == {1: "", 2: ""}
    assert [entries for _, entries, _ in shard.owner.appended] == [1, 1]


async def test_each_publish_with_a_key_has_a_frame_and_a_repeat_has_none(
    shard: ShardProcess,
) -> None:
    shard.publish(1, "joe/1", key="a")
    shard.publish(2, "joe/1", key="b")
    shard.publish(3, "joe/1", key="a")
    await shard.at.answered()
    assert shard.frames() == [[1], [2]]
    assert shard.at.kept == {1: KEPT, 2: KEPT, 3: [PersistOutcome.REPEATED]}
    assert [entries for _, entries, _ in shard.owner.appended] == [1, 1]


async def test_frames_have_the_order_in_which_messages_were_accepted(shard: ShardProcess) -> None:
    """A turn sends what has no key first, and moved messages last."""
    shard.publish(1, key="a")
    shard.publish(2)
    shard.at.keep(message(3), "joe/0")
    shard.publish(4, key="b")
    await shard.at.answered()
    shard.at.store.move([Move(crossing(3), "joe/0", ["joe/1"], 1, 0)])
    shard.publish(5, key="c")
    shard.publish(6)
    await shard.at.answered()
    assert shard.frames() == [[1], [2], [4], [3], [5], [6]]


async def test_passing_messages_are_in_the_log_before_durable_ones_that_came_later(
    shard: ShardProcess,
) -> None:
    shard.publish(1)
    await shard.at.answered()
    shard.owner.log.pass_on(passing(2))
    shard.publish(3)
    await shard.at.answered()
    assert shard.frames() == [[1], [2], [3]]
    assert shard.owner.log.appended == 1
    assert [n for n, _, _ in shard.owner.appended] == [1, 2, 3]
    assert shard.place().total == 3


async def test_a_frame_has_256_kib_at_most(shard: ShardProcess) -> None:
    for n in range(1, 8):
        shard.publish(n, "joe/1", data="x" * 100_000)
    shard.publish(8, data="x" * 300_000)
    shard.publish(9)
    await shard.at.answered()
    assert shard.frames() == [[1, 2], [3, 4], [5, 6], [7], [8], [9]]
    assert max(len(part) for part in shard.parts()[:4]) < 256 * 1024


async def test_facts_are_stored_with_their_frame_and_the_place_behind_it_is_told(
    shard: ShardProcess,
) -> None:
    shard.state({"durable /a": "1", "durable /b": "1"})
    shard.state({"durable /a": ""})
    shard.state({})
    await shard.at.answered()
    places = [f"{shard.place().nonce} 1-{n} {total}" for n, total in ((1, 2), (2, 3), (3, 3))]
    assert shard.stated == places
    assert shard.at.hash(KEYS.facts) == {"": places[1], "durable /b": "1"}
    assert [has_facts for _, _, has_facts in shard.owner.appended] == [True, True, False]


async def test_messages_of_others_are_stored_in_the_step_that_moves_the_place(
    shard: ShardProcess,
) -> None:
    take = shard.log.take
    take(Step(1, "", "a"), [(message(1), ["joe/1"])], done=shard.taken.append)
    take(Step(1, "a", "b", "passed"), [], {"1 5": b"call"}, done=shard.taken.append)
    take(Step(1, "wrong", "c"), [(message(2), ["joe/1"])], done=shard.taken.append)
    take(Step(1, "b", "c"), [], done=shard.taken.append)
    await shard.at.answered()
    done = Taken(Taking.DONE)
    assert shard.taken == [done, done, Taken(Taking.ELSEWHERE, "b"), done]
    assert shard.at.queue("joe/1") == {1: ""}
    state = await shard.log.read()
    assert state.taken == {1: TakenLog("c", "passed")}
    assert state.inbox == {"1 5": b"call"}
    shard.state({}, answered=["1 5"])
    await shard.at.answered()
    assert shard.at.hash(KEYS.inbox) == {}
    assert shard.place().total == 1


class Diary(Notebook):
    """Its notes are answered in the order in which they were made."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[str] = []

    def note_kept(self, messages: Any, early: Mapping[str, BatchMark] = NO_HAND_OVERS) -> bytes:
        return self._made(super().note_kept(messages, early))

    def note_dead(self, letters: Any) -> bytes:
        return self._made(super().note_dead(letters))

    def _made(self, note: bytes) -> bytes:
        self.made.append(note.decode())
        return note


async def test_what_is_taken_between_the_parts_of_a_large_turn_is_noted_in_its_place(
    shared_valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_writer, "_TURN_S", 0.0)
    diary = Diary()
    async with shard_process(shared_valkey, journal=diary) as shard:
        shard.at.store.dead_letter([letter(n) for n in range(1000)], None)
        shard.at.store.flush()
        assert shard.at.link.unanswered == 1
        shard.log.take(Step(1, "", "a"), [(message(1), ["joe/1"])], done=shard.taken.append)
        await shard.at.answered()
        assert len(diary.made) > 2
        assert notes(shared_valkey) == diary.made


async def test_a_full_store_takes_facts_and_places_but_no_messages(valkey: ValkeyServer) -> None:
    async with shard_process(valkey) as shard:
        outcomes: list[bool] = []
        valkey.set(maxmemory="1")
        shard.publish(1, "joe/1")
        await shard.at.answered()
        shard.log.append(1, {"all": b"frame"}, outcomes.append)
        shard.log.take(Step(1, "", "a"), [(message(2), ["joe/1"])], done=shard.taken.append)
        shard.state({"durable /a": "1"})
        shard.log.take(Step(1, "", "b"), [], done=shard.taken.append)
        await shard.at.answered()
        assert shard.at.kept[1] == [PersistOutcome.REFUSED]
        assert outcomes == [False]
        assert shard.taken == [Taken(Taking.REFUSED), Taken(Taking.DONE)]
        assert shard.facts_told() == [{"durable /a": "1"}]
        assert shard.owner.appended == [(4, 1, True)]


async def test_what_the_store_has_skipped_is_not_appended_behind_what_came_later(
    shard: ShardProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[bool] = []

    def skip(*call: Any, **_: Any) -> None:
        done = call[-1]
        monkeypatch.undo()
        asyncio.get_running_loop().call_soon(done, ScriptFailed("REFUSED", "REFUSED before"))

    monkeypatch.setattr(shard.at.link, "script", skip)
    shard.log.append(1, {"all": write([passing(1)])}, outcomes.append)
    shard.publish(2)
    await shard.at.answered()
    assert outcomes == [False]
    assert shard.frames() == [[2]]


async def test_what_the_store_has_of_logs_can_be_read_at_an_opening(
    shared_valkey: ValkeyServer,
) -> None:
    async with shard_process(shared_valkey) as before:
        before.publish(1)
        await before.at.answered()
        before.state({"durable /a": "1"})
        before.log.take(Step(3, "", "a"), [], {"3 1": b"call"}, done=before.taken.append)
        await before.at.answered()
        nonce, size = before.place().nonce, [len(part) for part in before.parts()]
    async with shard_process(shared_valkey) as shard:
        state = await shard.log.read()
    assert state.frames == [
        StoredFrame("", f"{nonce} 1-1 1", size[0]),
        StoredFrame(f"{nonce} 1-1 1", f"{nonce} 1-2 2", size[1]),
    ]
    assert (state.end, state.incarnations) == (f"{nonce} 1-2 2", f"{nonce} 1-1")
    assert (state.fence, state.nonce != nonce, len(state.nonce)) == (2, True, 8)
    assert state.facts == {"durable /a": "1"}
    assert state.taken == {3: TakenLog("a", "")}
    assert state.inbox == {"3 1": b"call"}


async def test_a_log_with_many_frames_is_read_to_its_end(shard: ShardProcess) -> None:
    for n in range(1, 41):
        shard.log.append(1, {"all": b"x" * n}, lambda _: None)
    await shard.at.answered()
    state = await shard.log.read()
    assert [frame.size for frame in state.frames] == [*range(1, 41)]


# A store that goes back


async def test_a_store_that_went_back_gets_frames_facts_places_and_calls_again(
    shard: ShardProcess,
) -> None:
    shard.owner.facts = {"durable /kept": "1"}
    shard.state({"durable /kept": "1", "durable /gone": "1"})
    shard.log.take(Step(1, "", "a"), [], {"1 1": b"gone"}, done=shard.taken.append)
    await shard.at.answered()
    past = Past(shard.at.server)
    shard.publish(1, "joe/1")
    await shard.at.answered()
    shard.owner.facts["durable /new"] = "1"
    shard.owner.of_others = {1: TakenLog("b", "old"), 2: TakenLog("c", "")}
    shard.owner.calls = {"2 2": b"new"}
    shard.at.known = Knowledge(queues=[known_queue("joe/1", message(1))])
    before = shard.frame_ids()
    past.come_back()
    shard.publish(2, "joe/1")
    shard.owner.log.pass_on(passing(3))
    await back(shard.at)
    assert shard.at.kept[2] == KEPT
    # The lost frame is there as it was. Then, in the new incarnation, the facts come first: others
    # read them in the store then.
    assert shard.frame_ids()[:2] == before
    assert shard.facts_told()[2:] == [
        {"durable /gone": "", "durable /kept": "1", "durable /new": "1"}, {}, {},
    ]  # fmt: skip
    # The passing message was sent with the turn, before the durable one.
    assert shard.frames() == [[], [1], [], [3], [2]]
    assert shard.at.hash(KEYS.facts).keys() == {"", "durable /kept", "durable /new"}
    state = await shard.log.read()
    assert state.taken == {1: TakenLog("b", "old"), 2: TakenLog("c", "")}
    assert state.inbox == {"2 2": b"new"}
    assert shard.owner.events == ["begun again"]
    [begun] = shard.owner.begun
    assert (begun.fence, len(begun.frames)) == (2, 2)
    assert begun.facts.keys() == {"durable /kept", "durable /gone"}
    assert [has_facts for _, _, has_facts in shard.owner.appended] == [True, False, False]
    assert state.end == f"{begun.nonce} 2-{shard.owner.appended[-1][0]} 8"


async def test_a_frame_that_was_trimmed_does_not_come_again_when_the_store_goes_back(
    shard: ShardProcess,
) -> None:
    kept = [shard.publish(1, "joe/1")]
    await shard.at.answered()
    kept.append(shard.publish(2, "joe/1"))
    await shard.at.answered()
    _, second = shard.frame_ids()
    shard.log.trim(second.decode(), [], {})
    await shard.at.answered()
    past = Past(shard.at.server)
    kept.append(shard.publish(3, "joe/1"))
    await shard.at.answered()
    shard.at.known = Knowledge(queues=[known_queue("joe/1", *kept)])
    past.come_back()
    shard.publish(4)
    await back(shard.at)
    assert shard.frames() == [[2], [3], [], [4]]


async def test_what_is_taken_while_the_store_goes_back_is_taken_behind_the_places_that_are_told(
    shard: ShardProcess,
) -> None:
    past = Past(shard.at.server)
    shard.log.take(Step(1, "", "a"), [(message(1), ["joe/1"])], done=shard.taken.append)
    await shard.at.answered()
    shard.owner.of_others = {1: TakenLog("a", "")}
    shard.at.known = Knowledge(queues=[known_queue("joe/1", message(1))])
    past.come_back()
    shard.log.take(Step(1, "a", "b"), [(message(2), ["joe/1"])], done=shard.taken.append)
    await back(shard.at)
    assert shard.taken == [Taken(Taking.DONE)] * 2
    assert shard.at.queue("joe/1") == {1: "", 2: ""}
    assert (await shard.log.read()).taken == {1: TakenLog("b", "")}


async def test_while_the_store_is_told_facts_wait_and_nothing_else_is_appended(
    shard: ShardProcess,
) -> None:
    outcomes: list[bool] = []

    def begun() -> None:
        shard.state({"durable /a": "1"})
        shard.log.append(1, {"all": b"frame"}, outcomes.append)
        shard.log.take(Step(1, "", "a"), [], done=shard.taken.append)

    past = Past(shard.at.server)
    shard.publish(1)
    await shard.at.answered()
    shard.owner.on_begin = begun
    past.come_back()
    shard.publish(2)
    await back(shard.at)
    assert (outcomes, shard.taken) == ([False], [Taken(Taking.FAILED)])
    assert shard.frames() == [[1], [], [2], []]
    assert shard.facts_told() == [{}, {}, {}, {"durable /a": "1"}]
    assert shard.stated == [str(shard.place())]


async def test_a_repeat_of_a_publish_is_one_though_the_store_has_lost_the_first_with_its_frame(
    shard: ShardProcess,
) -> None:
    past = Past(shard.at.server)
    first = shard.publish(1, "joe/1", key="a")
    await shard.at.answered()
    shard.at.known = Knowledge(queues=[known_queue("joe/1", first)])
    past.come_back()
    shard.publish(2, "joe/1", key="a")
    shard.publish(3, "joe/1", key="b")
    shard.publish(4, "joe/1", key="b")
    await back(shard.at)
    repeated = [PersistOutcome.REPEATED]
    assert shard.at.kept == {1: KEPT, 2: repeated, 3: KEPT, 4: repeated}
    # Others get the first one, unless they have it.
    assert shard.frames() == [[1], [], [3]]
    assert shard.at.queue("joe/1") == {1: "", 3: ""}


async def test_a_store_that_went_back_twice_gets_the_frames_of_all_openings(
    shard: ShardProcess,
) -> None:
    shard.publish(1)
    await shard.at.answered()
    past = Past(shard.at.server)
    for n in (2, 4):
        shard.publish(n)
        await shard.at.answered()
        before = shard.frame_ids()
        past.come_back()
        shard.publish(n + 1)
        await back(shard.at)
        assert shard.frame_ids()[: len(before)] == before
    assert shard.frames() == [[1], [2], [], [3], [4], [], [5]]
    state = await shard.log.read()
    assert [each.place for each in state.frames[:-1]] == [each.before for each in state.frames[1:]]
    assert len(state.incarnations.split(",")) == 3


async def test_an_emptied_store_gets_the_frames_of_the_last_seconds(shard: ShardProcess) -> None:
    shard.publish(1)
    shard.publish(2)
    await shard.at.answered()
    before = shard.frame_ids()
    shard.at.server.ask("FLUSHALL")
    shard.publish(3)
    await back(shard.at)
    assert shard.frame_ids()[: len(before)] == before
    assert shard.frames() == [[1, 2], [], [3]]
