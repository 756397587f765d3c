"""The lives of copies, from events and from the lives that were open before."""

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.journal.schema import Kind
from holdfast.pipeline import schemas
from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.copies import COPY, ENDS, LOST, MESSAGE
from holdfast.pipeline.lake import OPEN
from holdfast.pipeline.messages import is_unnamed
from holdfast.pipeline.rows import Sums, beside, only_if, summed, with_columns
from holdfast.pipeline.runs import NEVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIFE = arrow_of(schemas.LIFE)
_LIFE = (*COPY, "generation")
_HANDED = pa.array([Kind.HANDED, Kind.REDELIVERED, Kind.WRITTEN])
_ENDS = pa.array(ENDS)
# The number of bits for the kind of an end.
_PLACE = 3
# The order of events in the same microsecond.
_RANK = pa.array(
    [Kind.PUBLISHED, Kind.REPLAYED, Kind.HANDED, Kind.REDELIVERED, Kind.REFUSED, Kind.RETURNED]
)
_LAST = pa.scalar(len(_RANK), pa.int32())
_ORDER = ("us", "rank", "seq", "pos")
_COUNTS = ("attempts", "redelivered", "refused")
_NUMBERS: Sums = {
    "handed_us": ("handed_us", "min"),
    "end": ("end", "max"),
    "attempts": ("attempts", "max"),
    "redelivered": ("redelivered", "sum"),
    "refused": ("refused", "sum"),
    # Only if no later event is known.
    "over_us": ("over_us", "max"),
}
# The last or largest value of the events in order.
_WORDS: Sums = {
    "code": ("code", "last"),
    "wording": ("wording", "last"),
    "letter": ("letter", "max"),
    "fingerprint": ("fingerprint", "max"),
}


def lives(events: pa.Table, carried: pa.Table, known: pa.Table) -> pa.Table:
    """Return the life of each copy that has events or was open: LIFE.

    Args:
        events: The events, with their runs as in `carried`: see `holdfast.pipeline.runs`.
        carried: The open copies, with their runs.
        known: The known facts about messages.
    """
    happened = events.filter(pc.is_valid(events["receiver"]))
    both = [_parts(happened), _parts_of_open(carried)]
    parts = pa.concat_tables(both, promote_options="permissive")
    parts = with_columns(parts, {"generation": pa.array(_generations(parts))})
    whole = beside(summed(parts, _LIFE, _NUMBERS), _words(parts), _LIFE)
    whole = beside(whole, known.select([*MESSAGE, "channel", "kept"]), MESSAGE)
    return _ended(beside(whole, _replay_of(happened, carried), _LIFE))


def _parts(events: pa.Table) -> pa.Table:
    """Return the part of each event in its life."""
    kind, us = events["kind"], events["ts"].cast(pa.int64())
    is_replay = pc.equal(kind, Kind.REPLAYED)
    return with_columns(
        events.select([*COPY, "over_us", "node", "epoch", "seq", "pos", "code", "fingerprint"]),
        {
            "us": us,
            "rank": pc.coalesce(pc.index_in(kind, _RANK), _LAST),
            "generation": only_if(is_replay, _generation(events)),
            "handed_us": only_if(pc.is_in(kind, _HANDED), us),
            # Encodes the latest end and its kind in one number.
            "end": pc.add(pc.shift_left(us, _PLACE), pc.index_in(kind, _ENDS)),
            "attempts": events["attempt"],
            "redelivered": pc.equal(kind, Kind.REDELIVERED).cast(pa.int64()),
            "refused": pc.equal(kind, Kind.REFUSED).cast(pa.int64()),
            # The wording of an earlier failure does not belong to this code.
            "wording": only_if(pc.is_valid(events["code"]), pc.coalesce(events["wording"], "")),
            # A replay names the letter that it replays.
            "letter": only_if(pc.invert(is_replay), events["letter"]),
        },
    )


def _generation(events: pa.Table) -> pa.ChunkedArray:
    """Return the generations; a replay without one is the first."""
    return pc.coalesce(events["generation"], pa.scalar(1, pa.int32()))


def _parts_of_open(carried: pa.Table) -> pa.Table:
    """Return what earlier batches know of open lives; it comes before all events."""
    first = pa.array(np.zeros(len(carried), np.int32))
    return with_columns(
        carried.select([*_LIFE, "over_us", *_COUNTS, *_WORDS]),
        {
            "handed_us": carried["handed_ts"].cast(pa.int64()),
            **dict.fromkeys(_ORDER, first),
            # If there are several, new events are about the last one.
            "pos": carried["generation"],
        },
    )


def _generations(parts: pa.Table) -> "NDArray[np.int32]":
    """Return each event's generation: of the replay before it, else the open one, else the first.

    Few messages are replayed, so only their events are sorted.
    """
    found = np.zeros(len(parts), np.int32)
    replayed = pc.unique(parts["msg"].filter(pc.greater(parts["generation"], 0)))
    if not len(replayed):
        return found
    rows = np.flatnonzero(pc.is_in(parts["msg"], replayed))
    in_turn = _in_turn(with_columns(parts.take(rows), {"row": pa.array(rows)}))
    generation = in_turn["generation"]
    first = pc.coalesce(generation, pa.scalar(0, generation.type))
    latest = pc.fill_null_forward(pc.if_else(_is_first(in_turn), first, generation))
    found[in_turn["row"].to_numpy()] = latest.to_numpy()
    return found


def _in_turn(parts: pa.Table) -> pa.Table:
    """Sort the events of each copy by the order in which they happened."""
    seed = pc.replace_substring_regex(parts["epoch"], "-[^-]*$", "")
    parts = with_columns(parts, {"journal": pc.binary_join_element_wise(parts["node"], seed, "/")})
    parts = beside(parts, summed(parts, COPY, {"journals": ("journal", "count_distinct")}), COPY)
    # A single journal is in the order of events, even if its clock was set back.
    frame = pc.if_else(pc.equal(parts["journals"], 1), parts["seq"], 0)
    order = [(name, "ascending") for name in (*COPY, "frame", *_ORDER)]
    return with_columns(parts, {"frame": frame}).sort_by(order)


def _is_first(in_turn: pa.Table) -> pa.Array:
    """Return whether an event is the first of its copy."""
    is_first = np.ones(len(in_turn), bool)
    same = (pc.equal(in_turn[name][1:], in_turn[name][:-1]) for name in COPY)
    is_first[1:] = ~np.logical_and.reduce([each.fill_null(False).to_numpy() for each in same])
    return pa.array(is_first)


def _words(parts: pa.Table) -> pa.Table:
    """Return the latest code and details of failures; few lives have any."""
    has_words = reduce(pc.or_, (pc.is_valid(parts[name]) for name in _WORDS))
    in_turn = parts.filter(has_words).sort_by([(name, "ascending") for name in _ORDER])
    return summed(in_turn, _LIFE, _WORDS)


def _replay_of(happened: pa.Table, carried: pa.Table) -> pa.Table:
    """Return the letters that lives were replayed from; few lives have any."""
    replays = happened.filter(pc.equal(happened["kind"], Kind.REPLAYED))
    replays = with_columns(replays, {"generation": _generation(replays)})
    before = carried["replay_of"].combine_chunks()
    carried = carried.select([*_LIFE]).take(pc.list_parent_indices(before))
    letters = with_columns(carried, {"letter": pc.list_flatten(before)})
    both = pa.concat_tables([replays.select(letters.column_names), letters])
    return summed(both, _LIFE, {"replay_of": ("letter", "distinct")})


def _ended(lives: pa.Table) -> pa.Table:
    """Return the lives with their ends; lost if their process ended without one."""
    end, over = lives["end"], lives["over_us"]
    was_open = pc.and_(pc.is_null(end), pc.less(over, NEVER))
    is_lost = pc.and_(was_open, _is_passing(lives))
    place = pc.bit_wise_and(end, 2**_PLACE - 1).combine_chunks()
    ended = with_columns(
        lives,
        {
            "handed_ts": lives["handed_us"],
            "wording": only_if(pc.not_equal(lives["wording"], ""), lives["wording"]),
            "ended_ts": pc.if_else(is_lost, over, pc.shift_right(end, _PLACE)),
            "state": pc.coalesce(_ENDS.take(place), pc.if_else(is_lost, LOST, OPEN)),
        },
    )
    return ended.select(LIFE.names).cast(LIFE)


def _is_passing(lives: pa.Table) -> pa.ChunkedArray:
    """Return whether the store lacks the copy; null if the publish of its message was trimmed."""
    return pc.or_(pc.equal(lives["kept"], 0).fill_null(False), is_unnamed(lives["receiver"]))
