"""A process that writes its log with the real scripts in a real store, and all that fails.

The seed decides what happens next, also when calls are carried out and which answers are lost.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from redis import Redis
from redis.exceptions import ResponseError

from holdfast.cluster.frames import DURABLE, read
from holdfast.cluster.messages import entry_of
from holdfast.delivery.messages.crossing import Crossing
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import PublishKey
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.store.link import Answer, StoreLink, set_answer
from holdfast.store.log_scripts import LoggedFrame, Parts, Step
from holdfast.store.log_state import LogState, TakenLog
from holdfast.store.reconciliation import Knowledge, KnownQueue
from holdfast.store.reply_errors import ScriptFailed, StoreRefused
from holdfast.store.resp import Word
from holdfast.store.script import Script
from holdfast.store.shard_log import Facts, Taken, Taking
from holdfast.store.store import Store
from holdfast.store.write_right import Opening
from tests.store.log_owner import Owner
from tests.store.store_process import BASE, DEPLOYMENT, KEYS

PUBLISHERS = ("ann", "bob")
# The other shard, and the session that gets its messages.
OTHER = 3
JOE = "joe/1"
# Not carried out, or the answer was lost.
_NONE = object()


class _Call:
    def __init__(self, words: Sequence[Word], done: Answer, *, may_be_refused: bool) -> None:
        self.words, self.done, self.may_be_refused = words, done, may_be_refused
        # Whether a full store takes it.
        self.needs_memory = False
        self.reply: object = _NONE


class LossyLink:
    """A link on which calls are carried out, and answered, when the test says so."""

    silence_s = 0.0
    is_full = False

    def __init__(
        self, redis: Redis, choices: random.Random, source_of: Callable[[Script], str]
    ) -> None:
        self.random = choices
        self._source_of = source_of
        self.is_up = True
        self.lacks_memory = False
        self.is_moving = False
        self.sent: list[_Call] = []
        self._redis = redis
        self._wire: Any = redis.connection_pool.get_connection()

    @property
    def has_room(self) -> bool:
        return self.is_up

    def call(self, parts: Sequence[Word], done: Answer) -> None:
        self.sent.append(_Call(parts, done, may_be_refused=True))

    def script(
        self,
        script: Script,
        keys: Sequence[Word],
        args: Sequence[Word],
        done: Answer,
        *,
        may_be_refused: bool = False,
    ) -> None:
        words = ("EVAL", self._source_of(script), len(keys), *keys, *args)
        call = _Call(words, done, may_be_refused=may_be_refused)
        call.needs_memory = "flags=allow-oom" not in script.source.partition("\n")[0]
        self.sent.append(call)

    def flush(self) -> None:
        pass

    async def ask(self, *parts: Word) -> object:
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.call(parts, partial(set_answer, answer))
        return await answer

    def carry_out(self, count: int) -> None:
        if self.is_moving and self.sent:
            self._carry_out_others(count)
            return
        for call in [each for each in self.sent if each.reply is _NONE][:count]:
            if call.needs_memory and self.lacks_memory and self.random.random() < 0.7:
                if not call.may_be_refused:
                    return
                call.reply = StoreRefused("OOM")
            else:
                call.reply = self._run(call.words)

    def _carry_out_others(self, count: int) -> None:
        """The keys of one call are on the move; those behind it are carried out, and repeated."""
        self.is_moving = False
        skipped = self.random.choice(self.sent)
        for call in self.sent[:count]:
            if call is not skipped and not (call.needs_memory and self.lacks_memory):
                self._run(call.words)
        for call in self.sent:
            call.reply, call.may_be_refused = _NONE, False

    def _run(self, words: Sequence[Word]) -> object:
        self._wire.send_command(*words)
        try:
            return self._wire.read_response(disable_decoding=True)
        except ResponseError as error:
            return ScriptFailed(str(error).split(" ")[0], str(error))

    def answer(self, count: int) -> None:
        for _ in range(count):
            if self.is_up and self.sent and self.sent[0].reply is not _NONE:
                call = self.sent.pop(0)
                call.done(call.reply)

    def lose(self) -> None:
        """Lose the connection with all answers that are on their way."""
        for call in self.sent:
            call.reply = _NONE
            # What the store may have carried out is repeated until it is.
            call.may_be_refused = False
        self.is_up = self.random.random() < 0.5

    def close(self) -> None:
        self._redis.connection_pool.release(self._wire)


class Publisher:
    """Publishes in one channel, durable messages and passing ones."""

    def __init__(self, name: str) -> None:
        self.name = name
        # Durable messages without an outcome: while there are any, passing ones wait.
        self.waiting = 0
        self.kept: list[int] = []
        self.refused: list[int] = []
        self.repeated: list[int] = []


class Shard(Owner):
    """What the process has in memory."""

    def __init__(self, world: "World") -> None:
        super().__init__(world.shard_log)
        self.world = world

    def begin_again(self, begun: LogState) -> tuple[Facts, Any]:
        self.world.openings += 1
        return super().begin_again(begun)

    def again(self, frame: LoggedFrame) -> Parts | None:
        self.world.goes_on = True
        return super().again(frame)


class World:
    """The process, its publishers, and what it takes from another shard; it may be broken."""

    faults: Sequence[str] = ("lose", "lose", "copy", "back", "full", "room", "move")
    # Seeds before it are known to find nothing, which saves their time.
    first_seed = 0

    def __init__(self, redis: Redis, seed: int) -> None:
        redis.flushall()
        self.redis = redis
        self.random = random.Random(seed)
        self.link = LossyLink(redis, self.random, self.source_of)
        self.store = Store(
            cast("StoreLink", self.link),
            KEYS,
            opening=Opening("test", DEPLOYMENT, seed=lambda: "seed"),
            stamp=lambda: BASE + self._ids,
            know=self._know,
            on_told=lambda: None,
            on_fenced=self._fenced,
            has_log=True,
        )
        assert self.store.shard_log is not None
        self.shard_log = self.store.shard_log
        self.shard = self.shard_log.owner = Shard(self)
        self.openings = 0
        self.publishers = [Publisher(name) for name in PUBLISHERS]
        # Messages in joe's queue; publish keys; passing messages; what the store may have lost.
        self.queue: list[Message] = []
        self.lost: set[int] = set()
        # Whether a store that went back has gone on without what it lost, because a call was on its
        # way. Then frames come again behind later ones, and readers drop what they have.
        self.goes_on = False
        self.keys: dict[int, str] = {}
        self.passed: set[int] = set()
        # Durable messages, and in their order those that the store said it has.
        self._durable: set[int] = set()
        self._stored: list[int] = []
        self._ids = 0
        self._copy: tuple[dict[bytes, Any], int] | None = None
        # Numbers of frames of the other shard: the last confirmed, and the last that a call takes.
        self.confirmed = self.reading = self.taking = 0
        self.elsewhere = 0

    def source_of(self, script: Script) -> str:
        return script.source

    async def begin(self) -> None:
        opening = asyncio.create_task(self.store.open())
        while not opening.done():
            await self.turn(9)
        await opening
        reading = asyncio.create_task(self.shard_log.read())
        while not reading.done():
            await self.turn(9)
        self.shard.begin(await reading)

    def _fenced(self) -> None:
        raise AssertionError("no other process has the store")

    def _know(self) -> Knowledge:
        return Knowledge(queues=[KnownQueue(JOE, [*self.queue], tuple)])

    # What happens

    async def run_for(self, steps: int) -> None:
        for _ in range(steps):
            if self.random.random() < 0.1:
                self._fail()
            else:
                self.random.choice([*self.ordinary()])()
            for _ in range(self.random.randint(0, 2)):
                await asyncio.sleep(0)

    def ordinary(self) -> list[Callable[[], None]]:
        most = self.random.randint(1, 6)
        moving = [partial(self.link.carry_out, most), partial(self.link.answer, most)]
        return [self._publish, self._publish, self._pass_on, self._state, self._take, *moving * 3]

    def _fail(self) -> None:
        fault = self.random.choice(self.faults)
        if fault == "lose":
            self.link.lose()
        elif fault == "copy":
            self._copy = self._dumps(), len(self._stored)
        elif fault == "back" and self._copy is not None:
            self._go_back()
        elif fault == "move":
            self.link.is_moving = True
        elif fault in ("full", "room"):
            self.link.lacks_memory = fault == "full"
            self.link.is_up = True

    def _dumps(self) -> dict[bytes, Any]:
        names: Any = self.redis.keys("*")
        return {name: self.redis.dump(name) for name in names}

    def _go_back(self) -> None:
        assert self._copy is not None
        dumps, kept = self._copy
        self._copy = None
        self.redis.flushall()
        for name, dump in dumps.items():
            self.redis.restore(name, 0, dump)
        self.lost |= {*self._stored[kept:]}
        # Their answers are on their way.
        done = [call for call in self.link.sent if call.reply is not _NONE]
        self.lost |= {id for call in done for id in self._durable.intersection(call.words)}

    def new_id(self) -> int:
        self._ids += 1
        return BASE + 1000 * self._ids

    def _publish(self) -> None:
        by = self.random.choice(self.publishers)
        for _ in range(self.random.randint(1, 3)):
            key = self.random.choice(["", "", "a", "b", "c", "d"])
            message = message_of(self.new_id(), by.name, key)
            message.is_durable = True
            Crossing.add_to(message).is_stored = True
            self.keys[message.id] = key
            self._durable.add(message.id)
            by.waiting += 1
            receivers = self.random.choice([[JOE], []])
            self.store.keep(message, receivers, partial(self._answered, by, message, receivers))

    def _answered(
        self, by: Publisher, message: Message, receivers: Sequence[str], outcome: PersistOutcome
    ) -> None:
        by.waiting -= 1
        if outcome is PersistOutcome.KEPT:
            by.kept.append(message.id)
            self._stored.append(message.id)
            if receivers:
                self.queue.append(message)
        elif outcome is PersistOutcome.REFUSED:
            by.refused.append(message.id)
        else:
            assert outcome is PersistOutcome.REPEATED
            by.repeated.append(message.id)

    def _pass_on(self) -> None:
        by = self.random.choice(self.publishers)
        if not by.waiting:
            message = message_of(self.new_id(), by.name)
            self.passed.add(message.id)
            self.shard.log.pass_on(entry_of(message))

    def _state(self) -> None:
        name = self.random.choice(["x", "y", "z"])
        value = "" if name in self.shard.facts else "1"
        if value:
            self.shard.facts[name] = value
        else:
            del self.shard.facts[name]
        self.shard.log.state({name: value}, 0.0, lambda _: None)

    # Taking

    def _take(self) -> None:
        if self.reading != self.confirmed and not self.taking:
            # Something was not taken: begin again behind what is.
            self.reading = self.confirmed
        before, behind = self.reading, self.reading + 1
        self.reading = behind
        self.taking += 1
        messages = []
        if self.random.random() < 0.7:
            messages.append(message_of(BASE + 1000 * behind + OTHER, "eve"))
        self._durable |= {message.id for message in messages}
        step = Step(OTHER, place_of(before), place_of(behind))
        pairs = [(message, [JOE]) for message in messages]
        self.shard_log.take(step, pairs, done=partial(self._took, before, behind, messages))

    def _took(self, before: int, behind: int, messages: Sequence[Message], taken: Taken) -> None:
        self.taking -= 1
        if taken.taking is Taking.DONE:
            assert before == self.confirmed, "a call took what it must not take"
            self.confirmed = behind
            self.queue += messages
            self._stored += [message.id for message in messages]
            self.shard.of_others = {OTHER: TakenLog(place_of(behind), "")}
        elif taken.taking is Taking.ELSEWHERE:
            self.elsewhere += 1
            assert taken.found == place_of(self.confirmed), "the store has another place"

    # The end

    async def turn(self, count: int) -> None:
        self.link.carry_out(count)
        self.link.answer(count)
        await asyncio.sleep(0)

    async def end(self) -> None:
        """Let everything be carried out and answered: nothing fails any more."""
        self.link.lacks_memory, self.link.is_up = False, True
        await self._come_to_rest()
        for _ in range(5):
            self._state()
        self.link.is_moving = True
        await self._come_to_rest()
        # A store that went back is noticed at the next call.
        self._take()
        await self._come_to_rest()

    async def _come_to_rest(self) -> None:
        for _ in range(5000):
            self.shard.log.flush(0.0)
            await self.turn(99)
            if not self.link.sent and self.store.is_available and not self._is_waiting():
                return
        raise AssertionError("the store does not come to rest")

    def _is_waiting(self) -> bool:
        return self.taking > 0 or any(by.waiting for by in self.publishers)

    async def close(self) -> None:
        await self.store.close(0)
        self.link.close()

    def frames(self) -> list[tuple[bytes, Any]]:
        return cast("list[tuple[bytes, Any]]", self.redis.xrange(KEYS.log))

    def hash(self, key: str) -> dict[str, str]:
        found: Any = self.redis.hgetall(key)
        return {name.decode(): value.decode() for name, value in found.items()}

    def check(self) -> None:
        frames = self.frames()
        entries = [each for _, found in frames for each in read(found[b"all"]).all_entries()]
        ids = [entry.id for entry in entries]
        assert self.goes_on or len(ids) == len({*ids}), "the log has a message twice"
        for by in self.publishers:
            own = [entry.id for entry in entries if entry.publisher == by.name]
            assert self.goes_on or own == sorted(own), (
                "a message is before an earlier one of its publisher"
            )
            durable = [e.id for e in entries if e.publisher == by.name and e.flags & DURABLE]
            assert {*by.kept} <= {*durable}, "the log lacks a message that is kept"
            assert {*durable} <= {*by.kept}, "the log has a message that is not kept"
        keys = [key for id in ids if (key := self.keys.get(id))]
        assert self.goes_on or len(keys) == len({*keys}), "a repeat is in the log"
        self._check_books(frames)
        assert {**self.shard.facts} == _without_place(self.hash(KEYS.facts)), "facts differ"
        meta = self.hash(KEYS.meta)
        assert meta.get(f"place {OTHER}", place_of(0)) == place_of(self.confirmed), "places differ"
        self._check_queue()

    def _check_books(self, frames: Sequence[tuple[bytes, Any]]) -> None:
        """The owner has heard of each frame of this opening, in order, and the totals are right."""
        nonce = self.store.epoch.rpartition(".")[2].encode()
        own = [int(id.split(b"-")[1]) for id, found in frames if found[b"place"].startswith(nonce)]
        assert [n for n, _, _ in self.shard.appended] == own, "the owner heard of other frames"
        end = self.hash(KEYS.meta).get("log", "")
        begun = self.shard.begun[-1].end if self.shard.begun else ""
        appended = sum(count for _, count, _ in self.shard.appended)
        assert _total(end) == _total(begun) + appended, "the total is wrong"
        before = b""
        for _, found in frames:
            assert self.goes_on or found[b"before"] == before
            before = found[b"place"]

    def _check_queue(self) -> None:
        stored = {id for id in map(int, self.hash(KEYS.bodies)) if self._has_joe(id)}
        queue = [message.id for message in self.queue]
        assert len(queue) == len({*queue}), "something was taken twice"
        assert {*queue} - self.lost <= stored, "the store lacks a message"
        assert stored <= {*queue}, "the store has a message that is in no queue"

    def _has_joe(self, id: int) -> bool:
        return bool(self.redis.sismember(KEYS.receivers(id), JOE))


def message_of(id: int, sender: str, key: str = "") -> Message:
    message = Message(b"{}", id=id, channel=f"/{sender}", sender=sender)
    if key:
        PublishKey(key).identify(message)
    return message


def place_of(n: int) -> str:
    return f"xxxxxxxx 1-{n} {n}" if n else ""


def _total(place: str) -> int:
    return int(place.rpartition(" ")[2] or 0)


def _without_place(facts: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if name}
