"""Random commands and scripts leave the fake store and a real one with the same data."""

import socket
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hiredis import Reader, ReplyError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.messages.marks import BatchMark, Mark
from holdfast.delivery.messages.outcomes import Move
from holdfast.store.format import scripts
from holdfast.store.format.opening_scripts import finish_upgrade, release
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.format.scripts import SCRIPTS, ScriptCall, Take
from holdfast.store.links.resp import Word, pack
from tests.effort import TIMES
from tests.simulation.store.command import COMMANDS, UnknownCommand
from tests.simulation.store.node import Node
from tests.store.model import SESSIONS, opening
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, KEYS, letter, message, session

Call = Sequence[Word]
# Replies whose order is that of a hash table.
UNORDERED = {"HGETALL", "HKEYS", "HVALS", "SMEMBERS", "KEYS"}
# Not compared: sizes, which are about right, and what is only for tests.
LEFT_OUT = {"MEMORY", "DUMP", "RESTORE", "SCAN", "HSCAN", "FLUSHALL", "FLUSHDB", "TTL"}
COMMANDS_COMPARED = sorted({each.name.upper() for each in COMMANDS.values()} - LEFT_OUT)

some_keys = st.sampled_from([b"a", b"b", b"c"])
some_numbers = st.sampled_from([b"-2", b"-1", b"0", b"1", b"2", b"10", b"1.5", b"007", b""])
some_ids = st.sampled_from([b"0", b"1", b"1-1", b"1-2", b"2-0", b"(1-1", b"-", b"+", b"3-*", b"$"])
some_bounds = st.sampled_from([b"-", b"+", b"[a", b"(b", b"[", b"a"])
_OPTIONS = b"COUNT LIMIT REV BYLEX WITHSCORES MAXLEN MINID = STREAMS NOMKSTREAM"
some_options = st.sampled_from(_OPTIONS.split())
some_words = st.one_of(some_keys, some_numbers, some_ids, some_bounds, some_options)


def likely(name: str) -> st.SearchStrategy[list[bytes]]:
    """Words of a command that often succeed."""
    member = st.sampled_from([b"a", b"b", b"c", b"1", b"5"])
    match name:
        case "HSET":
            return st.lists(st.tuples(member, member), min_size=1, max_size=3).map(flat)
        case "ZADD":
            pairs = st.tuples(some_numbers, member)
            return st.lists(pairs, min_size=1, max_size=3).map(flat)
        case "ZRANGE":
            options = st.sampled_from([[], [b"REV"], [b"WITHSCORES"]])
            by_text = st.sampled_from([[b"BYLEX"], [b"BYLEX", b"REV", b"LIMIT", b"1", b"1"]])
            return st.one_of(
                st.tuples(some_numbers, some_numbers, options).map(joined),
                st.tuples(some_bounds, some_bounds, by_text).map(joined),
            )
        case "XADD":
            return some_ids.map(lambda id: [id, b"f", b"v"])
        case "XRANGE" | "XREVRANGE":
            return st.tuples(some_ids, some_ids).map(list)
        case "XTRIM":
            return st.sampled_from([[b"MAXLEN", b"1"], [b"MINID", b"1-2"], [b"MAXLEN", b"-1"]])
        case _:
            return st.lists(member, max_size=3)


def flat(pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
    return [word for pair in pairs for word in pair]


def joined(parts: tuple[bytes, bytes, list[bytes]]) -> list[bytes]:
    return [*parts[:2], *parts[2]]


@st.composite
def commands(draw: st.DrawFn) -> Call:
    name = draw(st.sampled_from(COMMANDS_COMPARED))
    if name == "XREAD":
        return [name, "STREAMS", draw(some_keys), draw(some_ids.filter(lambda id: id != b"$"))]
    words = draw(st.one_of(likely(name), likely(name), st.lists(some_words, max_size=5)))
    return [name, draw(some_keys), *words]


@st.composite
def in_script(draw: st.DrawFn) -> Call:
    """A command in a script, which returns what it is replied, or the error."""
    how = draw(st.sampled_from(["call", "pcall"]))
    name, key, *words = draw(commands())
    source = f"return redis.{how}('{name!s}', KEYS[1], unpack(ARGV))"
    return ["EVAL", source, 1, key, *words]


class Server:
    """A store, and a connection to it."""

    def say(self, data: bytes) -> None:
        raise NotImplementedError

    def hear(self) -> bytes:
        raise NotImplementedError

    def __init__(self) -> None:
        self._reader = Reader()

    def ask(self, *calls: Call) -> list[Any]:
        self.say(b"".join(map(pack, calls)))
        replies: list[Any] = []
        while len(replies) < len(calls):
            reply = self._reader.gets()
            if reply is False:
                self._reader.feed(self.hear())
            elif isinstance(reply, ReplyError):
                replies.append(str(reply))
            else:
                replies.append(reply)
        return replies

    def everything(self) -> dict[bytes, object]:
        """All keys with their values."""
        [keys] = self.ask(["KEYS", "*"])
        kinds = self.ask(*(["TYPE", key] for key in keys))
        asked = [[*_READS[kind](key)] for kind, key in zip(kinds, keys, strict=True)]
        values = self.ask(*asked)
        return {
            key: (kind, arranged(call[0], value))
            for key, kind, call, value in zip(keys, kinds, asked, values, strict=True)
        }


_READS: dict[bytes, Any] = {
    b"string": lambda key: ["GET", key],
    b"hash": lambda key: ["HGETALL", key],
    b"set": lambda key: ["SMEMBERS", key],
    b"list": lambda key: ["LRANGE", key, 0, -1],
    b"zset": lambda key: ["ZRANGE", key, 0, -1, "WITHSCORES"],
    b"stream": lambda key: ["XRANGE", key, "-", "+"],
}


def arranged(name: Word, reply: Any) -> object:
    """The reply in an order that does not depend on hash tables."""
    if name == "HGETALL" and isinstance(reply, list):
        return sorted(zip(reply[::2], reply[1::2], strict=True))
    return sorted(reply) if name in UNORDERED and isinstance(reply, list) else reply


class Fake(Server):
    """In this process."""

    def __init__(self) -> None:
        super().__init__()
        self._heard: list[bytes] = []
        self.node = Node(lambda: 1_763_000_000.0, lambda delay_s, then: None)
        self._connection = self.node.connect(self._heard.append)

    def say(self, data: bytes) -> None:
        self._connection.receive(data)

    def hear(self) -> bytes:
        return self._heard.pop(0)


class Real(Server):
    """A Valkey."""

    def __init__(self, server: ValkeyServer) -> None:
        super().__init__()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        self._socket.connect(f"{server.directory}/s")

    def say(self, data: bytes) -> None:
        self._socket.sendall(data)

    def hear(self) -> bytes:
        return self._socket.recv(65536)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def real() -> Iterator[Real]:
    with ValkeyServer() as server:
        found = Real(server)
        yield found
        found.close()


def compare(real: Real, calls: Sequence[Call]) -> None:
    """Make the calls to a fake and a real store, both empty before."""
    fake = Fake()
    fake.ask(["FLUSHALL"])
    real.ask(["FLUSHALL"])
    for call in calls:
        try:
            [found] = fake.ask(call)
        except UnknownCommand:
            continue
        [truth] = real.ask(call)
        name = str(call[1]).split("'")[1] if call[0] == "EVAL" else call[0]
        assert arranged(name, found) == arranged(name, truth), call
    assert fake.everything() == real.everything()
    history = fake.node.history
    assert history.at(history.end).shown() == fake.node.keyspace.shown()


quick = settings(
    max_examples=30 * TIMES, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.slow
@quick
@given(st.lists(st.one_of(commands(), commands(), in_script()), max_size=40))
def test_random_commands_have_the_same_replies_and_effects(real: Real, calls: list[Call]) -> None:
    compare(real, calls)


# Our scripts

numbers = st.integers(1, 4)
names = st.sampled_from(SESSIONS)
receivers = st.lists(names, min_size=1, unique=True)
keyed = KeyLimits(clock=1, most=2)


def nothing_else(*strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*strategies)


script_calls: st.SearchStrategy[ScriptCall] = st.one_of(
    names.map(lambda key: scripts.save(KEYS, [session(key)])),
    nothing_else(numbers, receivers, numbers).map(
        lambda at: scripts.keep(KEYS, [(message(at[0]), at[1])], {f"r{at[2]}": b"x" * (at[2] % 2)})
    ),
    nothing_else(numbers, receivers, st.sampled_from("kl"), st.integers(0, 2 * 10**6)).map(
        lambda at: scripts.keep_keyed(
            KEYS, [(message(at[0], key=at[2]), at[1])], KeyLimits(clock=at[3], most=1)
        )
    ),
    nothing_else(numbers, names, receivers, st.integers(0, 1)).map(
        lambda at: scripts.move(KEYS, [Move(message(at[0]), at[1], at[2], len(at[2]), at[3])])
    ),
    nothing_else(numbers, names).map(
        lambda at: scripts.mark(KEYS, {at[1]: {BASE + at[0]: Mark(BASE + at[0], 1)}})
    ),
    nothing_else(numbers, names).map(
        lambda at: scripts.mark_batches(KEYS, {at[1]: BatchMark(1, 1, [BASE + at[0]])})
    ),
    nothing_else(numbers, receivers).map(lambda at: scripts.settle(KEYS, {BASE + at[0]: at[1]})),
    nothing_else(numbers, names).map(lambda at: scripts.unmark(KEYS, {at[1]: [BASE + at[0]]})),
    nothing_else(numbers, numbers, st.none() | names).map(
        lambda at: scripts.dead_letter(KEYS, [(letter(at[0] + 100, of=at[1]), at[2])])
    ),
    numbers.map(lambda n: scripts.letters_remove(KEYS, [letter(n + 100)])),
    nothing_else(numbers, names, st.booleans()).map(
        lambda at: scripts.replay_take(KEYS, "9", [Take(letter(at[0] + 100), at[1], at[2])])
    ),
    numbers.map(lambda n: scripts.replay_note(KEYS, "9", {"state": str(n)})),
    st.just(scripts.replay_forget(KEYS, "9")),
    receivers.map(lambda keys: scripts.forget(KEYS, keys)),
    numbers.map(lambda n: scripts.advance_clock(KEYS, n, given=n)),
    numbers.map(lambda n: scripts.save_channel_holds(KEYS, {"/a": ChannelHold(n, "why")})),
    st.just(scripts.save_channel_holds(KEYS, {"/a": None})),
    numbers.map(lambda n: scripts.remark(KEYS, f"p{n}", b"why" * (n % 3), at=n, most=2)),
    names.map(lambda name: scripts.audit(KEYS, ["who", name], most=1000)),
    nothing_else(numbers, numbers).map(
        lambda at: scripts.frame(
            KEYS, "test", epoch="e", seq=at[0] - 1, frame=b"frame", notes=[at[1]]
        )
    ),
    numbers.map(lambda n: scripts.trim(KEYS, "test", read_ms=n, oldest_ms=0, size=10**6, now_ms=n)),
    st.just(finish_upgrade(KEYS)),
    st.just(release(KEYS)),
    st.sampled_from(["nonce000", "other000"]).map(opening),
)
# Which of the calls is repeated after each: none, or one so many places before; and whether others
# get its number.
numberings = st.sampled_from([0, 0, 0, 0, 1, 2, 5, -1])


def numbered(calls: Sequence[ScriptCall], shifts: Sequence[int]) -> list[Call]:
    """The commands that call these scripts, numbered; repeats, gaps and former processes, too."""
    made: list[Call] = []
    last = 0
    for call, shift in zip(calls, shifts, strict=True):
        args = [*call.args]
        if call.script is not scripts.OPEN:
            number = max(last + 1 - shift, 1)
            last = max(last, number)
            words = [f"nonce000-{each:012d}" for each in (number - 1, number)]
            args = [f"{words[0]} {words[1]} {number - 1} {max(number - 2, 1)}", *args]
        made.append(["EVALSHA", call.script.sha, len(call.keys), *call.keys, *args])
    return made


# They have tests of their own with both stores.
LOGS = {"append", "append_facts", "take"}
# These streams have ids by the clock of each store.
TIMED = {KEYS.journal("test").encode(), KEYS.audit.encode()}


@pytest.mark.slow
@quick
@given(st.lists(st.tuples(script_calls, numberings), max_size=40))
def test_our_scripts_have_the_same_replies_and_effects(
    real: Real, given_calls: list[tuple[ScriptCall, int]]
) -> None:
    loading: list[Call] = [["SCRIPT", "LOAD", script.source] for script in SCRIPTS]
    calls = numbered([call for call, _ in given_calls], [shift for _, shift in given_calls])
    begin = numbered([opening("nonce000")], [0])
    fake = Fake()
    for server in (real, fake):
        server.ask(["FLUSHALL"], *loading, *begin)
    for call in calls:
        assert fake.ask(call) == real.ask(call), call
    found, truth = fake.everything(), real.everything()
    for key in TIMED:
        assert len(str(found.pop(key, ""))) == len(str(truth.pop(key, "")))
    assert found == truth


@pytest.mark.slow
def test_the_scripts_are_compared_that_write_and_are_not_for_logs() -> None:
    drawn: set[str] = set()

    @settings(max_examples=300, database=None)
    @given(script_calls)
    def draw(call: ScriptCall) -> None:
        drawn.add(call.script.name)

    draw()
    assert drawn >= {each.name for each in SCRIPTS if "with" not in each.name} - LOGS
