"""The replies of the fake store are those of a real one, byte by byte."""

import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
from hiredis import Reader

from holdfast.store.links.resp import Word, pack
from tests.container import ROOT
from tests.simulation.store.command import COMMANDS, UnknownCommand
from tests.simulation.store.node import Node
from tests.simulation.store.served import ServedStore
from tests.store.servers import ValkeyServer

Command = tuple[Word, ...]


def script(source: str, *args: Word) -> Command:
    return ("EVAL", source, 0, *args)


def called(*commands: str) -> list[Command]:
    """Scripts that return what these calls return."""
    return [script(f"return redis.call({each})") for each in commands]


NUMBERS = """
    1e15 1e17 1e18 1e19 1e20 2^53 2^63 -2^63 2^70 123456789012345678 1e300 1/0 -1/0 -0.0 0.1 -1.25
    1/3 2/3000 1.5e-7 1.2e-5 0.00012 0.0001234567 1.234567e-5 12345678.12345678 123.5 1e-300
"""
CONVERSATIONS: dict[str, Sequence[Command]] = {
    "hashes": [
        ("HSET", "h", "a", 1),
        ("HSET", "h", "a", 2, "b", 3, "b", 4),
        ("HSET", "h", "a"),
        ("HSETNX", "h", "a", 5),
        ("HSETNX", "h", "c", 5),
        ("HGET", "h", "a"),
        ("HGET", "h", "z"),
        ("HGET", "none", "z"),
        ("hget",),
        ("HMGET", "h", "a", "z"),
        ("HGETALL", "h"),
        ("HGETALL", "none"),
        ("HKEYS", "h"),
        ("HVALS", "h"),
        ("HLEN", "h"),
        ("HEXISTS", "h", "a"),
        ("HINCRBY", "h", "n", 5),
        ("HINCRBY", "h", "n", "x"),
        ("HINCRBY", "h", "n", 9223372036854775807),
        ("HSET", "h", "t", "text"),
        ("HINCRBY", "h", "t", 1),
        ("HSCAN", "h", "x"),
        ("HDEL", "h", "a", "z", "b"),
        ("HDEL", "none", "a"),
        ("HDEL", "h", "c", "n", "t"),
        ("EXISTS", "h"),
    ],
    "sets and lists": [
        ("SADD", "s", "a", "b", "a"),
        ("SADD", "s", "a"),
        ("SADD", "s"),
        ("SISMEMBER", "s", "a"),
        ("SCARD", "s"),
        ("SREM", "s", "z", "b"),
        ("SMEMBERS", "s"),
        ("SMEMBERS", "none"),
        ("SREM", "s", "a"),
        ("TYPE", "s"),
        ("RPUSH", "l", "a", "b", "c"),
        ("LINDEX", "l", 0),
        ("LINDEX", "l", -1),
        ("LINDEX", "l", 9),
        ("LRANGE", "l", 0, -1),
        ("LRANGE", "l", -2, 9),
        ("LRANGE", "l", 2, 1),
        ("LPOP", "l"),
        ("LLEN", "l"),
        ("HGET", "l", "a"),
        ("LPOP", "l"),
        ("LPOP", "l"),
        ("LPOP", "l"),
        ("EXISTS", "l", "s", "l"),
    ],
    "sorted sets": [
        ("ZADD", "z", 0, "b", 0, "a", 0, "c"),
        ("ZADD", "z", "x", "b"),
        ("ZADD", "z", "nan", "b"),
        ("ZADD", "z", 1),
        ("ZRANGE", "z", 0, -1),
        ("ZRANGE", "z", 0, -1, "WITHSCORES"),
        ("ZRANGE", "z", -2, 5, "REV"),
        ("ZRANGE", "z", "-", "+", "BYLEX"),
        ("ZRANGE", "z", "[b", "+", "BYLEX", "LIMIT", 1, 1),
        ("ZRANGE", "z", "(b", "[c", "BYLEX"),
        ("ZRANGE", "z", "+", "(a", "BYLEX", "REV", "LIMIT", 0, -1),
        ("ZRANGE", "z", "+", "-", "BYLEX"),
        ("ZRANGE", "z", "x", "+", "BYLEX"),
        ("ZRANGE", "z", 0, -1, "LIMIT", 0, 1),
        ("ZRANGE", "z", 0, "x"),
        ("ZLEXCOUNT", "z", "[a", "(c"),
        ("ZLEXCOUNT", "none", "-", "+"),
        ("ZREVRANGE", "z", 0, 1),
        ("ZREVRANGE", "z", 0, 1, "WITHSCORES"),
        ("ZADD", "z", 2.5, "a", -1, "b"),
        ("ZSCORE", "z", "a"),
        ("ZSCORE", "z", "none"),
        ("ZPOPMIN", "z"),
        ("ZCARD", "z"),
        ("ZREM", "z", "a", "none", "c"),
        ("ZPOPMIN", "z"),
        ("EXISTS", "z"),
    ],
    "streams": [
        ("XADD", "x", "5-1", "a", "b"),
        ("XADD", "x", "5-1", "a", "b"),
        ("XADD", "x", "4-9", "a", "b"),
        ("XADD", "x", "0-0", "a", "b"),
        ("XADD", "x", "5-*", "a", "b"),
        ("XADD", "x", "word", "a", "b"),
        ("XADD", "x", "5-3", "a"),
        ("XADD", "x", "7", "a", "b", "c", "d"),
        ("XADD", "x", "MAXLEN", 2, "8-0", "a", "b"),
        ("XADD", "x", "MAXLEN", -1, "9-0", "a", "b"),
        ("XADD", "x", "MINID", "7-1", "9-0", "a", "b"),
        ("XADD", "none", "NOMKSTREAM", "7", "a", "b"),
        ("XRANGE", "x", "-", "+"),
        ("XRANGE", "x", "(8-0", "+", "COUNT", 1),
        ("XRANGE", "x", "7", "8"),
        ("XRANGE", "x", "-", "+", "COUNT", 0),
        ("XRANGE", "none", "-", "+"),
        ("XREVRANGE", "x", "+", "-", "COUNT", 1),
        ("XREVRANGE", "x", "(9-0", "-"),
        ("XREAD", "COUNT", 1, "STREAMS", "x", "none", "5-2", "0"),
        ("XREAD", "STREAMS", "x", "99-0"),
        ("XREAD", "COUNT", 1, "BLOCK", 1, "STREAMS", "x", "99-0"),
        ("XREAD", "BLOCK", 1, "STREAMS", "x", "0"),
        ("XREAD", "BLOCK", "y", "STREAMS", "x", "99-0"),
        ("XREAD", "STREAMS", "x", "y", "0"),
        ("XLEN", "x"),
        ("XDEL", "x", "8-0", "8-1"),
        ("XTRIM", "x", "MINID", "9"),
        ("XTRIM", "x", "MAXLEN", "=", 0),
        ("XTRIM", "none", "MAXLEN", 0),
        ("XADD", "x", "6-0", "a", "b"),
        ("XLEN", "x"),
        ("EXISTS", "x"),
        ("XADD", "x", "9-1", "a", "b"),
    ],
    "keys and connections": [
        ("SET", "k", "v"),
        ("GET", "k"),
        ("GET", "none"),
        ("SET", "n", "41"),
        ("INCR", "n"),
        ("INCR", "k"),
        ("RENAME", "none", "m"),
        ("RENAME", "n", "m"),
        ("GET", "m"),
        ("EXISTS", "n"),
        ("RENAME", "m", "n"),
        ("DEL", "k", "none"),
        ("UNLINK", "n"),
        ("TTL", "n"),
        ("PING",),
        ("PING", "x"),
        ("ECHO", "x"),
        ("CLIENT", "SETNAME", "me"),
        ("CLIENT", "GETNAME"),
        ("CLIENT", "SETINFO", "LIB-NAME", "x"),
        ("HELLO", 4),
        ("HELLO", 3, "AUTH", "nobody", "x"),
        ("AUTH", "x"),
        ("SELECT", 0),
        ("CONFIG", "GET", "append*"),
        ("CONFIG", "GET", "min-replicas-to-write", "cluster-node-timeout"),
        ("WAIT", 0, 1),
        ("WAIT", 1, 1),
        ("WAITAOF", 1, 0, 1),
        ("WAITAOF", 0, 0, 1),
        ("SCRIPT", "LOAD", "return 1"),
        ("SCRIPT", "LOAD", "return syntax("),
        ("SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"),
        ("EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", 0),
        ("SCRIPT", "FLUSH"),
        ("EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", 0),
        ("EVAL", "return KEYS[1] .. ARGV[1]", 1, "k", "a"),
        ("EVAL", "return 1", 5, "a"),
        ("EVAL", "return 1", "x"),
        ("EVAL", "return 1", -1),
        ("MULTI",),
        ("SET", "k", "v"),
        ("EVAL", "return redis.call('GET', KEYS[1])", 1, "k"),
        ("HGET", "k", "a"),
        ("EXEC",),
        ("MULTI",),
        ("GET",),
        ("EXEC",),
        ("EXEC",),
        ("MULTI",),
        ("DISCARD",),
    ],
    "what scripts return": [
        *map(
            script,
            [
                "return {1, 2, nil, 4}",
                "return {1.7, -1.7, 'x', true, false, {1, {2}}}",
                "return true",
                "return false",
                "return nil",
                "return 3.99",
                "return",
                "return 1e20",
                "return -1e20",
                "return 0 / 0",
                "return {}",
                "return {err = 'My Err'}",
                "return redis.error_reply('EPOCH 5')",
                "return redis.error_reply('-EPOCH 5')",
                "return redis.error_reply('')",
                "return redis.error_reply('one')",
                "return redis.status_reply('FINE')",
                "return {redis.status_reply('FINE'), redis.error_reply('A b')}",
                "return redis.sha1hex('')",
                "return {KEYS[1], ARGV[1], #KEYS, #ARGV}",
            ],
        ),
        *[
            script(f"redis.call('SET', 'k', {number}) return redis.call('GET', 'k')")
            for number in NUMBERS.split()
        ],
    ],
    "what scripts are replied": [
        ("HSET", "h", "a", 1),
        ("XADD", "x", "5-1", "a", "b"),
        ("ZADD", "z", 1.5, "a", 2, "b"),
        *called(
            "'HGET', 'h', 'z'",
            "'HGETALL', 'h'",
            "'XRANGE', 'x', '-', '+'",
            "'XREAD', 'STREAMS', 'x', '0'",
            "'XREAD', 'STREAMS', 'x', '9'",
            "'XREAD', 'BLOCK', 1, 'STREAMS', 'x', '9'",
            "'ZRANGE', 'z', 0, -1, 'WITHSCORES'",
            "'ZSCORE', 'z', 'a'",
            "'SMEMBERS', 'none'",
            "'ZPOPMIN', 'z'",
            "'ZPOPMIN', 'none'",
            "'SET', 'k', 1",
            "'hget', 'h', 'a'",
        ),
        script("return {redis.call('HGET', 'h', 'z'), 5}"),
        script("return {type(redis.call('HGET', 'h', 'z')), redis.call('SET', 'k', 1).ok}"),
        script("return server.call('HGET', 'h', 'a')"),
    ],
    "how scripts fail": [
        ("HSET", "h", "a", 1),
        *called(
            "'SADD', 'h', 'x'",
            "'HGET'",
            "",
            "'HGET', {}, 'a'",
            "'HGET', 'h', nil",
            "'HGET', 'h', true",
            "'HINCRBY', 'h', 'a', 1.5",
        ),
        *map(
            script,
            [
                "#!lua\nreturn redis.call('SADD', 'h', 'x')",
                "#!lua\nlocal function f()\n redis.call('SADD', 'h', 'x')\nend\nf()",
                "#!lua\nreturn redis.pcall('SADD', 'h', 'x')",
                "return redis.pcall('SADD', 'h', 'x').err",
                "local _, problem = pcall(redis.call, 'SADD', 'h', 'x') return type(problem)",
                "local _, problem = pcall(redis.call, 'SADD', 'h', 'x') return problem",
                "local _, problem = pcall(error, {err = 'A b'}) return problem",
                "x = 1",
                "return y",
                "error('boom')",
                "error({err = 'A b'})",
                "local a = nil return a.b",
                "return syntax(",
                "#!lua flags=bogus\nreturn 1",
                "#!py\nreturn 1",
                "#!lua flags=no-writes\nreturn redis.call('SET', 'k', 1)",
                "redis.call('SET', 'k', 'kept') redis.call('SADD', 'h', 'x')",
            ],
        ),
        ("GET", "k"),
    ],
    "a store that is full": [
        ("HSET", "h", "a", 1),
        ("CONFIG", "SET", "maxmemory", 1),
        ("HSET", "h", "b", 1),
        ("XADD", "x", "*", "a", "b"),
        ("HDEL", "h", "b"),
        ("SCRIPT", "LOAD", "return 2"),
        ("PING",),
        *map(
            script,
            [
                "#!lua\nreturn 1",
                "#!lua flags=allow-oom\nreturn redis.call('HSET', 'h', 'q', 1)",
                "#!lua flags=no-writes\nreturn redis.call('HGET', 'h', 'q')",
                "return redis.call('HSET', 'h', 'q', 1)",
                "return redis.pcall('HSET', 'h', 'q', 1)",
                "return redis.call('HGET', 'h', 'q')",
                "redis.call('HDEL', 'h', 'q') return redis.call('HSET', 'h', 'r', 1)",
                "redis.call('HDEL', 'h', 'none') return redis.call('HSET', 'h', 's', 1)",
            ],
        ),
        ("MULTI",),
        ("HSET", "h", "a", "b"),
        ("EXEC",),
        ("FLUSHALL",),
        ("CONFIG", "SET", "maxmemory", 0),
        ("HSET", "h", "a", 1),
    ],
    "a store that wants more replicas": [
        ("CONFIG", "SET", "min-replicas-to-write", 1),
        ("HSET", "h", "a", 1),
        script("#!lua\nreturn 1"),
        script("#!lua flags=no-writes\nreturn 1"),
        script("return redis.call('SET', 'a', 1)"),
        script("return redis.call('GET', 'a')"),
        ("SCRIPT", "LOAD", "return 1"),
        ("CONFIG", "SET", "min-replicas-to-write", 0),
    ],
}


class Client:
    """Sees the bytes of replies."""

    def __init__(self, server: ValkeyServer, protocol: int) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        self._socket.connect(f"{server.directory}/s")
        self.ask("HELLO", protocol)

    def ask(self, *words: Word) -> bytes:
        self._socket.sendall(pack(words))
        heard, reader = b"", Reader()
        while reader.gets() is False:
            some = self._socket.recv(65536)
            assert some, "the store ended the connection"
            heard += some
            reader.feed(some)
        return heard

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def fake() -> Iterator[ServedStore]:
    with ServedStore() as server:
        yield server


@pytest.fixture(scope="module")
def real() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_fake_store_replies_as_valkey_does(
    name: str, protocol: int, fake: ServedStore, real: ValkeyServer
) -> None:
    heard = []
    for server in (real, fake):
        server.ask("FLUSHALL")
        with closing(Client(server, protocol)) as client:
            heard.append([(words, client.ask(*words)) for words in CONVERSATIONS[name]])
    assert heard[1] == heard[0]


def test_the_fake_store_knows_the_commands_of_all_scripts() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "app/store/lua").glob("*.lua"))
    called = {*re.findall(r"call\('([A-Z]+)'", sources)}
    assert {"HSET", "SREM", "XADD"} <= called <= {name.decode() for name in COMMANDS}


def node() -> tuple[Node, list[bytes]]:
    sent: list[bytes] = []
    return Node(lambda: 0.0, lambda delay_s, then: None), sent


def test_a_command_that_the_fake_store_lacks_ends_the_test() -> None:
    store, sent = node()
    connection = store.connect(sent.append)
    for words in (("GEOADD", "a"), ("EVAL", "return redis.pcall('GEOADD')", 0)):
        with pytest.raises(UnknownCommand):
            connection.receive(pack(words))
    assert sent == []


def test_commands_may_arrive_in_any_parts() -> None:
    store, sent = node()
    connection = store.connect(sent.append)
    data = pack(("SET", "k", "v")) + pack(("GET", "k"))
    for at in range(len(data)):
        connection.receive(data[at : at + 1])
    assert sent == [b"+OK\r\n", b"$1\r\nv\r\n"]
    connection.receive(data)
    assert sent[2:] == [b"+OK\r\n$1\r\nv\r\n"]
