"""Commands on hashes, sets, lists and strings."""

from binascii import crc32

from tests.simulation.store.command import UnknownCommand, Words, command, whole
from tests.simulation.store.keyspace import Hash, Keyspace, List, Set
from tests.simulation.store.replies import OK, Members, Refused, Reply

_HASH_NOT_INTEGER = "ERR hash value is not an integer"


@command("HSET", -4, grows=True)
def hset(at: Keyspace, words: Words) -> Reply:
    if len(words) % 2:
        raise Refused("ERR wrong number of arguments for 'hset' command")
    found = at.make(Hash, words[1])
    before = len(found)
    for i in range(2, len(words), 2):
        found[words[i]] = words[i + 1]
    at.dirty += 1
    return len(found) - before


@command("HSETNX", 4, grows=True)
def hsetnx(at: Keyspace, words: Words) -> Reply:
    found = at.make(Hash, words[1])
    if words[2] in found:
        return 0
    found[words[2]] = words[3]
    at.dirty += 1
    return 1


@command("HGET", 3)
def hget(at: Keyspace, words: Words) -> Reply:
    found = at.find(Hash, words[1])
    return None if found is None else found.get(words[2])


@command("HMGET", -3)
def hmget(at: Keyspace, words: Words) -> Reply:
    found = at.find(Hash, words[1]) or Hash()
    return [found.get(name) for name in words[2:]]


@command("HGETALL", 2)
def hgetall(at: Keyspace, words: Words) -> Reply:
    return dict(at.find(Hash, words[1]) or {})


@command("HKEYS", 2)
def hkeys(at: Keyspace, words: Words) -> Reply:
    return [*(at.find(Hash, words[1]) or {})]


@command("HVALS", 2)
def hvals(at: Keyspace, words: Words) -> Reply:
    return [*(at.find(Hash, words[1]) or {}).values()]


@command("HLEN", 2)
def hlen(at: Keyspace, words: Words) -> Reply:
    return len(at.find(Hash, words[1]) or {})


@command("HEXISTS", 3)
def hexists(at: Keyspace, words: Words) -> Reply:
    return int(words[2] in (at.find(Hash, words[1]) or {}))


@command("HDEL", -3, writes=True)
def hdel(at: Keyspace, words: Words) -> Reply:
    found = at.find(Hash, words[1])
    if found is None:
        return 0
    removed = sum(found.pop(name, None) is not None for name in words[2:])
    at.dirty += removed
    if not found:
        del at.data[words[1]]
    return removed


@command("HINCRBY", 4, grows=True)
def hincrby(at: Keyspace, words: Words) -> Reply:
    by = whole(words[3])
    found = at.find(Hash, words[1]) or Hash()
    number = whole(found.get(words[2], b"0"), _HASH_NOT_INTEGER) + by
    if not -(2**63) <= number < 2**63:
        raise Refused("ERR increment or decrement would overflow")
    at.make(Hash, words[1])[words[2]] = b"%d" % number
    at.dirty += 1
    return number


@command("HSCAN", -3)
def hscan(at: Keyspace, words: Words) -> Reply:
    """Return some fields, in an order that others who come and go do not change."""
    found = at.find(Hash, words[1]) or Hash()
    cursor, rest = whole(words[2], "ERR invalid cursor"), words[3:]
    if len(rest) not in (0, 2) or (rest and rest[0].upper() != b"COUNT"):
        raise UnknownCommand(words)
    count = whole(rest[1]) if rest else 10
    left = sorted((crc32(name), name) for name in found if crc32(name) >= cursor)
    taken, behind = left[:count], left[count:]
    while behind and behind[0][0] == taken[-1][0]:
        taken.append(behind.pop(0))
    pairs = [each for _, name in taken for each in (name, found[name])]
    return [b"%d" % (behind[0][0] if behind else 0), pairs]


# Sets


@command("SADD", -3, grows=True)
def sadd(at: Keyspace, words: Words) -> Reply:
    found = at.make(Set, words[1])
    before = len(found)
    found.update(dict.fromkeys(words[2:]))
    added = len(found) - before
    at.dirty += added
    return added


@command("SREM", -3, writes=True)
def srem(at: Keyspace, words: Words) -> Reply:
    found = at.find(Set, words[1])
    if found is None:
        return 0
    removed = sum(found.pop(name, found) is None for name in words[2:])
    at.dirty += removed
    if not found:
        del at.data[words[1]]
    return removed


@command("SISMEMBER", 3)
def sismember(at: Keyspace, words: Words) -> Reply:
    return int(words[2] in (at.find(Set, words[1]) or {}))


@command("SMEMBERS", 2)
def smembers(at: Keyspace, words: Words) -> Reply:
    return Members(at.find(Set, words[1]) or {})


@command("SCARD", 2)
def scard(at: Keyspace, words: Words) -> Reply:
    return len(at.find(Set, words[1]) or {})


# Lists


@command("RPUSH", -3, grows=True)
def rpush(at: Keyspace, words: Words) -> Reply:
    found = at.make(List, words[1])
    found += words[2:]
    at.dirty += 1
    return len(found)


@command("LPOP", -2, writes=True)
def lpop(at: Keyspace, words: Words) -> Reply:
    if len(words) > 2:
        raise UnknownCommand(words)
    found = at.find(List, words[1])
    if found is None:
        return None
    first = found.pop(0)
    at.dirty += 1
    if not found:
        del at.data[words[1]]
    return first


@command("LINDEX", 3)
def lindex(at: Keyspace, words: Words) -> Reply:
    found = at.find(List, words[1])
    if found is None:
        return None
    position = whole(words[2])
    return found[position] if -len(found) <= position < len(found) else None


@command("LLEN", 2)
def llen(at: Keyspace, words: Words) -> Reply:
    return len(at.find(List, words[1]) or [])


@command("LRANGE", 4)
def lrange(at: Keyspace, words: Words) -> Reply:
    first, last = whole(words[2]), whole(words[3])
    found = at.find(List, words[1]) or List()
    return [*found[between(first, last, len(found))]]


def between(first: int, last: int, count: int) -> slice:
    """Return the part from one position to another; negative ones count from the end."""
    begin = max(first + count, 0) if first < 0 else first
    end = last + count if last < 0 else last
    return slice(begin, max(end + 1, 0))


# Strings


@command("GET", 2)
def get(at: Keyspace, words: Words) -> Reply:
    return at.text(words[1])


@command("SET", -3, grows=True)
def set_(at: Keyspace, words: Words) -> Reply:
    if len(words) > 3:
        raise UnknownCommand(words)
    at.data[words[1]] = words[2]
    at.dirty += 1
    return OK


@command("INCR", 2, grows=True)
def incr(at: Keyspace, words: Words) -> Reply:
    before = at.text(words[1])
    number = 1 if before is None else whole(before) + 1
    at.data[words[1]] = b"%d" % number
    at.dirty += 1
    return number
