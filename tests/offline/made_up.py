"""A made-up deployment: what its shards have, as plain dictionaries, and a naive division."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import orjson
from hypothesis import strategies as st

from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.cluster.rows import UNTOLD
from holdfast.cluster.shards import Homes, ShardMap, first_map
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.session_record import SessionRecord
from holdfast.delivery.messages.storing import RequestFields
from holdfast.delivery.requests.stored_fields import OF_OTHERS
from holdfast.delivery.shared_queues.work import make_work
from holdfast.store.format import letter_records, records
from holdfast.store.format.keys import FIRST_GENERATION, RedisKeys
from holdfast.store.format.layouts import LAYOUT, NEWEST
from holdfast.store.format.records import receiver_in, with_set
from tests.store.servers import ValkeyServer

KEY = bytes(range(32))
IDS = ClientIds(KEY, secrets.token_bytes)
SUBJECTS = ("joe", "ann", "bob", "eve", "kim", "max")
GUESTS = tuple(f"anonymous/-{number}" for number in range(3))
HOMES = Homes({"/kept/*": 2, "/jobs/**": 1})
SHARED = (*(f"{name}/0" for name in SUBJECTS), "/kept/a", "/kept/b", "work:/jobs/a/0", "delay:/0")
CLOCKS = (1000, 100_000, 300)
LIFE_S = 24 * 3600


@dataclass(frozen=True)
class Division:
    """Who has what, without the code that is tested."""

    of_bucket: tuple[int, ...]
    homes: Homes

    @property
    def count(self) -> int:
        return max(self.of_bucket) + 1

    def of_subject(self, subject: str) -> int:
        return self.of_bucket[IDS.bucket_of(subject)]

    def of_channel(self, channel: str) -> int:
        for pattern, segments in self.homes.segments.items():
            if channel.startswith(pattern.rstrip("*")):
                first = "/".join(channel.split("/")[: segments + 1])
                return self.of_bucket[IDS.bucket_of(f"channel {first}")]
        first = "/".join(channel.split("/")[:2])
        return self.of_bucket[IDS.bucket_of(f"channel {first}")]

    def of(self, receiver: str, clients: Mapping[str, str]) -> int | None:
        """The shard of a receiver; None if it may be anywhere."""
        if receiver in clients and receiver in GUESTS:
            return self.of_bucket[int(clients[receiver][:3])]
        if receiver == "delay:/0" or receiver in GUESTS:
            return None
        if receiver.startswith("work:"):
            return self.of_channel(receiver[len("work:") : -len("/0")])
        if receiver.startswith("/"):
            return self.of_channel(receiver)
        return self.of_subject(receiver.partition("/")[0])


def divided(shards: ShardMap, homes: Homes = HOMES) -> Division:
    return Division(tuple(shards.of_bucket), homes if shards.count > 1 else Homes({}))


@dataclass
class MadeUp:
    """All that the shards have together."""

    # By session, its client id; its record; its last batch.
    clients: dict[str, str] = field(default_factory=dict)
    handed: dict[str, bytes] = field(default_factory=dict)
    # By id, the body; the queues and histories that have it; by receiver and id, a mark.
    bodies: dict[int, bytes] = field(default_factory=dict)
    receivers: dict[int, set[str]] = field(default_factory=dict)
    marks: dict[str, dict[int, bytes]] = field(default_factory=dict)
    letters: dict[str, DeadLetter] = field(default_factory=dict)
    # By key, the shard that has it, its age and the id of its message.
    keyed: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    topics: dict[str, bytes] = field(default_factory=dict)
    requests: dict[str, dict[str, bytes]] = field(default_factory=dict)
    held: dict[str, bytes] = field(default_factory=dict)
    remarks: dict[str, bytes] = field(default_factory=dict)

    def record(self, session: str) -> bytes:
        subject, _, number = session.rpartition("/")
        record = SessionRecord(
            key=session,
            client_id=self.clients[session],
            browser="",
            subject=subject,
            number=int(number),
            name=f"client/{session}",
            delivery={},
            acks=True,
            subscriptions=["/news"],
            timeout_s=3600.0,
        )
        return records.pack_session(record)


@st.composite
def made_up(draw: st.DrawFn) -> MadeUp:
    found = MadeUp()
    some = st.sampled_from
    names = draw(st.sets(some([f"{name}/{n}" for name in SUBJECTS for n in (1, 2)] + [*GUESTS])))
    for name in sorted(names):
        found.clients[name] = IDS.new(draw(st.integers(0, 999)))
        if draw(st.booleans()):
            found.handed[name] = b"1 1 7"
    numbers = count(1_750_000_000_000_000_000, 1000)
    _draw_messages(draw, found, numbers)
    _draw_work(draw, found, numbers)
    _draw_letters(draw, found, numbers)
    for key in draw(st.sets(some(["k1", "k2", "k3", "k4"]))):
        age = draw(some([0, 200, LIFE_S + 1]))
        found.keyed[key] = (draw(st.integers(0, 2)), age, next(numbers))
    for channel in draw(st.sets(some(["/kept/a", "/jobs/a", "/other"]))):
        found.topics[channel] = b'{"v":1}'
    for session in sorted(names)[:3]:
        may_answer = sorted(draw(st.sets(some([*sorted(names), "ann/1"]))))
        found.requests[session] = {
            f"{session}|7": request(session, may_answer),
            f"{session}|7 ann/1": b"true",
        }
    for channel in draw(st.sets(some(["/a", "/b"]))):
        hold = {"v": 1, "since": 5, "reason": "", "who": "operator", "until": None}
        found.held[channel] = orjson.dumps(hold)
    for print_ in draw(st.sets(some(["f1", "f2"]))):
        found.remarks[print_] = orjson.dumps({"v": 1, "note": print_})
    return found


def request(session: str, may_answer: Sequence[str]) -> bytes:
    """Return the record of a request of a session that these may answer."""
    record: dict[str, object] = {"requester": session, "responders": may_answer}
    record |= {"channel": "/a", "id": 9, "is_work": False, "mode": "all"}
    return orjson.dumps({**record, "timeout_ms": 5000, "deadline_ms": 1_750_000_000_000})


def _draw_messages(draw: st.DrawFn, found: MadeUp, numbers: Iterator[int]) -> None:
    everybody = [*sorted(found.clients), *SHARED]
    for id in (next(numbers) for _ in range(draw(st.integers(0, 12)))):
        waiting = draw(st.sets(st.sampled_from(everybody), min_size=1, max_size=5))
        found.bodies[id] = records.pack_message(Message(b'{"data":1}', id=id, channel="/news"))
        found.receivers[id] = waiting
        for receiver in sorted(waiting):
            if draw(st.booleans()):
                found.marks.setdefault(receiver, {})[id] = b"1 1 0 1 0"


JOB = "/jobs/a"
JOBS = f"work:{JOB}/0"


def _draw_work(draw: st.DrawFn, found: MadeUp, numbers: Iterator[int]) -> None:
    for id in (next(numbers) for _ in range(draw(st.integers(0, 6)))):
        message = Message(b'{"data":1}', id=id, channel=JOB)
        make_work(message)
        found.bodies[id] = records.pack_message(message)
        receiver = draw(st.sampled_from([*sorted(found.clients), JOBS]))
        found.receivers[id] = {receiver}
        if receiver == JOBS:
            continue
        mark = draw(st.sampled_from([b"", b"1 1 0 1 0", b"1 -1 0 1 1", b"handed"]))
        if mark == b"handed":
            found.handed[receiver] = found.handed.get(receiver, b"1 1") + b" %d" % id
        elif mark:
            found.marks.setdefault(receiver, {})[id] = mark


def leave_work(made: MadeUp, now: Division) -> None:
    """Let work wait in its queue that sessions of other shards had, all with one attempt."""
    for id, body in made.bodies.items():
        session = next(iter(made.receivers[id]))
        if b'"q":true' not in body or session == JOBS:
            continue
        if now.of(session, made.clients) == now.of_channel(JOB):
            continue
        was_handed = b" %d" % id in made.handed.get(session, b"")
        made.receivers[id] = {JOBS}
        if made.marks.get(session, {}).pop(id, None) or was_handed:
            made.marks.setdefault(JOBS, {})[id] = b"0 0 0 1 1"
        if not made.marks.get(session, {"": ""}):
            del made.marks[session]


def _draw_letters(draw: st.DrawFn, found: MadeUp, numbers: Iterator[int]) -> None:
    some = st.sampled_from
    names = [f"client/{name}" for name in (*sorted(found.clients), *SHARED[:2])]
    for id in (next(numbers) for _ in range(draw(st.integers(0, 6)))):
        message = Message(b'{"data":2}', id=id, channel=draw(some(["/news", "/jobs/a"])))
        code = draw(some(["user.update.bad", "user.update.slow"]))
        receiver = draw(some(names))
        letter = DeadLetter.of(message, id=str(id + 1), receiver=receiver, code=code, reason="why")
        found.letters[letter.id] = letter


def fill(valkey: ValkeyServer, made: MadeUp, now: Division, generation: int = 1) -> None:
    """Write it as servers of this division have written it."""
    valkey.ask("FLUSHALL")
    for shard in range(now.count):
        keys = RedisKeys("holdfast", shard, generation)
        meta: dict[str, Any] = {"version": LAYOUT, "generation": generation, "deployment": "here"}
        meta |= {"key": KEY.hex(), "seed": "s", "node": "n", "clock": CLOCKS[shard]}
        meta |= {"newest": f"{1_750_000_000_000_000_000 + shard:019d}", "fence": 1}
        if shard == 0 and now.count > 1:
            meta["shards"] = ShardMap(now.of_bucket).to_json()
            meta["homes"] = now.homes.to_json()
        valkey.ask("HSET", keys.meta, *(word for pair in meta.items() for word in pair))
        valkey.ask("HSET", keys.handed, "", " " * 65)
        for name, record in made.remarks.items():
            valkey.ask("HSET", keys.remarks, name, record)
            valkey.ask("ZADD", keys.remarked, 7, name)
        for channel, record in made.held.items():
            valkey.ask("HSET", keys.held, channel, record)
        valkey.ask("XADD", keys.audit, f"{10 + shard}-0", "who", shard)
        valkey.ask("XADD", keys.journal("n"), "1-1", "frame", shard)
    at = [RedisKeys("holdfast", shard, generation) for shard in range(now.count)]
    _fill_sessions(valkey, made, now, at)
    _fill_messages(valkey, made, now, at)
    _fill_letters(valkey, made, now, at)
    for channel, record in made.topics.items():
        valkey.ask("HSET", at[now.of_channel(channel)].topics, channel, record)
    for key, (first, age, id) in made.keyed.items():
        shard = min(first, now.count - 1)
        # The clock may be younger than the key.
        time = CLOCKS[shard] - age if age > LIFE_S else max(CLOCKS[shard] - age, 0)
        if time >= 0:
            valkey.ask("HSET", at[shard].keyed, key, f"{id}:{time}")
            valkey.ask("RPUSH", at[shard].keyed_order, f"{id}:{key}")


Keys = list[RedisKeys]


def _fill_sessions(valkey: ValkeyServer, made: MadeUp, now: Division, at: Keys) -> None:
    for session in made.clients:
        keys = at[now.of(session, made.clients) or 0]
        valkey.ask("HSET", keys.sessions, session, made.record(session))
        if session in made.handed:
            valkey.ask("HSET", keys.handed, session, made.handed[session])
        for name, value in made.requests.get(session, {}).items():
            if name == f"{session}|7":
                # Of those in other shards, it has not heard yet.
                here = may_answer_at(made, now, session, now.of(session, made.clients) or 0)
                value = request(session, here)
            valkey.ask("HSET", keys.requests, name, records.with_sum(name, value, NEWEST))
    for shard, keys in enumerate(at):
        for name, value in known_in(made, now, shard).items():
            valkey.ask("HSET", keys.requests, name, value)


def may_answer_at(made: MadeUp, now: Division, session: str, shard: int) -> list[str]:
    """Who of a shard may answer the request of a session."""
    record = orjson.loads(made.requests[session][f"{session}|7"])
    return [each for each in record["responders"] if now.of(each, made.clients) == shard]


def known_in(made: MadeUp, now: Division, shard: int) -> RequestFields:
    """What a shard knows of requests of others: who of its sessions may answer, and who has."""
    fields: dict[str, bytes] = {}
    for session in made.requests:
        if now.of(session, made.clients) == shard:
            continue
        address = f"{session}|7"
        here = may_answer_at(made, now, session, shard)
        said = {each: b"true" for each in ("ann/1",) if now.of(each, made.clients) == shard}
        if here or said:
            fields |= known(address, here, said)
    return fields


def known(
    address: str, may_answer: Sequence[str], said: Mapping[str, bytes] | None = None
) -> RequestFields:
    """The fields of a request in a shard whose sessions may answer it."""
    name = OF_OTHERS + address
    fields = {f"{name} {key}": what for key, what in (said or {}).items()}
    return {name: request("", may_answer), **fields}


def without_requester(fields: RequestFields) -> dict[str, Any]:
    """The fields without who asked, which only the shard of that session needs to know."""
    found = {name: orjson.loads(value) for name, value in fields.items()}
    return {
        name: value | {"requester": ""} if isinstance(value, dict) else value
        for name, value in found.items()
    }


def _fill_messages(valkey: ValkeyServer, made: MadeUp, now: Division, at: Keys) -> None:
    for id, body in made.bodies.items():
        for receiver in made.receivers[id]:
            keys = at[now.of(receiver, made.clients) or 0]
            if id % 2 and made.receivers[id] == {receiver}:
                message = records.unpack_message(id, body)
                body = records.pack_message(message, receivers=[receiver])
                valkey.ask("HSET", keys.bodies, id, body)
            else:
                valkey.ask("HSET", keys.bodies, id, body)
                valkey.ask("SADD", keys.receivers(id), receiver)
            mark = made.marks.get(receiver, {}).get(id)
            if mark is not None:
                valkey.ask("HSET", keys.marks(receiver), id, mark)


def _fill_letters(valkey: ValkeyServer, made: MadeUp, now: Division, at: Keys) -> None:
    for letter in made.letters.values():
        keys = at[now.of(letter.key, made.clients) or 0]
        valkey.ask("HSET", keys.dead, letter.id, letter_records.pack_letter(letter, {}))
        for index in keys.indexes(letter):
            valkey.ask("ZADD", index, 0, letter.id)
        valkey.ask("ZINCRBY", keys.prints, 1, letter.fingerprint)


def division_in(valkey: ValkeyServer) -> tuple[int, Division]:
    """The generation and the division that servers find."""
    generation, shards, homes = valkey.ask(
        "HMGET", RedisKeys("holdfast").meta, "generation", "shards", "homes"
    )
    if shards is None:
        return int(generation), divided(first_map(1))
    ranges = orjson.loads(shards)["ranges"]
    of_bucket = [shard for first, last, shard in ranges for _ in range(first, last + 1)]
    return int(generation), Division(tuple(of_bucket), Homes(orjson.loads(homes)["segments"]))


def check(valkey: ValkeyServer, made: MadeUp) -> None:
    """Everything is there once, in the shards that have it, as servers would find it."""
    generation, now = division_in(valkey)
    at = [RedisKeys("holdfast", shard, generation) for shard in range(now.count)]
    _check_sessions(valkey, made, now, at)
    _check_messages(valkey, made, now, at)
    _check_letters(valkey, made, now, at)
    fields: dict[str, bytes] = {}
    topics: dict[str, bytes] = {}
    for shard, keys in enumerate(at):
        known: dict[str, bytes] = {}
        for name, record in _hash(valkey, keys.requests):
            value = records.without_sum(name, record)
            session = name.partition("|")[0]
            if name.startswith(OF_OTHERS):
                known[name] = value
                continue
            assert now.of(session, made.clients) in (shard, None)
            if name == f"{session}|7":
                found, whole = orjson.loads(value), orjson.loads(made.requests[session][name])
                assert {*found["responders"]} >= {*may_answer_at(made, now, session, shard)}
                value = request(session, whole["responders"])
            fields[name] = value
        assert without_requester(known) == without_requester(known_in(made, now, shard))
        for channel, value in _hash(valkey, keys.topics):
            assert now.of_channel(channel) == shard
            topics[channel] = value
        assert dict(_hash(valkey, keys.held)) == made.held
        assert dict(_hash(valkey, keys.remarks)) == made.remarks
        assert valkey.ask("ZCARD", keys.remarked) == len(made.remarks)
        assert valkey.ask("XLEN", keys.journal("n")) in (0, 1)
    assert topics == made.topics
    wanted = [pair for its in made.requests.values() for pair in its.items()]
    assert fields == dict(wanted)


def _check_sessions(valkey: ValkeyServer, made: MadeUp, now: Division, at: Keys) -> None:
    sessions: list[str] = []
    handed: dict[str, bytes] = {}
    for shard, keys in enumerate(at):
        for name, record in _hash(valkey, keys.sessions):
            assert now.of(name, made.clients) == shard
            assert record == made.record(name)
            sessions.append(name)
        handed |= {name: batch for name, batch in _hash(valkey, keys.handed) if name}
    assert sorted(sessions) == sorted(made.clients)
    assert handed == made.handed


def _check_messages(valkey: ValkeyServer, made: MadeUp, now: Division, at: Keys) -> None:
    receivers: list[tuple[int, str]] = []
    marks: dict[str, dict[int, bytes]] = {}
    for shard, keys in enumerate(at):
        for name, record in _hash(valkey, keys.bodies):
            single = receiver_in(record)
            assert with_set(record) == made.bodies[int(name)]
            found = valkey.ask("SMEMBERS", keys.receivers(int(name)))
            its = [each.decode() for each in ([single] if single else found)]
            assert its
            for receiver in its:
                assert now.of(receiver, made.clients) in (shard, None)
                receivers.append((int(name), receiver))
        for receiver in (*made.clients, *SHARED):
            for id, mark in _hash(valkey, keys.marks(receiver)):
                assert now.of(receiver, made.clients) in (shard, None)
                marks.setdefault(receiver, {})[int(id)] = mark
    assert sorted(receivers) == sorted(
        (id, each) for id, all in made.receivers.items() for each in all
    )
    assert marks == made.marks


def _check_letters(valkey: ValkeyServer, made: MadeUp, now: Division, at: Keys) -> None:
    found: list[str] = []
    for shard, keys in enumerate(at):
        here = [made.letters[id] for id, _ in _hash(valkey, keys.dead)]
        for letter in here:
            assert now.of(letter.key, made.clients) in (shard, None)
            for index in keys.indexes(letter):
                assert valkey.ask("ZSCORE", index, letter.id) == 0
        assert valkey.ask("ZCARD", keys.all_dead) == len(here)
        for print_ in {letter.fingerprint for letter in here}:
            alike = [each for each in here if each.fingerprint == print_]
            assert valkey.ask("ZSCORE", keys.prints, print_) == len(alike)
        found += [letter.id for letter in here]
    assert sorted(found) == sorted(made.letters)


def check_keys(valkey: ValkeyServer, made: MadeUp, before: Division) -> None:
    """All shards know all keys that still hold, for as long as before."""
    generation, now = division_in(valkey)
    latest = max(CLOCKS[: before.count])
    living = {}
    for key, (shard, age, id) in made.keyed.items():
        clock = CLOCKS[min(shard, before.count - 1)]
        if age < LIFE_S:
            living[key] = f"{id}:{max(clock - age, 0) + latest - clock}".encode()
    for shard in range(now.count):
        keys = RedisKeys("holdfast", shard, generation)
        assert dict(_hash(valkey, keys.keyed)) == living
        order = valkey.ask("LRANGE", keys.keyed_order, 0, -1)
        times = [int(living[each.partition(b":")[2].decode()].partition(b":")[2]) for each in order]
        assert len(order) == len(living)
        assert times == sorted(times)
        assert int(valkey.ask("HGET", keys.meta, "clock")) == latest


def check_nothing_is_left(valkey: ValkeyServer) -> None:
    """There are only keys of the current generation, and those of all."""
    generation, now = division_in(valkey)
    for name in valkey.ask("KEYS", "*"):
        text = name.decode()
        assert ":next" not in text
        rest = text.partition("}:")[2]
        if rest.startswith("g"):
            assert rest.startswith(f"g{generation}:"), text
    common = ("deployment", "key", "seed")
    of_first = valkey.ask("HMGET", RedisKeys("holdfast").meta, *common)
    for shard in range(now.count):
        keys = RedisKeys("holdfast", shard, generation)
        assert valkey.ask("HMGET", keys.meta, *common) in (of_first, [None] * len(common))
        assert valkey.ask("HGET", keys.meta, "generation") == b"%d" % generation
        assert valkey.ask("HMGET", keys.meta, "next", "written") == [None, None]
        assert valkey.ask("EXISTS", keys.log, keys.links, keys.inbox) == 0
        untold = {UNTOLD: b"1"} if now.count > 1 and generation > FIRST_GENERATION else {}
        assert dict(_hash(valkey, keys.facts)) == untold


def _hash(valkey: ValkeyServer, key: str) -> Iterator[tuple[str, Any]]:
    for name, value in valkey.ask("HGETALL", key).items():
        yield name.decode(), value
