"""Unfolds frames into Arrow columns, many at a time, without an object for each event.

The result equals holdfast.journal.unfold's, which is simple and slow.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from holdfast.journal.frame import USUALLY, Frame, FrameUnreadable
from holdfast.journal.schema import MOST_EVENTS
from holdfast.pipeline.arrow import batch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_NS_PER_US = 1000
# The latest time that a frame may have: the year 2100.
_LATEST_US = 4_102_444_800_000_000
_MOST_NS = 2**62
# The errors that malformed columns cause.
_MISFITS = (
    pa.ArrowException,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
)


class NumberedFrame(NamedTuple):
    """A frame with its number in the journal."""

    frame: Frame
    epoch: str
    seq: int


def tables(frames: Sequence[NumberedFrame]) -> Iterator[pa.RecordBatch]:
    """Yield all events of these frames.

    Raises:
        FrameUnreadable: The columns of one of them do not fit together.
    """
    try:
        yield from _Page(frames).tables()
    except _MISFITS as error:
        if isinstance(error, FrameUnreadable):
            raise
        raise FrameUnreadable("a frame whose columns do not fit together") from error


class _Page:
    """Some frames with concatenated lists; `bases` say where the lists of each begin."""

    def __init__(self, frames: Sequence[NumberedFrame]) -> None:
        heads = [each.frame.head for each in frames]
        if any(not 0 < head.n <= MOST_EVENTS for head in heads):
            raise FrameUnreadable("a frame with more events than there can be")
        _must(all(0 <= head.t0 < _LATEST_US for head in heads))
        self._bodies: list[dict[str, Any]] = [cast("Any", each.frame.body) for each in frames]
        self._t0 = _numbers([head.t0 for head in heads])
        self._t1 = _numbers([head.t1 for head in heads])
        self._node = pa.array([head.node for head in heads], pa.string())
        self._default = pa.array([head.origin_or_node for head in heads], pa.string())
        self._epoch = pa.array([each.epoch for each in frames], pa.string())
        self._seq = _numbers([each.seq for each in frames])
        self._names = _Words(self._bodies, "names")
        self._channels = _Words(self._bodies, "channels")
        self._read_messages()
        self._first = np.zeros(len(frames), np.int64)

    def _read_messages(self) -> None:
        blocks = [body.get("messages", {}) for body in self._bodies]
        ids, which = _joined(block.get("id", ()) for block in blocks)
        places, same = _joined(block.get("channel", ()) for block in blocks)
        _must(np.array_equal(which, same) and bool((np.abs(ids) < _MOST_NS).all()))
        self._messages = np.bincount(which, minlength=len(blocks))
        self._message_base = _begins(self._messages)
        self._id = self._t0[which] * _NS_PER_US + ids
        self._channel = self._channels.places(places, which)
        origins: list[int] = []
        for block, count in zip(blocks, self._messages, strict=True):
            origins.extend(block.get("origin", repeat(-1, int(count))))
        self._origin = self._names.places(_numbers(origins), which)
        self._home = which

    def tables(self) -> Iterator[pa.RecordBatch]:
        for part in (self._published, self._delivered, self._changed):
            made = part()
            if made is not None:
                yield made

    def _published(self) -> pa.RecordBatch | None:
        column, which = self._block("published", ("message", "copies", "size", "by"))
        if not which.size:
            return None
        place = self._place(column["message"], which)
        columns = self._about(place)
        columns |= {name: pa.array(column[name]) for name in ("copies", "size")}
        columns["sender"] = self._names.take(self._names.places(column["by"], which))
        blocks = [body.get("published", {}) for body in self._bodies]
        rows = [block.get("message", ()) for block in blocks]
        for name, usual in USUALLY.items():
            columns[name] = pa.array(_numbers(_optional(blocks, name, rows, usual)))
        kind = pa.repeat("published", which.size)
        ts = np.minimum(self._id[place] // _NS_PER_US, self._t1[which])
        return self._batch(columns, kind, which, ts - self._t0[which])

    def _delivered(self) -> pa.RecordBatch | None:
        blocks = [body.get("delivered", {}) for body in self._bodies]
        kinds = [block.get("kind", ()) for block in blocks]
        home = np.repeat(np.arange(len(blocks)), _lengths(kinds))
        if not home.size:
            return None
        messages, per_message = _nested(block.get("messages", ()) for block in blocks)
        group = self._group([block.get("receivers", ()) for block in blocks], home)
        times, per_time = _nested(block.get("t", ()) for block in blocks)
        _must(per_message.size == per_time.size == home.size)
        receivers, per_group = _nested(body.get("groups", ()) for body in self._bodies)
        per_receiver = per_group[group]
        # Each receiver has a time, or all have the same one.
        _must(bool(((per_time == per_receiver) | (per_time == 1)).all()))
        # The order is by row, then by message, then by receiver.
        counts = per_message * per_receiver
        row = np.repeat(np.arange(home.size), counts)
        k = np.arange(row.size) - np.repeat(_begins(counts), counts)
        of_message = _begins(per_message)[row] + k // per_receiver[row]
        n = k % per_receiver[row]
        of_receiver = _begins(per_group)[group][row] + n
        of_time = _begins(per_time)[row] + np.where(per_time[row] == 1, 0, n)
        which = home[row]
        columns = self._about(self._place(messages[of_message], which))
        columns["receiver"] = self._names.take(self._names.places(receivers[of_receiver], which))
        for name, type in _WHY.items():
            if any(name in block for block in blocks):
                values = _optional(blocks, name, kinds)
                column = _integers(values) if type == pa.int64() else pa.array(values, type)
                columns[name] = column.take(pa.array(row))
        kind = pa.array([*chain.from_iterable(kinds)], pa.string()).take(pa.array(row))
        return self._batch(columns, kind, which, times[of_time])

    def _group(self, places: Sequence[Sequence[int]], home: "Numbers") -> "Numbers":
        """Convert places of groups in their frames to places on this page."""
        group, which = _joined(iter(places))
        counts = _lengths([body.get("groups", ()) for body in self._bodies])
        _must(np.array_equal(which, home))
        _must(bool((group >= 0).all() and (group < counts[home]).all()))
        return group + _begins(counts)[home]

    def _changed(self) -> pa.RecordBatch | None:
        column, which = self._block("changed", ("t", "name", "channel"))
        if not which.size:
            return None
        blocks = [body.get("changed", {}) for body in self._bodies]
        numbers = chain.from_iterable(block.get("number", ()) for block in blocks)
        columns = {
            "receiver": self._names.take(self._names.places(column["name"], which)),
            "channel": self._channels.take(self._channels.places(column["channel"], which)),
            "what": _texts(blocks, "what"),
            "number": _integers([*numbers]),
        }
        return self._batch(columns, _texts(blocks, "kind"), which, column["t"])

    # Parts of the tables

    def _block(self, name: str, wanted: Sequence[str]) -> tuple[dict[str, "Numbers"], "Numbers"]:
        blocks = [body.get(name, {}) for body in self._bodies]
        joined = {each: _joined(block.get(each, ()) for block in blocks) for each in wanted}
        which = joined[wanted[0]][1]
        _must(all(np.array_equal(which, other) for _, other in joined.values()))
        return {each: values for each, (values, _) in joined.items()}, which

    def _place(self, places: "Numbers", which: "Numbers") -> "Numbers":
        """Convert places of messages in their frames to places on this page."""
        _must(bool((places >= 0).all() and (places < self._messages[which]).all()))
        return places + self._message_base[which]

    def _about(self, place: "Numbers") -> dict[str, pa.Array]:
        origin = self._origin[place]
        own = self._default.take(pa.array(self._home[place]))
        named = self._names.take(origin)
        return {
            "msg": pa.array(self._id[place]),
            "origin": pa.compute.coalesce(named, own) if (origin >= 0).any() else own,
            "channel": self._channels.take(self._channel[place]),
        }

    def _batch(
        self, columns: dict[str, pa.Array], kind: pa.Array, which: "Numbers", t: "Numbers"
    ) -> pa.RecordBatch:
        ts = self._t0[which] + t
        _must(bool((ts >= 0).all() and (ts < _LATEST_US).all()))
        _must(len(kind) == which.size and not kind.null_count)
        counts = np.bincount(which, minlength=len(self._first))
        pos = np.arange(which.size) + (self._first - _begins(counts))[which]
        self._first += counts
        home = pa.array(which)
        columns |= {
            "node": self._node.take(home),
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "kind": kind,
            "epoch": self._epoch.take(home),
            "seq": pa.array(self._seq[which]),
            "pos": pa.array(pos),
        }
        return batch(columns, which.size)


class _Words:
    """The names or channels of all frames; a place of -1 means none."""

    def __init__(self, bodies: Sequence[dict[str, Any]], name: str) -> None:
        lists = [body.get(name, ()) for body in bodies]
        self._words = pa.array([*chain.from_iterable(lists)], pa.string())
        self._counts = _lengths(lists)
        self._bases = _begins(self._counts)

    def places(self, places: "Numbers", which: "Numbers") -> "Numbers":
        """Convert places in the frames' lists to places in the joined list."""
        _must(places.size == which.size)
        _must(bool((places >= -1).all() and (places < self._counts[which]).all()))
        return np.where(places < 0, -1, places + self._bases[which])

    def take(self, places: "Numbers") -> pa.Array:
        return self._words.take(pa.array(places, mask=places < 0))


_WHY = {
    "attempt": pa.int64(),
    "code": pa.string(),
    "wording": pa.string(),
    "letter": pa.int64(),
    "fingerprint": pa.string(),
    "generation": pa.int64(),
    "kept": pa.int64(),
}


def _must(fits: bool) -> None:
    if not fits:
        raise FrameUnreadable("a frame whose columns do not fit together")


def _integers(values: Sequence[int | None]) -> pa.Array:
    """Make an integer column; Arrow would truncate other numbers if it were given the type."""
    found = pa.array(values)
    _must(found.type in (pa.int64(), pa.null()))
    return found.cast(pa.int64())


def _numbers(values: Sequence[int]) -> "Numbers":
    numbers = _integers(values)
    _must(not numbers.null_count)
    return cast("Numbers", numbers.to_numpy())


def _lengths(lists: Sequence[Sequence[Any]]) -> "Numbers":
    return np.fromiter(map(len, lists), np.int64, len(lists))


def _begins(counts: "Numbers") -> "Numbers":
    return cast("Numbers", np.cumsum(counts) - counts)


def _joined(lists: Iterator[Sequence[int]]) -> tuple["Numbers", "Numbers"]:
    """Return all numbers, and for each the index of its list."""
    parts = list(lists)
    which = np.repeat(np.arange(len(parts)), _lengths(parts))
    return _numbers([*chain.from_iterable(parts)]), which


def _nested(blocks: Iterator[Sequence[Any]]) -> tuple["Numbers", "Numbers"]:
    """Return all numbers of all rows, and their count in each row; a bare number counts one."""
    rows = [*chain.from_iterable(blocks)]
    if list not in map(type, rows):
        return _numbers(rows), np.ones(len(rows), np.int64)
    rows = [row if isinstance(row, list) else (row,) for row in rows]
    return _numbers([*chain.from_iterable(rows)]), _lengths(rows)


def _optional(
    blocks: Sequence[dict[str, Any]],
    name: str,
    kinds: Sequence[Sequence[Any]],
    usual: int | None = None,
) -> list[Any]:
    """Return the optional values, one for each row."""
    values: list[Any] = []
    for block, rows in zip(blocks, kinds, strict=True):
        values.extend(block.get(name, repeat(usual, len(rows))))
    return values


def _texts(blocks: Sequence[dict[str, Any]], name: str) -> pa.Array:
    return pa.array([*chain.from_iterable(block.get(name, ()) for block in blocks)], pa.string())
