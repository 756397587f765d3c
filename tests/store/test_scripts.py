"""The scripts against a naive model, with calls repeated as a bad connection repeats them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from app.delivery.keeper import Kept, Mark
from app.store import records, scripts
from app.store.scripts import Call, Take
from app.store.turn import Keeping, Turns
from tests.store.desk import BASE, KEYS, letter, message, session
from tests.store.servers import ValkeyServer

if TYPE_CHECKING:
    from app.delivery.dead_letters import DeadLetter

SESSIONS = ["joe/1", "ann/1", "eve/1"]
EPOCH = "seed-1"


class Room:
    """A store that was opened, spoken to without a line."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
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


@pytest.fixture
def redis(shared_valkey: ValkeyServer) -> Iterator[Redis]:
    with Redis.from_url(shared_valkey.url) as redis:
        yield redis


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
    """The store behind the turns, and the model beside it."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.model = Model()
        self.turns = Turns()
        self.letters = 0
        self.jobs = 0

    def save(self, key: str) -> None:
        self.turns.save(session(key))
        self.model.sessions.add(key)

    def keep(self, n: int, keys: Sequence[str]) -> None:
        self.turns.keep(Keeping(message(n), keys, ignore))
        for key in keys:
            self.model.queues[key].setdefault(BASE + n, "")

    def mark(self, n: int, key: str, seq: int) -> None:
        queue = self.model.queues[key]
        # Nobody hands over what is not in the queue.
        if BASE + n in queue:
            self.turns.mark(key, [Mark(BASE + n, seq, 1, 1, 0)])
            _, is_replayed, generation = queue[BASE + n].partition("g")
            queue[BASE + n] = f"0 {seq} 1 1 0{is_replayed}{generation}"

    def settle(self, n: int, key: str) -> None:
        self.turns.settle(key, [BASE + n])
        self.model.queues[key].pop(BASE + n, None)

    def bury(self, n: int, key: str, *, is_durable: bool) -> None:
        self.letters += 1
        dead = letter(1000 + self.letters, of=n, receiver=key, channel=f"/orders/{n % 2}")
        self.turns.bury([dead], key if is_durable else None)
        if is_durable:
            self.model.queues[key].pop(BASE + n, None)
        self.model.letters[dead.id] = dead

    def forget(self, key: str) -> None:
        self.turns.forget(key)
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


numbers = st.integers(0, 4)
keys = st.sampled_from(SESSIONS)
operations = st.one_of(
    st.tuples(st.just("save"), keys),
    st.tuples(st.just("keep"), numbers, st.lists(keys, min_size=1, unique=True)),
    st.tuples(st.just("keep"), numbers, st.lists(keys, min_size=1, unique=True)),
    st.tuples(st.just("mark"), numbers, keys, st.integers(1, 9)),
    st.tuples(st.just("settle"), numbers, keys),
    st.tuples(st.just("bury"), numbers, keys, st.booleans()),
    st.tuples(st.just("forget"), keys),
)
turns = st.lists(operations, max_size=12)
# Of the calls that will be repeated, those that the store has carried out before.
lost = st.lists(st.booleans(), max_size=40)
clearing = st.one_of(st.none(), st.tuples(st.sampled_from(["remove", "replay"]), st.integers(0, 9)))
windows = st.lists(st.tuples(st.lists(turns, max_size=3), clearing, st.lists(lost, max_size=2)))


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(windows)
def test_repeated_calls_leave_what_the_model_has(
    redis: Redis, given: list[tuple[list[Any], Any, list[list[bool]]]]
) -> None:
    both = Both(Room(redis))
    for given_turns, clear, attempts in given:
        calls = [call for turn in given_turns for call in calls_of(both, turn)]
        if clear is not None:
            name, at = clear
            last = getattr(both, name)(at)
            calls += [] if last is None else [last]
        for attempt in attempts:
            for call, was_carried_out in zip(calls, attempt, strict=False):
                # What is taken depends on what was there: it is never ahead of what it follows.
                is_early = call.script is scripts.REPLAY_TAKE and not all(attempt[: len(calls)])
                if was_carried_out and not is_early:
                    both.room.call(call)
        for call in calls:
            both.room.call(call)
        both.model.check(both.room)


def calls_of(both: Both, turn: list[Any]) -> list[Call]:
    for operation in turn:
        name, *words = operation
        if name == "bury":
            n, key, is_durable = words
            both.bury(n, key, is_durable=is_durable)
        else:
            getattr(both, name)(*words)
    return [outgoing.call for each in both.turns.take() for outgoing in each.calls(KEYS, EPOCH)]


# One by one


@pytest.fixture
def room(redis: Redis) -> Room:
    return Room(redis)


def everything() -> list[Call]:
    return [
        scripts.save(KEYS, "other", [session("joe/1")]),
        scripts.keep(KEYS, "other", [(message(1), ["joe/1"])]),
        scripts.mark(KEYS, "other", {"joe/1": {1: Mark(1, 1)}}),
        scripts.settle(KEYS, "other", {"joe/1": [1]}),
        scripts.bury(KEYS, "other", [(letter(1), None)]),
        scripts.forget(KEYS, "other", ["joe/1"]),
        scripts.letters_remove(KEYS, "other", [letter(1)]),
        scripts.replay_take(KEYS, "other", "1", [Take(letter(1), "joe/1", True)]),
        scripts.replay_note(KEYS, "other", "1", {"record": "{}"}),
        scripts.replay_forget(KEYS, "other", "1"),
    ]


@pytest.mark.parametrize("call", everything(), ids=lambda call: call.script.name)
def test_nobody_writes_without_the_epoch(room: Room, call: Call) -> None:
    before = room.names("*")
    with pytest.raises(ResponseError, match="EPOCH seed-1"):
        room.call(call)
    room.redis.flushall()
    with pytest.raises(ResponseError, match="EPOCH gone"):
        room.call(call)
    assert before == {KEYS.meta}
    assert room.names("*") == set()


def test_every_script_that_writes_is_known_to_the_line() -> None:
    assert {call.script for call in everything()} | {scripts.OPEN} == set(scripts.SCRIPTS)


def test_each_opening_takes_the_store_from_the_one_before(room: Room) -> None:
    epoch, newest = room.call(scripts.open_store(KEYS, seed="ignored", node="test"))
    assert (epoch, newest) == (b"seed-2", b"")
    with pytest.raises(ResponseError, match="EPOCH seed-2"):
        room.call(scripts.save(KEYS, "seed-1", [session("joe/1")]))
    room.call(scripts.save(KEYS, "seed-2", [session("joe/1")]))


def test_a_mark_leaves_it_known_that_the_message_was_replayed(room: Room) -> None:
    room.call(scripts.save(KEYS, EPOCH, [session("joe/1")]))
    room.call(scripts.bury(KEYS, EPOCH, [(letter(7, of=1, generation=11), None)]))
    take = Take(letter(7, of=1, generation=11), "joe/1", True)
    assert room.call(scripts.replay_take(KEYS, EPOCH, "17", [take])) == [b"taken"]
    room.call(scripts.mark(KEYS, EPOCH, {"joe/1": {1: Mark(BASE + 1, 3, 2, 1, 0)}}))
    assert room.hash(KEYS.queue("joe/1")) == {str(BASE + 1): "0 3 2 1 0g12"}
    mark, generation = records.unpack_entry(BASE + 1, b"0 3 2 1 0g12")
    assert (mark, generation) == (Mark(BASE + 1, 3, 2, 1, 0), 12)


def test_a_replayed_message_is_the_one_that_died(room: Room) -> None:
    room.call(scripts.save(KEYS, EPOCH, [session("joe/1")]))
    room.call(scripts.bury(KEYS, EPOCH, [(letter(7, of=1), None)]))
    take = Take(letter(7, of=1), "joe/1", True)
    room.call(scripts.replay_take(KEYS, EPOCH, "17", [take]))
    body = room.hash(KEYS.bodies)[str(BASE + 1)].encode()
    found = records.unpack_message(BASE + 1, body)
    assert (found.wire, found.channel, found.sender) == (
        message(1).wire,
        "/orders/new",
        "client/ann/2",
    )


def test_a_letter_is_taken_once_but_its_taker_hears_so_again(room: Room) -> None:
    room.call(scripts.save(KEYS, EPOCH, [session("joe/1")]))
    room.call(scripts.bury(KEYS, EPOCH, [(letter(7, of=1), None)]))
    take = Take(letter(7, of=1), "joe/1", True)
    for job, result in (("17", b"taken"), ("17", b"taken"), ("18", b"replayed")):
        assert room.call(scripts.replay_take(KEYS, EPOCH, job, [take])) == [result]
    assert room.hash(KEYS.replay("17")) == {"replayed": "1"}
    assert records.unpack_letter(room.hash(KEYS.dead)[take.letter.id].encode()).replays == 1


@pytest.mark.parametrize(
    ("prepare", "result"),
    [
        ([], b"gone"),
        ([scripts.bury(KEYS, EPOCH, [(letter(7, of=1), None)])], b"receiver"),
        (
            [
                scripts.bury(KEYS, EPOCH, [(letter(7, of=1), None)]),
                scripts.save(KEYS, EPOCH, [session("joe/1")]),
                scripts.keep(KEYS, EPOCH, [(message(1), ["joe/1"])]),
            ],
            b"waiting",
        ),
    ],
)
def test_a_letter_that_cannot_be_taken_stays_as_it_is(
    room: Room, prepare: list[Call], result: bytes
) -> None:
    for call in prepare:
        room.call(call)
    before = room.hash(KEYS.dead)
    take = Take(letter(7, of=1), "joe/1", True)
    assert room.call(scripts.replay_take(KEYS, EPOCH, "17", [take])) == [result]
    assert room.hash(KEYS.dead) == before


def test_a_letter_for_a_passing_session_is_only_marked(room: Room) -> None:
    room.call(scripts.bury(KEYS, EPOCH, [(letter(7, of=1), None)]))
    take = Take(letter(7, of=1), "joe/-5", False)
    assert room.call(scripts.replay_take(KEYS, EPOCH, "17", [take])) == [b"taken"]
    assert room.hash(KEYS.bodies) == {}
