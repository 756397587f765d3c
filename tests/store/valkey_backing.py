"""A real Valkey behind a server that a test moves step by step."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from app.bayeux.server import Bayeux
from app.delivery.dead_letters import DeadLetter
from app.delivery.deaths import Buried
from app.delivery.guard import Held
from app.delivery.keeper import Batch, Keeper, Kept, Mark
from app.delivery.letter_room import LetterRoom
from app.delivery.messages import Message
from app.delivery.session_record import Recorded
from app.store.address import Address
from app.store.keeping import Store
from app.store.keys import Keys
from app.store.line import Line
from app.store.records import unpack_entry, unpack_letter
from app.store.scripts import SCRIPTS
from tests.store.desk import queue_of
from tests.store.servers import ValkeyServer
from tests.unit.bayeux.delivery_store import Found, number_in

KEYS = Keys("test")
T = TypeVar("T")


class Desk:
    """One life of a server at the store: what it asks is answered when a test says so."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.is_dead = False
        # Who is to be called in which order, as far as that is known.
        self._calls: list[list[Callable[[], None]]] = []
        self._waiting: list[Callable[[Kept], None]] = []

    @property
    def is_available(self) -> bool:
        return self.store.is_available

    @property
    def takes_messages(self) -> bool:
        return self.store.takes_messages

    @property
    def is_prompt(self) -> bool:
        # How fast the machine is must not matter here.
        return True

    @property
    def is_full(self) -> bool:
        return self.store.is_full

    @property
    def keys_dropped(self) -> int:
        return self.store.keys_dropped

    @property
    def letter_room(self) -> LetterRoom:
        return self.store.letter_room

    def keep(self, message: Message, keys: Sequence[str], done: Callable[[Kept], None]) -> None:
        call = self._call()
        self._waiting.append(done)
        self.store.keep(message, keys, lambda kept: call.append(partial(self._tell, done, kept)))

    def _tell(self, done: Callable[[Kept], None], kept: Kept) -> None:
        self._waiting.remove(done)
        done(kept)

    def after(self, done: Callable[[], None]) -> None:
        call = self._call()
        self.store.after(lambda: call.append(done))

    def _call(self) -> list[Callable[[], None]]:
        call: list[Callable[[], None]] = []
        self._calls.append(call)
        return call

    def mark(self, key: str, marks: Sequence[Mark]) -> None:
        self.store.mark(key, marks)

    def hand_over(self, key: str, batch: Batch) -> None:
        self.store.hand_over(key, batch)

    def settle(self, key: str, ids: Sequence[int]) -> None:
        self.store.settle(key, ids)

    def bury(self, dead: Sequence[Buried], key: str | None) -> None:
        self.store.bury(dead, key)

    def save(self, session: Recorded) -> None:
        self.store.save(session)

    def forget(self, key: str, ids: Sequence[int]) -> None:
        self.store.forget(key, ids)

    def hold(self, channel: str, held: Held) -> None:
        self.store.hold(channel, held)

    def release(self, channel: str) -> None:
        self.store.release(channel)

    def flush(self) -> None:
        self.store.flush()

    # What tests do

    def answer(self) -> bool:
        """Everything that the store has answered is told, in the order of the questions."""
        calls, self._calls = self._calls, []
        for call in calls:
            for done in call:
                done()
        return bool(calls)

    def lose_patience(self) -> None:
        for done in list(self._waiting):
            done(Kept.UNKNOWN)


class ValkeyBacking:
    """The store of the machine's server, on a Valkey that forgets nothing when it is killed."""

    def __init__(self, server: ValkeyServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._server.ask("FLUSHALL")
        self._server.ask("SCRIPT", "FLUSH")
        self.is_refusing = False
        self._is_there = True
        self._desk, self._line = self._run(self._open())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    async def _open(self) -> tuple[Desk, Line]:
        line = Line(
            Address.of(self._server.url),
            scripts=SCRIPTS,
            on_state=lambda is_up, why: None,
            random=random.random,
        )
        await line.open()
        store = Store(
            line,
            KEYS,
            node="test",
            seed=lambda: f"{random.getrandbits(64):x}",
            on_flushed=_never,
            on_fenced=_never,
        )
        await store.open()
        return Desk(store), line

    async def _all_answered(self) -> None:
        answered = asyncio.Event()
        self._desk.store.after(answered.set)
        await asyncio.wait_for(answered.wait(), 10)

    async def _until(self, is_there: bool) -> None:
        async with asyncio.timeout(10):
            while self._desk.store.is_available != is_there:  # noqa: ASYNC110 - has no event
                await asyncio.sleep(0.005)

    # What the machine does

    @property
    def witness(self) -> None:
        """Nobody writes a journal."""

    def serve(self, server: Bayeux) -> None:
        """It needs nothing of its server."""

    @property
    def keeper(self) -> Keeper:
        return self._desk

    def answer(self) -> bool:
        if not self._is_there:
            return False
        self._run(self._all_answered())
        return self._desk.answer()

    def refuse(self, *, is_full: bool) -> None:
        self._run(self._all_answered())
        self.is_refusing = is_full
        self._server.set(maxmemory="1" if is_full else "0")

    def overflow(self, *, is_full: bool) -> bool:
        return False

    def lose_patience(self) -> None:
        self._desk.lose_patience()

    def go_away(self) -> None:
        self.refuse(is_full=False)
        self._is_there = False
        self._server.kill()
        self._run(self._until(is_there=False))

    def come_back(self) -> None:
        self._server.start()
        self._run(self._until(is_there=True))
        self._is_there = True

    def reopen(self) -> list[Found]:
        """What was told the store before its server was killed has been done."""
        if self._is_there:
            self.refuse(is_full=False)
        self._leave()
        if not self._is_there:
            self._server.start()
            self._is_there = True
        self._desk, self._line = self._run(self._open())
        return self._run(self._load())

    async def _load(self) -> list[Found]:
        store = self._desk.store

        def settle(key: str, messages: Sequence[Message]) -> None:
            store.settle(key, [message.id for message in messages])

        return [(each.record, each.entries) async for each in store.load(settle)]

    def marks(self, key: str) -> list[tuple[int, Mark]]:
        self._run(self._all_answered())
        entries = queue_of(key, self._texts, lambda name: self._server.ask("SMEMBERS", name))
        marks = [unpack_entry(id, entry.encode())[0] for id, entry in entries.items()]
        bodies = self._pairs(KEYS.bodies)
        ordered = sorted(marks, key=lambda mark: (not mark.position, mark.position, mark.id))
        return [(number_in(bodies[b"%d" % mark.id].partition(b"\n")[2]), mark) for mark in ordered]

    def dead(self) -> Sequence[DeadLetter]:
        self._run(self._all_answered())
        return [*map(unpack_letter, self._pairs(KEYS.dead).values())]

    def _texts(self, key: str) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self._pairs(key).items()}

    def _pairs(self, key: str) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = self._server.ask("HGETALL", key)
        return found

    def close(self) -> None:
        if not self._is_there:
            self._server.start()
        self._server.set(maxmemory="0")
        self._leave()

    def _leave(self) -> None:
        self._run(self._desk.store.close(0))
        self._run(self._line.close())


def _never() -> None:
    raise AssertionError("nobody else is here")
