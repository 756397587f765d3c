"""Commands on keys of any kind."""

from copy import deepcopy
from fnmatch import fnmatchcase
from hashlib import sha1

from tests.simulation.store.command import UnknownCommand, Words, command, whole
from tests.simulation.store.keyspace import (
    Hash,
    Keyspace,
    List,
    Set,
    SortedSet,
    Stream,
    Value,
    shown,
)
from tests.simulation.store.replies import OK, Refused, Reply, Status

_KINDS: dict[type, bytes] = {
    bytes: b"string",
    Hash: b"hash",
    Set: b"set",
    List: b"list",
    SortedSet: b"zset",
    Stream: b"stream",
}
# Bytes of a value and of each of its parts, about.
_OF_A_VALUE, _OF_A_PART = 64, 16


@command("DEL", -2, writes=True, has_many_keys=True)
def delete(at: Keyspace, words: Words) -> Reply:
    removed = sum(at.data.pop(key, None) is not None for key in words[1:])
    at.dirty += removed
    return removed


@command("UNLINK", -2, writes=True, has_many_keys=True)
def unlink(at: Keyspace, words: Words) -> Reply:
    return delete(at, words)


@command("RENAME", 3, writes=True, has_many_keys=True)
def rename(at: Keyspace, words: Words) -> Reply:
    value = at.data.pop(words[1], None)
    if value is None:
        raise Refused("ERR no such key")
    at.data[words[2]] = value
    at.dirty += 1
    return OK


@command("EXISTS", -2, has_many_keys=True)
def exists(at: Keyspace, words: Words) -> Reply:
    return sum(key in at.data for key in words[1:])


@command("TYPE", 2)
def type_(at: Keyspace, words: Words) -> Reply:
    value = at.data.get(words[1])
    return Status(b"none" if value is None else _KINDS[type(value)])


@command("TTL", 2)
def ttl(at: Keyspace, words: Words) -> Reply:
    """Nothing has a time to live here."""
    return -1 if words[1] in at.data else -2


@command("KEYS", 2, first_key=0)
def keys(at: Keyspace, words: Words) -> Reply:
    pattern = words[1].decode("latin-1")
    return [key for key in at.data if fnmatchcase(key.decode("latin-1"), pattern)]


@command("SCAN", -2, first_key=0)
def scan(at: Keyspace, words: Words) -> Reply:
    """Return all keys at once, which a store may do."""
    rest = dict(zip(map(bytes.upper, words[2::2]), words[3::2], strict=True))
    if not rest.keys() <= {b"MATCH", b"COUNT"}:
        raise UnknownCommand(words)
    whole(words[1], "ERR invalid cursor")
    return [b"0", keys(at, [b"KEYS", rest.get(b"MATCH", b"*")])]


@command("DBSIZE", 1, first_key=0)
def dbsize(at: Keyspace, _: Words) -> Reply:
    return len(at.data)


@command("FLUSHALL", -1, writes=True, first_key=0)
def flushall(at: Keyspace, _: Words) -> Reply:
    at.data.clear()
    at.dirty += 1
    return OK


@command("FLUSHDB", -1, writes=True, first_key=0)
def flushdb(at: Keyspace, words: Words) -> Reply:
    return flushall(at, words)


# What stands for values that were copied or moved.
_DUMPED: dict[bytes, Value] = {}


@command("DUMP", 2)
def dump(at: Keyspace, words: Words) -> Reply:
    """Return what stands for the value, the same for equal ones."""
    value = at.data.get(words[1])
    if value is None:
        return None
    described = repr((type(value), shown(value))).encode()
    name = sha1(described, usedforsecurity=False).hexdigest().encode()
    _DUMPED.setdefault(name, deepcopy(value))
    return name


@command("RESTORE", 4, grows=True)
def restore(at: Keyspace, words: Words) -> Reply:
    if words[1] in at.data:
        raise Refused("BUSYKEY Target key name already exists.")
    if words[2] != b"0":
        raise UnknownCommand(words)
    at.data[words[1]] = deepcopy(_DUMPED[words[3]])
    at.dirty += 1
    return OK


@command("MEMORY", -2, first_key=2)
def memory(at: Keyspace, words: Words) -> Reply:
    if words[1].upper() != b"USAGE" or len(words) != 3:
        raise UnknownCommand(words)
    value = at.data.get(words[2])
    return None if value is None else _OF_A_VALUE + size_of(value)


def size_of(value: Value) -> int:
    """Return about how many bytes a value takes."""
    match value:
        case bytes():
            return len(value)
        case Hash():
            return sum(len(name) + len(each) + _OF_A_PART for name, each in value.items())
        case SortedSet():
            return sum(len(member) + 2 * _OF_A_PART for member in value.scores)
        case Stream():
            parts = (part for fields in value.entries.values() for part in fields)
            return sum(len(part) + _OF_A_PART for part in parts)
        case _:
            return sum(len(each) + _OF_A_PART for each in value)
