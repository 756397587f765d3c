"""What the store should hold, in the simplest of forms, beside what it holds."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from redis import Redis

from app.delivery.keeper import Kept, Mark
from app.store import records, scripts
from app.store.scripts import Call, Take
from tests.store.desk import BASE, KEYS, letter, message, session

if TYPE_CHECKING:
    from app.delivery.dead_letters import DeadLetter
    from app.delivery.messages import Message
    from app.delivery.session_record import SessionRecord

SESSIONS = ["joe/1", "ann/1", "eve/1"]
EPOCH = "seed-1"


class Told(Protocol):
    """Whoever is told what is to be kept."""

    def save(self, record: "SessionRecord") -> None: ...

    def keep(
        self, message: "Message", keys: Sequence[str], done: Callable[[Kept], None]
    ) -> None: ...

    def mark(self, key: str, marks: Sequence[Mark]) -> None: ...

    def settle(self, key: str, ids: Sequence[int]) -> None: ...

    def bury(self, letters: Sequence["DeadLetter"], key: str | None) -> None: ...

    def forget(self, key: str) -> None: ...


class Room:
    """What is in a store, and scripts without a line."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis

    def open(self) -> None:
        self.redis.flushall()
        self.call(scripts.open_store(KEYS, seed="seed", node="test"))

    def call(self, call: Call) -> Any:
        script = self.redis.register_script(call.script.source)
        return script(keys=call.keys, args=call.args)

    def hash(self, key: str) -> dict[str, str]:
        found: Any = self.redis.hgetall(key)
        return {name.decode(): value.decode() for name, value in found.items()}

    def members(self, key: str) -> set[str]:
        found: Any = self.redis.zrange(key, 0, -1)
        return {member.decode() for member in found}

    def names(self, pattern: str) -> set[str]:
        found: Any = self.redis.keys(pattern)
        return {name.decode() for name in found}


class Model:
    """What the store should hold, in the simplest of forms."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.queues: dict[str, dict[int, str]] = {key: {} for key in SESSIONS}
        self.letters: dict[str, DeadLetter] = {}
        self.replayed: set[str] = set()

    def check(self, room: Room) -> None:
        assert set(room.hash(KEYS.sessions)) == self.sessions
        counts: dict[str, int] = {}
        for key, queue in self.queues.items():
            assert room.hash(KEYS.queue(key)) == {str(id): entry for id, entry in queue.items()}
            for id in queue:
                counts[str(id)] = counts.get(str(id), 0) + 1
        assert set(room.hash(KEYS.bodies)) == set(counts)
        shared = {id: str(count) for id, count in counts.items() if count > 1}
        assert room.hash(KEYS.refs) == shared
        self.check_letters(room)

    def check_letters(self, room: Room) -> None:
        found = {
            id: records.unpack_letter(record.encode())
            for id, record in room.hash(KEYS.dead).items()
        }
        assert set(found) == set(self.letters)
        assert {id for id, letter in found.items() if letter.replays} == self.replayed
        indexes: dict[str, set[str]] = {}
        for id, dead in self.letters.items():
            for index in KEYS.indexes(dead):
                indexes.setdefault(index, set()).add(id)
        assert room.names("{test}:dead:*") - {KEYS.prints} == set(indexes)
        for index, ids in indexes.items():
            assert room.members(index) == ids
        prints: Any = room.redis.zrange(KEYS.prints, 0, -1, withscores=True)
        assert {KEYS.by_fingerprint(name.decode()): int(count) for name, count in prints} == {
            index: len(ids) for index, ids in indexes.items() if index.startswith("{test}:dead:p")
        }


class Both:
    """A store and the model, told the same."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self.model = Model()
        self.letters = 0
        self.jobs = 0

    def save(self, key: str) -> None:
        self.told.save(session(key))
        self.model.sessions.add(key)

    def keep(self, n: int, keys: Sequence[str]) -> None:
        self.told.keep(message(n), keys, ignore)
        for key in keys:
            self.model.queues[key].setdefault(BASE + n, "")

    def mark(self, n: int, key: str, seq: int) -> None:
        queue = self.model.queues[key]
        # Nobody hands over what is not in the queue.
        if BASE + n in queue:
            self.told.mark(key, [Mark(BASE + n, seq, 1, 1, 0)])
            _, is_replayed, generation = queue[BASE + n].partition("g")
            queue[BASE + n] = f"0 {seq} 1 1 0{is_replayed}{generation}"

    def settle(self, n: int, key: str) -> None:
        self.told.settle(key, [BASE + n])
        self.model.queues[key].pop(BASE + n, None)

    def bury(self, n: int, key: str, *, is_durable: bool) -> None:
        self.letters += 1
        dead = letter(1000 + self.letters, of=n, receiver=key, channel=f"/orders/{n % 2}")
        self.told.bury([dead], key if is_durable else None)
        if is_durable:
            self.model.queues[key].pop(BASE + n, None)
        self.model.letters[dead.id] = dead

    def forget(self, key: str) -> None:
        self.told.forget(key)
        self.model.sessions.discard(key)
        self.model.queues[key].clear()

    def remove(self, at: int) -> Call | None:
        if not self.model.letters:
            return None
        id = sorted(self.model.letters)[at % len(self.model.letters)]
        self.model.replayed.discard(id)
        return scripts.letters_remove(KEYS, EPOCH, [self.model.letters.pop(id)])

    def replay(self, at: int) -> Call | None:
        if not self.model.letters:
            return None
        id = sorted(self.model.letters)[at % len(self.model.letters)]
        dead = self.model.letters[id]
        queue = self.model.queues[dead.key]
        is_there = dead.key in self.model.sessions and dead.message not in queue
        if is_there and id not in self.model.replayed:
            self.model.replayed.add(id)
            queue[dead.message] = "g1"
        # A job asks again for what it took only if it was not answered.
        self.jobs += 1
        return scripts.replay_take(KEYS, EPOCH, str(self.jobs), [Take(dead, dead.key, True)])


def ignore(kept: Kept) -> None:
    pass
