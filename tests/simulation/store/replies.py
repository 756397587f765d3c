"""What commands reply, and how it is written in RESP2 and RESP3."""

from decimal import Decimal
from math import isinf

# Text, numbers, lists and dictionaries stand for themselves, None for a null.
Reply = object


class Status(bytes):
    """A simple string."""

    __slots__ = ()


class Failure(bytes):
    """An error."""

    __slots__ = ()


class Refused(Exception):
    """A command fails with this error and has done nothing."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.failure = Failure(text.encode())


class Members(list[bytes]):
    """A set."""


class Pairs(list[Reply]):
    """Names and values in turn, which RESP3 puts into pairs: members with their scores."""


class ByKey(dict[Reply, Reply]):
    """What each key has: in RESP2 a list of pairs."""


class NoList:
    """A null where a list is expected."""


NO_LIST = NoList()


class Verbatim(bytes):
    """Text for people."""

    __slots__ = ()


OK = Status(b"OK")
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_AN_INTEGER = "ERR value is not an integer or out of range"


def number_text(number: float) -> bytes:
    """Write a number as the store writes it."""
    number = float(number)
    if isinf(number):
        return b"-inf" if number < 0 else b"inf"
    if number == int(number) and abs(number) < 2**63:
        return b"%d" % int(number)
    sign, figures, shift = Decimal(repr(number)).as_tuple()
    digits = "".join(map(str, figures)).rstrip("0")
    shift = int(shift) + len(figures) - len(digits)
    size = shift + len(digits) - 1
    if shift >= 0 and size < len(digits) + 7:
        text = digits + "0" * shift
    elif shift < 0 and (shift > -7 or abs(size) < 4):
        text = digits.rjust(1 - shift, "0")
        text = f"{text[:shift]}.{text[shift:]}"
    else:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        text = f"{digits[0]}{rest}e{size:+d}"
    return f"{'-' if sign else ''}{text}".encode()


def encoded(reply: Reply, protocol: int) -> bytes:
    """Write a reply."""
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, Status):
        return b"+%b\r\n" % reply
    if isinstance(reply, Failure):
        return b"-%b\r\n" % reply
    if type(reply) is bytes:
        return b"$%d\r\n%b\r\n" % (len(reply), reply)
    parts: list[bytes] = []
    _write(reply, protocol, parts)
    return b"".join(parts)


def _write(reply: Reply, protocol: int, parts: list[bytes]) -> None:
    if isinstance(reply, dict | list):
        _write_many(reply, protocol, parts)
    elif protocol == 2:
        parts.append(_single_in_2(reply))
    else:
        parts.append(_single_in_3(reply))


def _single_in_2(reply: Reply) -> bytes:
    match reply:
        case None:
            return b"$-1\r\n"
        case NoList():
            return b"*-1\r\n"
        case float():
            return encoded(number_text(reply), 2)
        case Verbatim():
            return encoded(bytes(reply), 2)
        case _:
            return _single(reply)


def _single_in_3(reply: Reply) -> bytes:
    match reply:
        case None | NoList():
            return b"_\r\n"
        case float():
            return b",%b\r\n" % number_text(reply)
        case Verbatim():
            return b"=%d\r\ntxt:%b\r\n" % (len(reply) + 4, reply)
        case _:
            return _single(reply)


def _single(reply: Reply) -> bytes:
    if not isinstance(reply, Status | Failure | int | bytes):
        raise TypeError(f"no reply: {reply!r}")
    return encoded(reply, 3)


def _write_many(reply: list[Reply] | dict[Reply, Reply], protocol: int, parts: list[bytes]) -> None:
    is_new = protocol == 3
    mark, each = b"*", [*reply]
    if isinstance(reply, ByKey) and not is_new:
        each = pairs_of(reply)
    elif isinstance(reply, dict):
        mark = b"%"
        each = [one for pair in reply.items() for one in pair]
    elif isinstance(reply, Pairs) and is_new:
        each = [[*pair] for pair in zip(reply[::2], reply[1::2], strict=True)]
    elif isinstance(reply, Members):
        mark = b"~"
    count = len(each) // 2 if is_new and mark == b"%" else len(each)
    parts.append(b"%b%d\r\n" % (mark if is_new else b"*", count))
    for one in each:
        _write(one, protocol, parts)


def pairs_of(reply: ByKey) -> list[Reply]:
    return [[key, value] for key, value in reply.items()]
