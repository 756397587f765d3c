"""A store on a real server, and messages to put into it."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import orjson

from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark, Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import DISCARDED
from holdfast.delivery.messages.publish_key import PublishKey
from holdfast.delivery.messages.session_record import SessionRecord
from holdfast.delivery.messages.trails import Attempt
from holdfast.delivery.ports.journal_port import NO_JOURNAL, DeliveryJournal
from holdfast.store.audit import Audit
from holdfast.store.format.deployment import Deployment
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.log_scripts import LOG_SCRIPTS
from holdfast.store.format.records import pack_mark, receiver_in, unpack_batch
from holdfast.store.format.scripts import SCRIPTS
from holdfast.store.letters.administration import Letters
from holdfast.store.links.link import StoreLink
from holdfast.store.links.reader import Reader
from holdfast.store.opening.asking_to_open import Opening
from holdfast.store.store import Store
from holdfast.store.writing.loading import LoadedSession
from holdfast.store.writing.pending_publishes import Confirm
from holdfast.store.writing.reconciliation import Knowledge
from tests.store.servers import ValkeyServer, primary_at

if TYPE_CHECKING:
    from holdfast.delivery.messages.storing import PersistOutcome

KEYS = RedisKeys("test")
DEPLOYMENT = Deployment("test", bytes(32))
_WAIT_LIMIT_S = 60.0
BASE = 1_763_000_000_000_000_000
# Continues over restarts, as the server's clock does.
_now = itertools.count(BASE + 1_000_000_000)


def message(
    n: int, data: object = "hello", *, channel: str = "/orders/new", key: str = ""
) -> Message:
    """The message with this number."""
    wire = orjson.dumps({"channel": channel, "data": data})
    message = Message(wire, id=BASE + n, channel=channel, sender="client/ann/2")
    message.is_durable = True
    if key:
        PublishKey(key).identify(message)
    return message


def letter(
    n: int,
    *,
    of: int | None = None,
    channel: str = "/orders/new",
    receiver: str = "joe/1",
    code: str = "user.update.illegalArgument",
    reason: str = "no such order",
    generation: int = 0,
) -> DeadLetter:
    """The dead letter with this number, of the message with that one."""
    dead = message(n if of is None else of, channel=channel)
    dead.generation = generation
    return DeadLetter.of(
        dead,
        id=str(BASE + n),
        receiver=f"client/{receiver}",
        code=code,
        reason=reason,
        attempts=(Attempt(n=1, time=1_763_000_000_000, node="n", transport="websocket"),),
        policy={"retries": 0},
    )


def session(key: str, **fields: Any) -> SessionRecord:
    """The record of a session."""
    subject, _, number = key.rpartition("/")
    return SessionRecord(
        key=key,
        client_id=f"id-of-{key}",
        browser="browser",
        subject=subject,
        number=int(number),
        name=f"client/{key}",
        delivery={"retries": 0},
        acks=True,
        **fields,
    )


class StoreProcess:
    """One process that uses the store."""

    def __init__(
        self,
        server: ValkeyServer,
        link: StoreLink,
        journal: DeliveryJournal = NO_JOURNAL,
        monotonic: Callable[[], float] | None = None,
        keys: RedisKeys = KEYS,
        *,
        has_log: bool = False,
        confirm: Confirm | None = None,
    ) -> None:
        self.server = server
        self.link = link
        self.events: list[str] = []
        # How often the store had lost changes whenever it was told everything.
        self.told: list[int] = []
        self.states: list[bool] = []
        # The id that was given last, perhaps to a message that is not stored.
        self.newest = 0
        self.reader = Reader(primary_at(server.url))
        self.store = Store(
            link,
            keys,
            opening=Opening("test", DEPLOYMENT, seed=lambda: f"{random.getrandbits(64):x}"),
            stamp=lambda: self.newest,
            know=self.know,
            on_told=lambda: self.told.append(self.store.losses),
            on_fenced=lambda: self.events.append("fenced"),
            confirm=confirm,
            has_log=has_log,
            monotonic=monotonic,
        )
        self.store.journal.note_for(journal)
        self.known = Knowledge()
        self.kept: dict[int, list[PersistOutcome]] = {}
        self.letters = Letters(self.store, self.reader, _now.__next__)

        self.audit = Audit(self.store, self.reader)

    def know(self) -> Knowledge:
        """What a server would have in memory."""
        self.events.append("emptied")
        return self.known

    def new_id(self) -> str:
        return str(next(_now))

    def keep(
        self,
        message: Message,
        *keys: str,
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> None:
        answers = self.kept.setdefault(message.id - BASE, [])
        self.store.keep(message, keys, answers.append, hand_overs=hand_overs)

    async def answered(self) -> None:
        """Everything so far has been answered."""
        done = asyncio.Event()
        self.store.after(done.set)
        await asyncio.wait_for(done.wait(), 60)

    async def answered_line(self) -> None:
        """Everything that was sent over the link has been answered."""
        await self.link.ask("PING")

    async def loaded(self) -> dict[str, LoadedSession]:
        return {loaded.record.key: loaded async for loaded in self.store.load(self.settle)}

    def settle(self, key: str, messages: Sequence[Message]) -> None:
        self.store.settle(
            key, [message.id for message in messages], DISCARDED[Reason.SESSION_ENDED]
        )

    def hash(self, key: str) -> dict[str, str]:
        found = self.server.ask("HGETALL", key)
        # Checksums are no text.
        return {
            name.decode(): value.decode(errors="surrogateescape") for name, value in found.items()
        }

    def queue(self, key: str) -> dict[int, str]:
        """The stored entries of a session, with their marks."""
        found = queue_of(key, self.hash, lambda name: self.server.ask("SMEMBERS", name))
        return {id - BASE: entry for id, entry in found.items()}

    def bodies(self) -> set[int]:
        return {int(id) - BASE for id in self.hash(KEYS.bodies)}

    def receivers(self, n: int) -> set[str]:
        record = self.server.ask("HGET", KEYS.bodies, BASE + n) or b""
        return receivers_of(BASE + n, record, lambda name: self.server.ask("SMEMBERS", name))

    def dead(self) -> list[int]:
        return [int(id) - BASE for id in self.server.ask("ZRANGE", KEYS.all_dead, 0, -1)]

    def names(self) -> set[str]:
        return {key.decode() for key in self.server.ask("KEYS", "*")}


def receivers_of(
    id: int, record: bytes, members: Callable[[str], Iterable[bytes]], keys: RedisKeys = KEYS
) -> set[str]:
    """Who waits for a message: whom its record names, or who is in its set."""
    single = receiver_in(record)
    names = members(keys.receivers(id)) if single is None else (single,)
    return {each.decode() for each in names}


def queue_of(
    key: str,
    hash_of: Callable[[str], dict[str, str]],
    members: Callable[[str], Iterable[bytes]],
    keys: RedisKeys = KEYS,
) -> dict[int, str]:
    """The entries of a session in the store, with their marks or those of its last batch."""
    marks = hash_of(keys.marks(key))
    batch = hash_of(keys.handed).get(key)
    handed = {} if batch is None else {m.id: m for m in unpack_batch(batch.encode()).marks()}
    queue = {}
    for id, record in hash_of(keys.bodies).items():
        if key in receivers_of(int(id), record.encode(errors="surrogateescape"), members, keys):
            mark = pack_mark(handed[int(id)], {}).decode() if int(id) in handed else ""
            queue[int(id)] = marks.get(id, mark)
    return queue


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(_WAIT_LIMIT_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


def mark(n: int, seq: int = 0, *, batch: int = 0, position: int = 0) -> Mark:
    return Mark(BASE + n, seq, batch, attempts=1, redelivered=0, position=position)


def batch(*numbers: int, number: int = 1, seq: int = 1) -> BatchMark:
    """What a session was handed in one batch."""
    return BatchMark(number, seq, ids(*numbers))


def ids(*numbers: int) -> Sequence[int]:
    return [BASE + n for n in numbers]


@asynccontextmanager
async def store_process(
    server: ValkeyServer,
    *,
    is_open: bool = True,
    journal: DeliveryJournal = NO_JOURNAL,
    monotonic: Callable[[], float] | None = None,
    keys: RedisKeys = KEYS,
    has_log: bool = False,
    confirm: Confirm | None = None,
) -> AsyncIterator[StoreProcess]:
    """A process at work; its link is closed at the end as if it had been killed."""
    states: list[bool] = []
    link = StoreLink(
        primary_at(server.url),
        scripts=[*SCRIPTS, *LOG_SCRIPTS] if has_log else SCRIPTS,
        on_state=lambda is_up, _: states.append(is_up),
        random=random.random,
    )
    await link.open()
    process = StoreProcess(server, link, journal, monotonic, keys, has_log=has_log, confirm=confirm)
    process.states = states
    try:
        if is_open:
            await process.store.open()
        yield process
    finally:
        await process.store.close(0)
        await link.close()
        process.reader.close()
