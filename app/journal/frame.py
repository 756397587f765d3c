"""Frames: the events of one node as columns, encoded for the store.

A frame is a line of JSON, `{"v":3,"node":"a","n":500,"t0":...,"t1":...,"origin":"b"}`, and its
body: JSON, compressed by zlib if it is long. The line suffices to count events, to find gaps, and
to skip frames that are too old. `Body` describes the columns.
"""

import zlib
from typing import Any, Final, NamedTuple, TypedDict, cast

import orjson

from holdfast.journal.schema import VERSION

# Compressing less costs more time than it saves room; a compressed body never begins with `{`.
_PLAIN = 500
# Below zlib's defaults: its allocations took most of the time, and output was not smaller.
_WINDOW_BITS, _MEMORY_LEVEL = 13, 7
# More than any server writes; a few bytes could otherwise decompress into all memory.
_LONGEST = 64 * 1024 * 1024
_HEAD = 1024
_NUMBERS = ("n", "t0", "t1")
# `published` omits the usual values; they must not change.
USUAL_PRIORITY: Final = 5
USUALLY = {"kept": 0, "priority": USUAL_PRIORITY}


class FrameUnreadable(ValueError):
    """Not a frame, not a complete one, or one of a later version; the text says which."""


class Head(NamedTuple):
    """The line before a frame's body; times in microseconds since 1970."""

    v: int
    node: str
    # The number of events.
    n: int
    # The earliest and the latest time. If the clock was set back, the latter is when the frame was
    # written, and some events may lie outside.
    t0: int
    t1: int
    # The deployment, with whose name ids of messages begin. In frames of earlier versions it is
    # empty: ids began with the node's name.
    origin: str = ""

    @property
    def origin_or_node(self) -> str:
        """The name with which ids of messages begin."""
        return self.origin or self.node


class Messages(TypedDict, total=False):
    """The messages of this frame, each once; events have their numbers, from 0."""

    # Nanoseconds after t0.
    id: list[int]
    # Numbers of channels; -1 if unknown here.
    channel: list[int]
    # Numbers of names; missing if all ids begin with the name in the head.
    origin: list[int]


class Published(TypedDict, total=False):
    """A row for each publish, at the time in the message's id, but not after `t1`.

    That is the time of receipt. Ids always ascend: after the clock was set back, they are later
    than their frame, whose time then replaces them. `message` and `by` are numbers; -1 in `by` is
    the server itself.
    """

    message: list[int]
    copies: list[int]
    size: list[int]
    by: list[int]
    # Missing if all have the usual value.
    kept: list[int]
    priority: list[int]


class Delivered(TypedDict, total=False):
    """A row for equal events of some messages and some receivers.

    It stands for as many events as messages times receivers in the group: message by message, all
    receivers of each. A single message stands without a list; `t` is a list with a time for each
    receiver, or one time for all. Columns from `attempt` on are missing if no row has a value.
    """

    kind: list[str]
    messages: list[int | list[int]]
    # The number of a group.
    receivers: list[int]
    t: list[int | list[int]]
    attempt: list[int | None]
    code: list[str | None]
    letter: list[int | None]
    fingerprint: list[str | None]
    generation: list[int | None]
    wording: list[str | None]
    kept: list[int | None]


class Changed(TypedDict, total=False):
    """A row for each change of a session, a channel or a node; -1 is no name, or no channel."""

    kind: list[str]
    t: list[int]
    name: list[int]
    channel: list[int]
    what: list[str | None]
    number: list[int | None]


class Body(TypedDict, total=False):
    """The blocks of a frame; those without rows are missing."""

    names: list[str]
    # Receivers that share events, as numbers of names.
    groups: list[list[int]]
    channels: list[str]
    messages: Messages
    published: Published
    delivered: Delivered
    changed: Changed


class Frame(NamedTuple):
    """One frame, decoded."""

    head: Head
    body: Body


def encode(head: Head, body: Body) -> bytes:
    line = orjson.dumps(head._asdict(), option=orjson.OPT_APPEND_NEWLINE)
    columns = orjson.dumps(body)
    if len(columns) < _PLAIN:
        return line + columns
    pack = zlib.compressobj(1, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL)
    return b"".join((line, pack.compress(columns), pack.flush()))


def decode_head(frame: bytes) -> Head:
    """Decode the first line of a frame and ignore the rest."""
    line, end, _ = frame[:_HEAD].partition(b"\n")
    try:
        given = orjson.loads(line) if end else None
    except orjson.JSONDecodeError as error:
        raise FrameUnreadable("this is not a frame: it does not begin with a line") from error
    if not isinstance(given, dict) or type(given.get("v")) is not int:
        raise FrameUnreadable("this is not a frame: its first line is that of something else")
    if given["v"] > VERSION:
        raise FrameUnreadable(f"a frame of version {given['v']}, by a newer holdfast: update this")
    if not isinstance(given.get("node"), str) or any(
        type(given.get(name)) is not int for name in _NUMBERS
    ):
        raise FrameUnreadable("this is not a frame: a field is missing in its first line")
    origin = given.get("origin", "")
    if not isinstance(origin, str):
        raise FrameUnreadable("this is not a frame: the origin in its first line is no name")
    return Head(given["v"], given["node"], given["n"], given["t0"], given["t1"], origin)


def decode(frame: bytes) -> Frame:
    """Decode a frame; raise `FrameUnreadable` if that is impossible."""
    head = decode_head(frame)
    given = _columns(frame[frame.index(b"\n") + 1 :])
    if not isinstance(given, dict):
        raise FrameUnreadable("a frame whose body has no columns")
    body = cast("Body", given)
    try:
        events = count(body)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise FrameUnreadable("a frame whose columns do not fit together") from error
    if events != head.n:
        raise FrameUnreadable(f"a frame of {head.n} events has {events}")
    return Frame(head, body)


def _columns(packed: bytes) -> Any:  # noqa: ANN401 - JSON until it has been looked at
    if not packed.startswith(b"{"):
        unpack = zlib.decompressobj()
        try:
            packed = unpack.decompress(packed, _LONGEST)
        except zlib.error as error:
            raise FrameUnreadable(f"a frame whose body is damaged: {error}") from error
        if not unpack.eof or unpack.unused_data:
            raise FrameUnreadable("a frame whose body is torn, too long, or followed by more")
    try:
        return orjson.loads(packed)
    except orjson.JSONDecodeError as error:
        raise FrameUnreadable(f"a frame whose body is damaged: {error}") from error


def count(body: Body) -> int:
    """Return the number of events; raise an error if the columns of a block differ in length."""
    _rows(body, "messages")
    events = _rows(body, "published") + _rows(body, "changed")
    if _rows(body, "delivered"):
        delivered = body["delivered"]
        sizes = [len(group) for group in body["groups"]]
        for messages, group in zip(delivered["messages"], delivered["receivers"], strict=True):
            events += sizes[group] * (len(messages) if isinstance(messages, list) else 1)
    return events


def _rows(body: Body, name: str) -> int:
    if name not in body:
        return 0
    columns = cast("Any", body)[name].values()
    if not all(isinstance(column, list) for column in columns):
        raise TypeError(name)
    (rows,) = {len(column) for column in columns}
    return rows
