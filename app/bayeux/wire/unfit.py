"""Unfit messages: they are JSON but cannot be forwarded. Each is refused alone.

orjson refuses a whole request for two kinds of values: a text cut within an emoji contains half of
a surrogate pair, which has no UTF-8 form, and a number like 1e400 is beyond the range of doubles,
the only numbers in browsers. The third kind is nested too deeply. The reply names the fault of its
message, and the sender continues; a request that is refused as a whole is sent again.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import orjson

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.delivery.basics.json_text import is_deeper

# The setting that limits the bytes of a request.
MAX_SIZE: Final = "max_request_size"
# The fields that the reply repeats, or that identify the session.
_REPEATED = ("channel", "id", "clientId", "subscription")
# Integers up to here are exact as doubles.
_MOST_EXACT = 2**53
# The beginning of a form.
_FORM = "message="
_SPACE = re.compile(r"[ \t\n\r]*+")


class Unfit(dict[str, Any]):
    """A message that is always refused: the fields that its reply repeats, and its fault."""

    def __init__(self, message: dict[str, Any], fault: ErrorReply) -> None:
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
    """The messages of a request that orjson does not read, extracted one by one.

    Finding the end of a message, reading it, and finding its fault are separate steps. Each takes
    30 ms at most, whatever the limits allow, and other requests are handled between two steps.
    """

    def __init__(self, body: bytes, most_messages: int, depth: int) -> None:
        self.messages: list[dict[str, Any]] = []
        self._most_messages = most_messages
        self._depth = depth
        self._steps = self._read(body)

    def go_on(self) -> bool:
        """Take one step. Returns whether it was the last. Raises `RequestRefused`."""
        try:
            next(self._steps)
        except StopIteration:
            return True
        except (ValueError, RecursionError) as error:
            raise malformed(_described(error)) from error
        return False

    def _read(self, body: bytes) -> Iterator[None]:
        text = body.decode()
        at = _skip(text, 0)
        if at == len(text):
            raise malformed("an empty body")
        if text.startswith(_FORM, at):
            raise malformed("a form where JSON was expected")
        is_array = text.startswith("[", at)
        depth = self._depth - is_array
        is_last, count, first_other = False, 0, 0
        while not is_last:
            at = _skip(text, at + 1) if is_array else at
            value, end = _DECODER.raw_decode(text, at)
            if count == self._most_messages:
                raise too_large("max_batch", self._most_messages)
            count += 1
            yield
            if isinstance(value, dict):
                yield from self._read_message(text[at:end], value, depth)
            else:
                first_other = first_other or count
            at = _skip(text, end)
            is_last = not is_array or not text.startswith(",", at)
        if is_array:
            if not text.startswith("]", at):
                raise json.JSONDecodeError("an array without an end", text, at)
            at = _skip(text, at + 1)
        if at != len(text):
            raise json.JSONDecodeError("more than one value", text, at)
        # Not earlier, so that input that is not JSON at all is not called a wrong message.
        if first_other:
            raise malformed(no_object(first_other))

    def _read_message(self, said: str, found: dict[str, Any], depth: int) -> Iterator[None]:
        """Read a message in at most two steps. A fit message needs only the first."""
        if said.count("[") + said.count("{") > depth and is_deeper(found, depth):
            self.messages.append(_unfit(found, ErrorReply.MESSAGE_TOO_DEEP))
            return
        message = _loaded(said)
        if message is None:
            yield
            message = _unfit(found, _fault_of(said))
        self.messages.append(message)


def _loaded(said: str) -> dict[str, Any] | None:
    """Return the message, or None if it is unfit."""
    try:
        message: dict[str, Any] = orjson.loads(said)
    except orjson.JSONDecodeError:
        return None
    return message


def _fault_of(said: str) -> ErrorReply:
    """Return why orjson does not read a message that is valid JSON and not too deep."""
    # All surrogates are replaced by other characters.
    is_read = _loaded(said.replace("\\ud", "\\u0").replace("\\uD", "\\u0")) is not None
    return ErrorReply.TEXT_INVALID if is_read else ErrorReply.NUMBER_INVALID


def _unfit(message: dict[str, Any], fault: ErrorReply) -> Unfit:
    """Create the unfit message from the one found, whose numbers are bytes."""
    said = message.get("id")
    if isinstance(said, bytes):
        number = float(said)
        if number.is_integer() and abs(number) <= _MOST_EXACT:
            message["id"] = int(number)
    return Unfit(message, fault)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _refuse(constant: str) -> NoReturn:
    raise malformed(f"{constant} is not JSON")


def too_large(setting: str, most: int) -> RequestRefused:
    """Return the refusal of a request that exceeds a setting, whose value it names."""
    return RequestRefused(ErrorReply.REQUEST_TOO_LARGE, setting, str(most))


def malformed(what: str) -> RequestRefused:
    """Return the refusal of a request. `what` says what is wrong, in words without punctuation."""
    return RequestRefused(ErrorReply.REQUEST_MALFORMED, what)


def no_object(number: int) -> str:
    """Say that a message, counted from 1, has another type."""
    return f"message {number} is not an object"


def _described(error: ValueError | RecursionError) -> str:
    """Return what is wrong with a body, and where: its bytes count from 0."""
    match error:
        case json.JSONDecodeError():
            return f"not JSON at byte {len(error.doc[: error.pos].encode())}"
        case UnicodeDecodeError():
            return f"not UTF-8 at byte {error.start}"
        case _:
            return "nested too deep to be read"


# This decoder finds the end of a message; orjson reads its content. Numbers stay as they are,
# because converting them takes up to ten times as long as everything else.
_DECODER = json.JSONDecoder(parse_int=str.encode, parse_float=str.encode, parse_constant=_refuse)
