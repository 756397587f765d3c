"""A real Valkey behind a server that a test moves step by step."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from hypothesis import HealthCheck, Phase, settings

from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.delivery.ports.journal_port import NO_JOURNAL, DeliveryJournal
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.topics.configured import TopicRecord
from holdfast.store.format.deployment import Deployment
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.letter_records import unpack_letter
from holdfast.store.format.records import receiver_in, unpack_batch, unpack_entry
from holdfast.store.format.scripts import SCRIPTS
from holdfast.store.links.link import StoreLink
from holdfast.store.opening.asking_to_open import Opening
from holdfast.store.store import Store
from holdfast.store.writing.loading import WithoutSession
from tests.store.servers import ValkeyServer, primary_at
from tests.store.store_process import receivers_of
from tests.unit.bayeux.slow_store import number_in
from tests.unit.delivery.fake_keeper import Found

KEYS = RedisKeys("test")
T = TypeVar("T")


def machine_settings(examples: int) -> settings:
    """Return the settings of a machine with a real store.

    A failure is shown as it was found: with a real store it takes too long to make it smaller.
    """
    return settings(
        max_examples=examples,
        stateful_step_count=25,
        report_multiple_bugs=False,
        print_blob=True,
        phases=set(Phase) - {Phase.shrink, Phase.explain},
        suppress_health_check=list(HealthCheck),
    )


class DelayedStore:
    """The store of one run of a server; the test decides when its calls are answered."""

    # How fast the machine is must not matter here.
    is_prompt = True

    def __init__(self, store: Store, turn: Callable[[], bool]) -> None:
        self.store = store
        # Called at the end of each turn.
        self.turn = turn
        # The callbacks in the order of the calls, as far as answers have come.
        self._calls: list[list[Callable[[], None]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def keep(
        self,
        message: Message,
        keys: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
        *,
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> None:
        call = self._call()

        def kept(outcome: PersistOutcome) -> None:
            call.append(partial(done, outcome))

        self.store.keep(message, keys, kept, fields, hand_overs=hand_overs)

    def after(self, done: Callable[[], None]) -> None:
        call = self._call()
        self.store.after(lambda: call.append(done))

    def _call(self) -> list[Callable[[], None]]:
        call: list[Callable[[], None]] = []
        self._calls.append(call)
        return call

    def dead_letter(
        self,
        dead: Sequence[UnwrittenLetter],
        key: str | None,
        done: Callable[[], None] | None = None,
    ) -> None:
        self.store.dead_letter(dead, key)
        if done is not None:
            self.after(done)

    # What tests do

    def answer(self) -> bool:
        """Call back for all that the store has answered, in the order of the calls."""
        calls, self._calls = self._calls, []
        for call in calls:
            for done in call:
                done()
        return bool(calls)


class ValkeyBacking:
    """The store of the machine's server, on a Valkey that loses nothing when it is killed."""

    def __init__(self, server: ValkeyServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._server.ask("FLUSHALL")
        self._server.ask("SCRIPT", "FLUSH")
        self._delayed, self._link = self._run(self._open())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    async def _open(self) -> tuple[DelayedStore, StoreLink]:
        link = StoreLink(
            primary_at(self._server.url),
            scripts=SCRIPTS,
            on_state=lambda is_up, why: None,
            random=random.random,
        )
        await link.open()
        store = Store(
            link,
            KEYS,
            opening=Opening("test", Deployment("test", bytes(32))),
            stamp=lambda: 0,
            know=_never,
            on_told=_never,
            on_fenced=_never,
        )
        await store.open()
        return DelayedStore(store, self.answer), link

    async def _all_answered(self) -> None:
        answered = asyncio.Event()
        self._delayed.store.after(answered.set)
        await asyncio.wait_for(answered.wait(), 60)

    # What the machine does

    @property
    def journal(self) -> DeliveryJournal:
        return NO_JOURNAL

    def ends(self) -> None:
        """There is no journal."""

    @property
    def keeper(self) -> StorePort:
        return cast("StorePort", self._delayed)

    def answer(self) -> bool:
        self._run(self._all_answered())
        return self._delayed.answer()

    def reopen(self) -> None:
        """Whatever the store was told before its server was killed has been done."""
        self._run(self._all_answered())
        self._leave()
        self._delayed, self._link = self._run(self._open())

    def load(self, without_session: WithoutSession) -> list[Found]:
        return self._run(self._load(without_session))

    async def _load(self, without_session: WithoutSession) -> list[Found]:
        return [
            (each.record, each.entries) async for each in self._delayed.store.load(without_session)
        ]

    def attempts(self) -> dict[str, dict[int, int]]:
        """By queue, the numbers of its messages and how often each was handed over."""
        self._run(self._all_answered())
        found: dict[str, dict[int, int]] = {}
        batches = self._pairs(KEYS.handed)
        for id, body in self._pairs(KEYS.bodies).items():
            for key in receivers_of(int(id), body, self._members, KEYS):
                mark = self._server.ask("HGET", KEYS.marks(key), id) or b""
                batch = batches.get(key.encode(), b"0 0")
                was_handed = not mark and int(id) in unpack_batch(batch).ids
                count = 1 if was_handed else unpack_entry(int(id), mark)[0].attempts
                found.setdefault(key, {})[_number_of(body)] = count
        return found

    def references(self) -> dict[int, set[str]]:
        """By its number, where each message is: queues and histories. Each is stored once."""
        self._run(self._all_answered())
        bodies = self._pairs(KEYS.bodies)
        sets = {
            KEYS.receivers(int(id)).encode()
            for id, body in bodies.items()
            if receiver_in(body) is None
        }
        assert {*self._server.ask("KEYS", f"{KEYS.prefix}to:*")} == sets
        return {
            _number_of(body): receivers_of(int(id), body, self._members, KEYS)
            for id, body in bodies.items()
        }

    def _members(self, name: str) -> Iterable[bytes]:
        found: Iterable[bytes] = self._server.ask("SMEMBERS", name)
        return found

    def session_keys(self) -> set[str]:
        return {each.decode() for each in self._pairs(KEYS.sessions)}

    def topic_records(self) -> Mapping[str, TopicRecord]:
        async def read() -> Mapping[str, TopicRecord]:
            return await self._delayed.store.loading().topics()

        return self._run(read())

    def dead(self) -> Sequence[DeadLetter]:
        self._run(self._all_answered())
        return [*map(unpack_letter, self._pairs(KEYS.dead).values())]

    def _pairs(self, key: str) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = self._server.ask("HGETALL", key)
        return found

    def close(self) -> None:
        self._leave()

    def _leave(self) -> None:
        self._run(self._delayed.store.close(0))
        self._run(self._link.close())


def _never() -> None:
    raise AssertionError("nobody else is here")


def _number_of(record: bytes) -> int:
    return number_in(record.rpartition(b"\n")[2])
