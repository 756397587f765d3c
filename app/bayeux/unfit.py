"""Messages with a value that is JSON and cannot be passed on: each is refused by itself.

Two such values make orjson refuse the whole request. A text that was cut within an emoji has half
of a surrogate pair, which UTF-8 has no form for. A number like 1e400 is beyond the range of
doubles, which is all that browsers can hold. The third kind is nested too deep. The reply to the
message names the fault, and its sender goes on; a whole request that is refused is sent again.
"""

import json
import re
from typing import Any, NoReturn

import orjson

from app.bayeux.errors import BayeuxError, RequestRefused
from app.delivery.json_text import is_deeper

# What the reply to a message needs of it, and what says whose the request is.
_REPEATED = ("channel", "id", "clientId", "subscription")
# Of a request that is searched, so that this takes 25 ms at most: bytes, values by the characters
# that announce them, and messages that are unfit.
_MOST_BYTES = 2 * 1024 * 1024
_MOST_VALUES = 30_000
_MOST_UNFIT = 1000
# Integers up to here are what they were, read as doubles.
_MOST_EXACT = 2**53
_SPACE = re.compile(r"[ \t\n\r]*+")


class Unfit(dict[str, Any]):
    """A message that is refused whatever else it says: what its reply repeats, and its fault."""

    def __init__(self, message: dict[str, Any], fault: BayeuxError) -> None:
        super().__init__()
        for name in _REPEATED:
            if name in message and _is_plain(message[name]):
                self[name] = message[name]
        self.fault = fault


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, str) and _is_plain(each) for each in value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
        return True
    return type(value) is int


class Salvage:
    """What can be read of a request that orjson does not read: its messages, one by one."""

    def __init__(self, most_messages: int, depth: int) -> None:
        self._most_messages = most_messages
        self._depth = depth
        self._unfit = 0

    def read(self, body: bytes) -> object:
        """What `orjson.loads` would return, but for unfit messages; raises `RequestRefused`."""
        try:
            if len(body) > _MOST_BYTES or _values_of(body) > _MOST_VALUES:
                raise ValueError("too much to search")
            return self._read(body.decode())
        except (ValueError, RecursionError) as error:
            raise RequestRefused(BayeuxError.REQUEST_MALFORMED) from error

    def _read(self, text: str) -> object:
        at = _skip(text, 0)
        if text[at : at + 1] == "[":
            read, end = self._read_array(text, _skip(text, at + 1))
        else:
            read, end = self._read_message(text, at, self._depth)
        if _skip(text, end) != len(text):
            raise ValueError("more than one value")
        return read

    def _read_array(self, text: str, at: int) -> tuple[object, int]:
        messages: list[object] = []
        while True:
            message, at = self._read_message(text, at, self._depth - 1)
            messages.append(message)
            if len(messages) > self._most_messages:
                raise RequestRefused(BayeuxError.REQUEST_TOO_LARGE)
            at = _skip(text, at)
            if text[at : at + 1] != ",":
                break
            at = _skip(text, at + 1)
        if text[at : at + 1] != "]":
            raise ValueError("an array without an end")
        return messages, at + 1

    def _read_message(self, text: str, at: int, depth: int) -> tuple[object, int]:
        # This one says where a message ends, orjson what is in it.
        value, end = _DECODER.raw_decode(text, at)
        said = text[at:end]
        try:
            return orjson.loads(said), end
        except orjson.JSONDecodeError:
            if not isinstance(value, dict):
                raise
        number = value.get("id")
        if isinstance(number, float) and number.is_integer() and abs(number) <= _MOST_EXACT:
            value["id"] = int(number)
        self._unfit += 1
        if self._unfit > _MOST_UNFIT:
            raise ValueError("too many unfit messages")
        return Unfit(value, _fault_of(said, value, depth)), end


def _values_of(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _fault_of(said: str, message: object, depth: int) -> BayeuxError:
    """Why orjson does not read a message that is JSON."""
    if said.count("[") + said.count("{") > depth and is_deeper(message, depth):
        return BayeuxError.MESSAGE_TOO_DEEP
    try:
        # With other characters in the place of all surrogates.
        orjson.loads(said.replace("\\ud", "\\u0").replace("\\uD", "\\u0"))
    except orjson.JSONDecodeError:
        return BayeuxError.NUMBER_INVALID
    return BayeuxError.TEXT_INVALID


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


# Integers as doubles: of many digits that takes much less time.
_DECODER = json.JSONDecoder(parse_int=float, parse_constant=_refuse)
