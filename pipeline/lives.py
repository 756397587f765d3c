"""What became of copies, from events and from what was open before."""

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.journal.schema import Kind
from pipeline import schemas
from pipeline.arrow import arrow_of
from pipeline.copies import COPY, ENDS, LOST, MESSAGE
from pipeline.lake import OPEN
from pipeline.messages import is_unnamed
from pipeline.rows import Sums, beside, only_if, summed, with_columns
from pipeline.runs import NEVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIFE = arrow_of(schemas.LIFE)
_LIFE = (*COPY, "generation")
_HANDED = pa.array([Kind.HANDED, Kind.REDELIVERED, Kind.WRITTEN])
_ENDS = pa.array(ENDS)
# So many bits tell which of these it was.
_PLACE = 3
# What happens in the same microsecond happened in this order.
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
    # Only if nothing was told of it since.
    "over_us": ("over_us", "max"),
}
# Of events that are in order.
_WORDS: Sums = {
    "code": ("code", "last"),
    "letter": ("letter", "max"),
    "fingerprint": ("fingerprint", "max"),
}


def lives(events: pa.Table, carried: pa.Table, known: pa.Table) -> pa.Table:
    """The life of every copy that something happened to, or that was open: LIFE and its state.

    Args:
        events: With their runs, as `carried` is: see `pipeline.runs`.
        known: What is known of messages.
    """
    happened = events.filter(pc.is_valid(events["receiver"]))
    both = [_told(happened), _told_of_open(carried)]
    told = pa.concat_tables(both, promote_options="permissive")
    told = with_columns(told, {"generation": pa.array(_generations(told))})
    whole = beside(summed(told, _LIFE, _NUMBERS), _words(told), _LIFE)
    whole = beside(whole, known.select([*MESSAGE, "channel", "kept"]), MESSAGE)
    return _ended(beside(whole, _replay_of(happened, carried), _LIFE))


def _told(events: pa.Table) -> pa.Table:
    """What each event adds to the life that it is part of."""
    kind, us = events["kind"], events["ts"].cast(pa.int64())
    is_replay = pc.equal(kind, Kind.REPLAYED)
    return with_columns(
        events.select([*COPY, "over_us", "node", "epoch", "seq", "pos", "code", "fingerprint"]),
        {
            "us": us,
            "rank": pc.coalesce(pc.index_in(kind, _RANK), _LAST),
            "generation": only_if(is_replay, _generation(events)),
            "handed_us": only_if(pc.is_in(kind, _HANDED), us),
            # The latest end, and which it was, in one number.
            "end": pc.add(pc.shift_left(us, _PLACE), pc.index_in(kind, _ENDS)),
            "attempts": events["attempt"],
            "redelivered": pc.equal(kind, Kind.REDELIVERED).cast(pa.int64()),
            "refused": pc.equal(kind, Kind.REFUSED).cast(pa.int64()),
            # A replay tells which one it is made of.
            "letter": only_if(pc.invert(is_replay), events["letter"]),
        },
    )


def _generation(events: pa.Table) -> pa.ChunkedArray:
    """Who tells of a replay and not of which one means the first."""
    return pc.coalesce(events["generation"], pa.scalar(1, pa.int32()))


def _told_of_open(carried: pa.Table) -> pa.Table:
    """What is known of a life from earlier batches; it comes before everything else."""
    first = pa.array(np.zeros(len(carried), np.int32))
    return with_columns(
        carried.select([*_LIFE, "over_us", *_COUNTS, *_WORDS]),
        {
            "handed_us": carried["handed_ts"].cast(pa.int64()),
            **dict.fromkeys(_ORDER, first),
            # If there are several, what comes is about the last one.
            "pos": carried["generation"],
        },
    )


def _generations(told: pa.Table) -> "NDArray[np.int32]":
    """Of each that of the replay before it, else the open one, else the first.

    Few messages are replayed, so only what is told of these is put in order.
    """
    found = np.zeros(len(told), np.int32)
    replayed = pc.unique(told["msg"].filter(pc.greater(told["generation"], 0)))
    if not len(replayed):
        return found
    rows = np.flatnonzero(pc.is_in(told["msg"], replayed))
    in_turn = _in_turn(with_columns(told.take(rows), {"row": pa.array(rows)}))
    generation = in_turn["generation"]
    first = pc.coalesce(generation, pa.scalar(0, generation.type))
    latest = pc.fill_null_forward(pc.if_else(_is_first(in_turn), first, generation))
    found[in_turn["row"].to_numpy()] = latest.to_numpy()
    return found


def _in_turn(told: pa.Table) -> pa.Table:
    """What is told of each copy, in the order in which it happened."""
    seed = pc.replace_substring_regex(told["epoch"], "-[^-]*$", "")
    told = with_columns(told, {"journal": pc.binary_join_element_wise(told["node"], seed, "/")})
    told = beside(told, summed(told, COPY, {"journals": ("journal", "count_distinct")}), COPY)
    # One journal tells in the order in which things happened, even if its clock was put back.
    frame = pc.if_else(pc.equal(told["journals"], 1), told["seq"], 0)
    order = [(name, "ascending") for name in (*COPY, "frame", *_ORDER)]
    return with_columns(told, {"frame": frame}).sort_by(order)


def _is_first(in_turn: pa.Table) -> pa.Array:
    """Whether it is the first that is told of its copy."""
    is_first = np.ones(len(in_turn), bool)
    same = (pc.equal(in_turn[name][1:], in_turn[name][:-1]) for name in COPY)
    is_first[1:] = ~np.logical_and.reduce([each.fill_null(False).to_numpy() for each in same])
    return pa.array(is_first)


def _words(told: pa.Table) -> pa.Table:
    """The latest code, and what else is told of failures: of few lives."""
    is_told = reduce(pc.or_, (pc.is_valid(told[name]) for name in _WORDS))
    in_turn = told.filter(is_told).sort_by([(name, "ascending") for name in _ORDER])
    return summed(in_turn, _LIFE, _WORDS)


def _replay_of(happened: pa.Table, carried: pa.Table) -> pa.Table:
    """The letters that lives were replayed from: of few lives, too."""
    replays = happened.filter(pc.equal(happened["kind"], Kind.REPLAYED))
    replays = with_columns(replays, {"generation": _generation(replays)})
    before = carried["replay_of"].combine_chunks()
    carried = carried.select([*_LIFE]).take(pc.list_parent_indices(before))
    letters = with_columns(carried, {"letter": pc.list_flatten(before)})
    both = pa.concat_tables([replays.select(letters.column_names), letters])
    return summed(both, _LIFE, {"replay_of": ("letter", "distinct")})


def _ended(lives: pa.Table) -> pa.Table:
    """Each with its end; or lost, if it had none when its process ended."""
    end, over = lives["end"], lives["over_us"]
    was_open = pc.and_(pc.is_null(end), pc.less(over, NEVER))
    is_lost = pc.and_(was_open, _is_passing(lives))
    place = pc.bit_wise_and(end, 2**_PLACE - 1).combine_chunks()
    told = with_columns(
        lives,
        {
            "handed_ts": lives["handed_us"],
            "ended_ts": pc.if_else(is_lost, over, pc.shift_right(end, _PLACE)),
            "state": pc.coalesce(_ENDS.take(place), pc.if_else(is_lost, LOST, OPEN)),
        },
    )
    schema = LIFE.append(pa.field("state", pa.string()))
    return told.select(schema.names).cast(schema)


def _is_passing(lives: pa.Table) -> pa.ChunkedArray:
    """Whether the store does not have it; of a message that was cut off nobody knows."""
    return pc.or_(pc.equal(lives["kept"], 0).fill_null(False), is_unnamed(lives["receiver"]))
