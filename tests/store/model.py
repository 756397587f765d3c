"""A naive model of what the store should hold, and its comparison with the store."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from redis import Redis

from holdfast.delivery.messages.former_attempts import FormerAttempts, tried
from holdfast.delivery.messages.marks import BatchMark, Mark
from holdfast.delivery.messages.outcomes import ACKED, Move, Outcome
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.store.format import letter_records, records, scripts
from holdfast.store.format.opening_scripts import open_store
from holdfast.store.format.scripts import ScriptCall, Take
from tests.store.numbering import Numbering, meaning
from tests.store.store_process import BASE, DEPLOYMENT, KEYS, letter, message, queue_of, session

if TYPE_CHECKING:
    from holdfast.delivery.letters.dead import DeadLetter
    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.messages.session_record import Recorded

SESSIONS = ["joe/1", "ann/1", "eve/1"]
NONCE = "nonce000"
EPOCH = f"seed-1.{NONCE}"


def opening(nonce: str, instead_of: Collection[str] = ()) -> ScriptCall:
    """The call that opens a store."""
    return open_store(
        KEYS,
        seed="seed",
        node="test",
        nonce=nonce,
        deployment=DEPLOYMENT,
        instead_of=instead_of,
    )


class StoreLike(Protocol):
    """The store, or something that takes its place."""

    def save(self, record: "Recorded") -> None: ...

    def keep(
        self,
        message: "Message",
        keys: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: Mapping[str, bytes] = ...,
    ) -> None: ...

    def save_requests(self, fields: Mapping[str, bytes]) -> None: ...

    def mark(self, key: str, marks: Sequence[Mark]) -> None: ...

    def move(self, moves: Sequence[Move]) -> None: ...

    def settle(self, key: str, ids: Sequence[int], outcome: Outcome) -> None: ...

    def dead_letter(self, letters: Sequence["DeadLetter"], key: str | None) -> None: ...

    def mark_batch(self, key: str, batch: BatchMark) -> None: ...

    def marked(self, key: str, ids: Collection[int]) -> None: ...

    def forget(self, key: str, ids: Sequence[int]) -> None: ...


class Room:
    """Shows what is in a store, and calls scripts without a store link."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.numbering = Numbering(NONCE)

    def open(self) -> None:
        self.redis.flushall()
        self.numbering = Numbering(NONCE)
        self.call(opening(NONCE))

    def call(self, call: ScriptCall) -> Any:
        """Make the call; what is called again is a repeat."""
        script = self.redis.register_script(call.script.source)
        reply = script(keys=call.keys, args=self.numbering.words(call))
        return meaning(call, reply)

    def hash(self, key: str) -> dict[str, str]:
        found: Any = self.redis.hgetall(key)
        # Checksums are no text.
        return {
            name.decode(): value.decode(errors="surrogateescape") for name, value in found.items()
        }

    def queue(self, key: str) -> dict[int, str]:
        def members(name: str) -> Any:
            return self.redis.smembers(name)

        return queue_of(key, self.hash, members)

    def members(self, key: str) -> set[str]:
        found: Any = self.redis.zrange(key, 0, -1)
        return {member.decode() for member in found}

    def names(self, pattern: str) -> set[str]:
        found: Any = self.redis.keys(pattern)
        return {name.decode() for name in found}


class Model:
    """A naive model of what the store should hold."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.requests: dict[str, str] = {}
        self.queues: dict[str, dict[int, str]] = {key: {} for key in SESSIONS}
        # The last batch of each session, and all that was ever in its batches.
        self.batches: dict[str, set[int]] = {key: set() for key in SESSIONS}
        self.known: dict[str, set[int]] = {key: set() for key in SESSIONS}
        self.letters: dict[str, DeadLetter] = {}
        self.replayed: set[str] = set()

    def check(self, room: Room) -> None:
        assert set(room.hash(KEYS.sessions)) == self.sessions
        requests = {
            name: records.without_sum(name, value.encode(errors="surrogateescape")).decode()
            for name, value in room.hash(KEYS.requests).items()
        }
        assert requests == self.requests
        for key, queue in self.queues.items():
            assert room.queue(key) == queue
            assert {int(id) for id in room.hash(KEYS.marks(key))} <= set(queue)
        wanted = {id for queue in self.queues.values() for id in queue}
        bodies = room.hash(KEYS.bodies)
        assert {int(id) for id in bodies} == wanted
        spread = {int(id) for id, record in bodies.items() if not record.startswith("@")}
        assert room.names(KEYS.receivers(0)[:-1] + "*") == {KEYS.receivers(id) for id in spread}
        self.check_letters(room)

    def check_letters(self, room: Room) -> None:
        found = {
            id: letter_records.unpack_letter(record.encode())
            for id, record in room.hash(KEYS.dead).items()
        }
        assert set(found) == set(self.letters)
        assert {id for id, letter in found.items() if letter.replays} == self.replayed
        indexes: dict[str, set[str]] = {}
        for id, dead in self.letters.items():
            for index in KEYS.indexes(dead):
                indexes.setdefault(index, set()).add(id)
        assert room.names(f"{KEYS.dead}:*") - {KEYS.prints} == set(indexes)
        for index, ids in indexes.items():
            assert room.members(index) == ids
        prints: Any = room.redis.zrange(KEYS.prints, 0, -1, withscores=True)
        assert {KEYS.letters_by("print", name.decode()): int(count) for name, count in prints} == {
            index: len(ids) for index, ids in indexes.items() if index.startswith(f"{KEYS.dead}:p")
        }


def sized(n: int) -> "Message":
    """The message with this number. Each second one is too long to be stored with its receiver."""
    return message(n, "hello" if n % 2 else "x" * records.MOST_OF_ONE)


class Both:
    """Does the same to a store and to the model."""

    def __init__(self, store: StoreLike) -> None:
        self.store = store
        self.model = Model()
        self.letters = 0
        self.jobs = 0

    def save(self, key: str) -> None:
        self.store.save(session(key))
        self.model.sessions.add(key)

    def keep(self, n: int, keys: Sequence[str]) -> None:
        # A message that was handed over only comes again as a replayed one.
        keys = [key for key in keys if BASE + n not in self.model.known[key]]
        self.store.keep(sized(n), keys, ignore)
        for key in keys:
            self.model.queues[key].setdefault(BASE + n, "")

    def ask(self, n: int, key: str) -> None:
        self.store.save_requests({address(n): key.encode()})
        self.model.requests[address(n)] = key

    def answer(self, n: int, of: int, key: str) -> None:
        """Keep a message that is the reply to a request, and ends it."""
        if BASE + n not in self.model.known[key]:
            self.store.keep(sized(n), [key], ignore, {address(of): b""})
            self.model.queues[key].setdefault(BASE + n, "")
            self.model.requests.pop(address(of), None)

    def hand_over(self, key: str, seq: int) -> None:
        queue, in_flight = self.model.queues[key], self.model.batches[key]
        # Only a session with nothing in flight gets a batch that needs no marks.
        waiting = [id for id, entry in queue.items() if " " not in entry]
        if waiting and in_flight.isdisjoint(queue):
            self.store.mark_batch(key, BatchMark(2, seq, waiting))
            self.model.batches[key] = set(waiting)
            self.model.known[key] |= self.model.batches[key]
            for at, id in enumerate(waiting, seq):
                queue[id] = f"{at} {at} 2 1 0{queue[id]}"

    def mark(self, n: int, key: str, seq: int) -> None:
        queue = self.model.queues[key]
        self.model.batches[key].discard(BASE + n)
        # Nobody hands over what is not in the queue.
        if BASE + n in queue:
            self.store.mark(key, [Mark(BASE + n, seq, 1, 1, 0)])
            _, is_replayed, generation = queue[BASE + n].partition("g")
            queue[BASE + n] = f"0 {seq} 1 1 0{is_replayed}{generation}"

    def move(self, n: int, source: str, target: str, attempts: int) -> None:
        # A session does not get a message again that it was handed; see `keep`.
        if source == target or BASE + n in self.model.known[target]:
            return
        queues = self.model.queues
        if BASE + n not in queues[source]:
            return
        moved = message(n)
        if attempts:
            moved = tried(moved, FormerAttempts(attempts, attempts, ()))
        # A session that has a copy keeps its own attempts.
        new = int(BASE + n not in queues[target])
        self.store.move([Move(moved, source, [target], new, new)])
        del queues[source][BASE + n]
        self.model.batches[source].discard(BASE + n)
        if new:
            queues[target][BASE + n] = f"0 0 0 {attempts} {attempts}" if attempts else ""

    def send_away(self, n: int, source: str) -> None:
        """Let the message leave for another shard."""
        if BASE + n in self.model.queues[source]:
            self.store.move([Move(message(n), source, (), 0, 0)])
            del self.model.queues[source][BASE + n]
            self.model.batches[source].discard(BASE + n)

    def settle(self, n: int, key: str) -> None:
        # Nobody settles what is not in the queue: it may have moved on.
        if BASE + n in self.model.queues[key]:
            self.store.settle(key, [BASE + n], ACKED)
            del self.model.queues[key][BASE + n]

    def dead_letter(self, n: int, key: str, *, is_durable: bool) -> None:
        self.letters += 1
        dead = letter(1000 + self.letters, of=n, receiver=key, channel=f"/orders/{n % 2}")
        is_queued = is_durable and BASE + n in self.model.queues[key]
        self.store.dead_letter([dead], key if is_queued else None)
        if is_queued:
            del self.model.queues[key][BASE + n]
        self.model.letters[dead.id] = dead

    def forget(self, key: str) -> None:
        queue = self.model.queues[key]
        self.store.forget(key, list(queue))
        self.model.sessions.discard(key)
        queue.clear()

    def remove(self, at: int) -> ScriptCall | None:
        if not self.model.letters:
            return None
        id = sorted(self.model.letters)[at % len(self.model.letters)]
        self.model.replayed.discard(id)
        return scripts.letters_remove(KEYS, [self.model.letters.pop(id)])

    def replay(self, at: int) -> ScriptCall | None:
        if not self.model.letters:
            return None
        id = sorted(self.model.letters)[at % len(self.model.letters)]
        dead = self.model.letters[id]
        queue = self.model.queues[dead.key]
        is_there = dead.key in self.model.sessions and dead.message not in queue
        if is_there and id not in self.model.replayed:
            self.model.replayed.add(id)
            queue[dead.message] = "g1"
            self.store.marked(dead.key, (dead.message,))
        # A job asks again for what it took only if it was not answered.
        self.jobs += 1
        return scripts.replay_take(KEYS, str(self.jobs), [Take(dead, dead.key, True)])


def ignore(kept: PersistOutcome) -> None:
    pass


def address(n: int) -> str:
    return f"/ret/x/400000{n}"
