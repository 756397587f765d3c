"""Commands on sorted sets."""

from bisect import bisect_left, bisect_right
from math import isnan

from tests.simulation.store.command import UnknownCommand, Words, command, whole
from tests.simulation.store.keyspace import Keyspace, SortedSet
from tests.simulation.store.on_hashes import between
from tests.simulation.store.replies import Pairs, Refused, Reply

_NOT_A_RANGE = "ERR min or max not valid string range item"


@command("ZADD", -4, grows=True)
def zadd(at: Keyspace, words: Words) -> Reply:
    if len(words) % 2:
        raise UnknownCommand(words)
    scores = [_score(word) for word in words[2::2]]
    found = at.make(SortedSet, words[1])
    added = 0
    for score, member in zip(scores, words[3::2], strict=True):
        before = found.scores.get(member)
        added += found.put(member, score)
        at.dirty += before != score
    return added


def _score(word: bytes) -> float:
    try:
        score = float(word)
    except ValueError:
        score = float("nan")
    if isnan(score) or b"_" in word:
        raise Refused("ERR value is not a valid float")
    return score


@command("ZREM", -3, writes=True)
def zrem(at: Keyspace, words: Words) -> Reply:
    found = at.find(SortedSet, words[1])
    if found is None:
        return 0
    removed = sum(map(found.remove, words[2:]))
    at.dirty += removed
    if not found.scores:
        del at.data[words[1]]
    return removed


@command("ZCARD", 2)
def zcard(at: Keyspace, words: Words) -> Reply:
    found = at.find(SortedSet, words[1])
    return 0 if found is None else len(found)


@command("ZSCORE", 3)
def zscore(at: Keyspace, words: Words) -> Reply:
    found = at.find(SortedSet, words[1])
    return None if found is None else found.scores.get(words[2])


@command("ZPOPMIN", -2, writes=True)
def zpopmin(at: Keyspace, words: Words) -> Reply:
    if len(words) > 2:
        raise UnknownCommand(words)
    found = at.find(SortedSet, words[1])
    if found is None:
        return []
    score, member = found.order[0]
    at.effects = [[b"ZREM", words[1], member]]
    zrem(at, [b"ZREM", words[1], member])
    return [member, score]


@command("ZRANGE", -4)
def zrange(at: Keyspace, words: Words) -> Reply:
    options, rest = set[bytes](), [*map(bytes.upper, words[4:])]
    skipped, most = 0, -1
    while rest:
        option = rest.pop(0)
        if option == b"LIMIT" and len(rest) >= 2:
            skipped, most = whole(rest.pop(0)), whole(rest.pop(0))
        elif option not in (b"BYLEX", b"REV", b"WITHSCORES"):
            raise UnknownCommand(words)
        options.add(option)
    is_backward = b"REV" in options
    if b"BYLEX" in options:
        if b"WITHSCORES" in options:
            raise Refused("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
        low, high = (words[3], words[2]) if is_backward else (words[2], words[3])
        order = _by_text(at, words[1], low, high)
        order = order[::-1] if is_backward else order
        order = order[skipped : None if most < 0 else skipped + most] if skipped >= 0 else []
    elif b"LIMIT" in options:
        raise Refused(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
        )
    else:
        order = _by_place(at, words, is_backward=is_backward)
    return _members(order, has_scores=b"WITHSCORES" in options)


@command("ZREVRANGE", -4)
def zrevrange(at: Keyspace, words: Words) -> Reply:
    options = [*map(bytes.upper, words[4:])]
    if options not in ([], [b"WITHSCORES"]):
        raise UnknownCommand(words)
    return _members(_by_place(at, words, is_backward=True), has_scores=bool(options))


@command("ZLEXCOUNT", 4)
def zlexcount(at: Keyspace, words: Words) -> Reply:
    return len(_by_text(at, words[1], words[2], words[3]))


def _members(order: list[tuple[float, bytes]], *, has_scores: bool) -> Reply:
    if has_scores:
        return Pairs(each for score, member in order for each in (member, score))
    return [member for _, member in order]


def _by_place(at: Keyspace, words: Words, *, is_backward: bool) -> list[tuple[float, bytes]]:
    first, last = whole(words[2]), whole(words[3])
    found = at.find(SortedSet, words[1])
    order = [] if found is None else found.order
    return (order[::-1] if is_backward else order)[between(first, last, len(order))]


def _by_text(at: Keyspace, key: bytes, low: bytes, high: bytes) -> list[tuple[float, bytes]]:
    """Return the members in a range of texts; all have the same score."""
    bounds = [_bound(low), _bound(high)]
    found = at.find(SortedSet, key)
    if found is None:
        return []
    score = found.order[0][0]
    (kind, text), (last_kind, last_text) = bounds
    if kind == "+" or last_kind == "-":
        return []
    first, last = 0, len(found.order)
    if kind != "-":
        first = (bisect_left if kind == "[" else bisect_right)(found.order, (score, text))
    if last_kind != "+":
        last = (bisect_right if last_kind == "[" else bisect_left)(found.order, (score, last_text))
    if found.order[-1][0] != score:
        # The order of the real one is as it falls.
        raise UnknownCommand([key, low, high])
    return found.order[first:last]


def _bound(word: bytes) -> tuple[str, bytes]:
    if word in (b"-", b"+"):
        return word.decode(), b""
    if word[:1] not in (b"[", b"("):
        raise Refused(_NOT_A_RANGE)
    return word[:1].decode(), word[1:]
