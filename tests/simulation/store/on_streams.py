"""Commands on streams."""

from bisect import bisect_left, bisect_right

from tests.simulation.store.command import UnknownCommand, Words, command, whole
from tests.simulation.store.keyspace import Keyspace, Stream, StreamId
from tests.simulation.store.replies import NO_LIST, ByKey, Refused, Reply

_INVALID = "ERR Invalid stream ID specified as stream command argument"
_NOT_ABOVE = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
_MOST = 2**64 - 1
LAST: StreamId = (_MOST, _MOST)


def text_of(id: StreamId) -> bytes:
    return b"%d-%d" % id


def _id(word: bytes, missing: int) -> StreamId:
    ms, dash, number = word.partition(b"-")
    parts = (ms, number) if dash else (ms,)
    if not all(part.isdigit() and int(part) <= _MOST for part in parts):
        raise Refused(_INVALID)
    return int(ms), int(number) if dash else missing


@command("XADD", -5, grows=True)
def xadd(at: Keyspace, words: Words) -> Reply:
    rest = [*words[2:]]
    is_made = rest[0].upper() != b"NOMKSTREAM"
    if not is_made:
        del rest[0]
    limit = _limit(rest, words)
    word, fields = rest[0], rest[1:]
    if word.upper() in (b"LIMIT", b"KEEPREF"):
        raise UnknownCommand(words)
    is_zero = word != b"*" and _id(word.removesuffix(b"-*"), 0) == (0, 0) and b"*" not in word
    if not fields or len(fields) % 2:
        raise Refused("ERR wrong number of arguments for 'xadd' command")
    if is_zero:
        raise Refused("ERR The ID specified in XADD must be greater than 0-0")
    found = at.find(Stream, words[1])
    if found is None and not is_made:
        return None
    id = _next_id(at, word, found.last if found is not None else (0, 0))
    stream = at.make(Stream, words[1])
    stream.ids.append(id)
    stream.entries[id] = fields
    stream.last = id
    at.dirty += 1
    at.effects = [[b"XADD", words[1], text_of(id), *fields]]
    if limit is not None and (removed := _trim(stream, limit)):
        at.effects.append([b"XTRIM", words[1], b"MAXLEN", b"%d" % len(stream)])
        at.dirty += removed
    return text_of(id)


def _next_id(at: Keyspace, word: bytes, last: StreamId) -> StreamId:
    if word == b"*":
        now = int(at.wall() * 1000)
        return (now, 0) if now > last[0] else (last[0], last[1] + 1)
    if word.endswith(b"-*"):
        ms = _id(word[:-2], 0)[0]
        id = (ms, last[1] + 1 if ms == last[0] else 0)
    else:
        id = _id(word, 0)
    if id <= last:
        raise Refused(_NOT_ABOVE)
    return id


Limit = tuple[bytes, bytes]


def _limit(rest: list[bytes], words: Words) -> Limit | None:
    """Take the words that limit the stream. Those for about the limit do nothing here."""
    kind = rest[0].upper()
    if kind not in (b"MAXLEN", b"MINID"):
        return None
    del rest[0]
    is_about = rest[:1] == [b"~"]
    if is_about or rest[:1] == [b"="]:
        del rest[0]
    if not rest:
        raise UnknownCommand(words)
    limit = (kind, rest.pop(0))
    _check_limit(limit)
    return None if is_about else limit


def _check_limit(limit: Limit) -> None:
    kind, word = limit
    if kind == b"MINID":
        _id(word, 0)
    elif whole(word) < 0:
        raise Refused("ERR The MAXLEN argument must be >= 0.")


def _trim(stream: Stream, limit: Limit) -> int:
    kind, word = limit
    if kind == b"MINID":
        return stream.trim(bisect_left(stream.ids, _id(word, 0)))
    return stream.trim(max(len(stream) - whole(word), 0))


@command("XTRIM", -4, writes=True)
def xtrim(at: Keyspace, words: Words) -> Reply:
    rest = [*words[2:]]
    if rest[0].upper() not in (b"MAXLEN", b"MINID"):
        raise UnknownCommand(words)
    limit = _limit(rest, words)
    if rest:
        raise UnknownCommand(words)
    found = at.find(Stream, words[1])
    if found is None or limit is None:
        return 0
    removed = _trim(found, limit)
    at.dirty += removed
    return removed


@command("XDEL", -3, writes=True)
def xdel(at: Keyspace, words: Words) -> Reply:
    found = at.find(Stream, words[1])
    if found is None:
        return 0
    removed = 0
    for id in [_id(word, 0) for word in words[2:]]:
        if found.entries.pop(id, None) is not None:
            found.ids.remove(id)
            removed += 1
    at.dirty += removed
    return removed


@command("XLEN", 2)
def xlen(at: Keyspace, words: Words) -> Reply:
    found = at.find(Stream, words[1])
    return 0 if found is None else len(found)


@command("XRANGE", -4)
def xrange_(at: Keyspace, words: Words) -> Reply:
    return _range(at, words, words[2], words[3], step=1)


@command("XREVRANGE", -4)
def xrevrange(at: Keyspace, words: Words) -> Reply:
    return _range(at, words, words[3], words[2], step=-1)


def _range(at: Keyspace, words: Words, first: bytes, last: bytes, *, step: int) -> Reply:
    begin, end = _bound(first, 0), _bound(last, _MOST)
    most = _count(words[4:])
    found = at.find(Stream, words[1])
    if found is None:
        return []
    if most == 0:
        return NO_LIST
    low = (bisect_right if first[:1] == b"(" else bisect_left)(found.ids, begin)
    high = (bisect_left if last[:1] == b"(" else bisect_right)(found.ids, end)
    return _entries(found, found.ids[low:high][::step][:most])


BLOCK = b"BLOCK"


def _bound(word: bytes, missing: int) -> StreamId:
    if word == b"-":
        return (0, 0)
    return LAST if word == b"+" else _id(word.removeprefix(b"("), missing)


def _count(words: Words) -> int | None:
    if not words:
        return None
    if len(words) != 2 or words[0].upper() != b"COUNT":
        raise UnknownCommand(words)
    return max(whole(words[1]), 0)


def _entries(stream: Stream, ids: list[StreamId]) -> list[Reply]:
    return [[text_of(id), stream.entries[id]] for id in ids]


def block_ms(words: Words) -> int | None:
    """Return how long a client that reads waits for something, for ever if 0; None: not at all."""
    upper = [word.upper() for word in words]
    if upper[0] != b"XREAD" or BLOCK not in upper[: upper.index(b"STREAMS")]:
        return None
    return whole(words[upper.index(BLOCK) + 1], "ERR timeout is not an integer or out of range")


@command("XREAD", -4, first_key=0)
def xread(at: Keyspace, words: Words) -> Reply:
    upper = [word.upper() for word in words]
    if b"STREAMS" not in upper:
        raise UnknownCommand(words)
    begin = upper.index(b"STREAMS") + 1
    # A script does not wait, so BLOCK is for clients only.
    options = upper[1 : begin - 1]
    if BLOCK in options:
        at_option = options.index(BLOCK)
        del options[at_option : at_option + 2]
    most = _count(options)
    names = words[begin:]
    if len(names) % 2:
        raise Refused(
            "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be "
            "specified."
        )
    half = len(names) // 2
    found = ByKey()
    for key, word in zip(names[:half], names[half:], strict=True):
        if word in (b"$", b"+", b">"):
            raise UnknownCommand(words)
        stream = at.find(Stream, key)
        after = _id(word, 0)
        if stream is not None:
            ids = stream.ids[bisect_right(stream.ids, after) :]
            if ids:
                found[key] = _entries(stream, ids[: most or None])
    return found or NO_LIST
