"""The lives of copies, from events and from the lives that were open before.

A copy has one life in each queue that it is in: it ends there with a move, or for good. So a life
never goes on after its end, and tables have the same lives however the events come in batches.
"""

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.journal.schema import STEPS, Kind
from holdfast.pipeline import schemas
from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.copies import COPY, ENDS, HAND_OVERS, LOST, MESSAGE
from holdfast.pipeline.lake import OPEN
from holdfast.pipeline.messages import is_unnamed
from holdfast.pipeline.rows import Sums, beside, only_if, summed, with_columns
from holdfast.pipeline.runs import NEVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIFE = arrow_of(schemas.LIFE)
# A copy that returns to a queue in the same batch has a further life of the same generation.
_STAY = "stay"
_LIFE = (*COPY, "generation", _STAY)
_KEPT = (*COPY, "generation")
_HANDED = pa.array(HAND_OVERS)
_ENDS = pa.array(ENDS)
# The number of bits for the kind of an end.
_PLACE = (len(ENDS) - 1).bit_length()
# The order of events in the same microsecond.
_RANK = pa.array([step.kind for step in STEPS if not step.is_end])
_NO_REPLAY, _UNKNOWN = pa.scalar(0, pa.int32()), pa.scalar(None, pa.int32())
_LAST = pa.scalar(len(_RANK), pa.int32())
_ORDER = ("us", "rank", "seq", "pos")
_COUNTS = ("former", "kept", "attempts", "redelivered", "refused")
# What is known of the message, and its name beside a life.
_FACTS = {"channel": "its_channel", "copies": "its_copies", "kept": "its_kept"}
_NUMBERS: Sums = {
    "handed_us": ("handed_us", "min"),
    "end": ("end", "max"),
    "former": ("former", "max"),
    "kept": ("kept", "max"),
    "channel": ("channel", "max"),
    "attempts": ("attempts", "max"),
    "redelivered": ("redelivered", "sum"),
    "refused": ("refused", "sum"),
    # Only if no later event is known.
    "over_us": ("over_us", "max"),
    "node": ("node", "max"),
}
# The last or largest value of the events in order.
_WORDS: Sums = {
    "code": ("code", "last"),
    "wording": ("wording", "last"),
    "letter": ("letter", "max"),
    "fingerprint": ("fingerprint", "max"),
}


def parts(events: pa.Table, carried: pa.Table) -> pa.Table:
    """Return the part of each event, and of each open copy, in a life: these come last.

    Args:
        events: The events, with their runs as in `carried`: see `holdfast.pipeline.runs`.
        carried: The open copies, with their runs.
    """
    happened = events.filter(pc.is_valid(events["receiver"]))
    both = [_parts(happened), _parts_of_open(carried)]
    found = pa.concat_tables(both, promote_options="permissive")
    return with_columns(found, _turns(found))


def lives(parts: pa.Table, carried: pa.Table, known: pa.Table) -> pa.Table:
    """Return the life of each copy that has events or was open: LIFE.

    Args:
        parts: What `parts` has made of events and of the open copies.
        carried: The open copies.
        known: The known facts about messages.
    """
    whole = beside(summed(parts, _LIFE, _NUMBERS), _words(parts), _LIFE)
    facts = known.select([*MESSAGE, *_FACTS]).rename_columns([*MESSAGE, *_FACTS.values()])
    whole = beside(whole, facts, MESSAGE)
    return _ended(beside(whole, _replay_of(parts, carried), _LIFE))


def _parts(events: pa.Table) -> pa.Table:
    """Return the part of each event in its life."""
    kind, us = events["kind"], events["ts"].cast(pa.int64())
    is_replay, is_entry = pc.equal(kind, Kind.REPLAYED), pc.equal(kind, Kind.ENTERED)
    generation = pc.if_else(
        is_entry, pc.coalesce(events["generation"], _NO_REPLAY), _replayed(events)
    )
    return with_columns(
        events.select([*COPY, "over_us", "node", "epoch", "seq", "pos", "code", "fingerprint"]),
        {
            "us": us,
            "rank": pc.coalesce(pc.index_in(kind, _RANK), _LAST),
            "generation": only_if(pc.or_(is_replay, is_entry), generation),
            "is_entry": is_entry,
            "is_move": pc.equal(kind, Kind.MOVED),
            "is_end": pc.is_in(kind, _ENDS),
            "handed_us": only_if(pc.is_in(kind, _HANDED), us),
            # Encodes the latest end and its kind in one number.
            "end": pc.add(pc.shift_left(us, _PLACE), pc.index_in(kind, _ENDS)),
            "former": only_if(is_entry, events["attempt"]),
            "kept": events["kept"],
            "attempts": events["attempt"],
            "redelivered": pc.equal(kind, Kind.REDELIVERED).cast(pa.int64()),
            "refused": pc.equal(kind, Kind.REFUSED).cast(pa.int64()),
            # The wording of an earlier failure does not belong to this code.
            "wording": only_if(pc.is_valid(events["code"]), pc.coalesce(events["wording"], "")),
            # A replay names the letter that it replays.
            "letter": only_if(pc.invert(is_replay), events["letter"]),
            "replay_of": only_if(is_replay, events["letter"]),
        },
    )


def _replayed(events: pa.Table) -> pa.ChunkedArray:
    """Return the generations of replays; one without a number is the first."""
    return pc.coalesce(events["generation"], pa.scalar(1, pa.int32()))


def _parts_of_open(carried: pa.Table) -> pa.Table:
    """Return what earlier batches know of open lives; it comes before all events."""
    first = pa.array(np.zeros(len(carried), np.int32))
    return with_columns(
        carried.select([*_KEPT, "over_us", "node", "channel", *_COUNTS, *_WORDS]),
        {
            "handed_us": carried["handed_ts"].cast(pa.int64()),
            **dict.fromkeys(_ORDER, first),
            # If there are several, new events are about the last one.
            "pos": carried["generation"],
        },
    )


def _turns(parts: pa.Table) -> dict[str, pa.Array]:
    """Return the generation and the stay of each event.

    It takes them from the latest entry, replay or open life before it.

    Few messages are replayed or moved, so only their events are sorted.
    """
    generations, stays = np.zeros(len(parts), np.int32), np.zeros(len(parts), np.int64)
    is_turn = pc.or_(pc.or_(_is_so(parts, "is_move"), _is_so(parts, "is_entry")), _begun(parts))
    turned = pc.unique(parts["msg"].filter(is_turn))
    if len(turned):
        rows = np.flatnonzero(pc.is_in(parts["msg"], turned))
        in_turn = _in_turn(with_columns(parts.take(rows), {"row": pa.array(rows)}))
        places = in_turn["row"].to_numpy()
        generations[places], stays[places] = _numbered(in_turn)
    return {"generation": pa.array(generations), _STAY: pa.array(stays)}


def _begun(parts: pa.Table) -> pa.ChunkedArray:
    return pc.greater(parts["generation"], 0).fill_null(False)


def _is_so(parts: pa.Table, name: str) -> pa.ChunkedArray:
    return parts[name].fill_null(False)


def _numbered(in_turn: pa.Table) -> "tuple[NDArray[np.int32], NDArray[np.int64]]":
    """Return the generation and the stay of each event, given in turn."""
    is_first, given = _is_first(in_turn), in_turn["generation"]
    is_moved, is_over = (_follows(in_turn, name, is_first) for name in ("is_move", "is_end"))
    is_new = np.logical_or(is_first, is_moved)
    generation = pc.coalesce(given, pc.if_else(pa.array(is_new), _NO_REPLAY, _UNKNOWN))
    # A replay while the copy is open is part of the same life.
    is_again = np.logical_and(is_over, pc.is_valid(in_turn["replay_of"]).to_numpy())
    is_entry = _is_so(in_turn, "is_entry").to_numpy()
    stays = np.cumsum(np.logical_or.reduce([is_moved, is_again, is_entry]))
    return pc.fill_null_forward(generation).to_numpy(), stays


def _follows(in_turn: pa.Table, name: str, is_first: "NDArray[np.bool_]") -> "NDArray[np.bool_]":
    """Return whether the event before, of the same copy, is one of these."""
    found: NDArray[np.bool_] = np.roll(_is_so(in_turn, name).to_numpy(), 1)
    return found & ~is_first


def _in_turn(parts: pa.Table) -> pa.Table:
    """Sort the events of each copy by the order in which they happened."""
    seed = pc.replace_substring_regex(parts["epoch"], "-[^-]*$", "")
    parts = with_columns(parts, {"journal": pc.binary_join_element_wise(parts["node"], seed, "/")})
    parts = beside(parts, summed(parts, COPY, {"journals": ("journal", "count_distinct")}), COPY)
    # A single journal is in the order of events, even if its clock was set back.
    frame = pc.if_else(pc.equal(parts["journals"], 1), parts["seq"], 0)
    order = [(name, "ascending") for name in (*COPY, "frame", *_ORDER)]
    return with_columns(parts, {"frame": frame}).sort_by(order)


def _is_first(in_turn: pa.Table) -> "NDArray[np.bool_]":
    """Return whether an event is the first of its copy."""
    is_first = np.ones(len(in_turn), bool)
    same = (pc.equal(in_turn[name][1:], in_turn[name][:-1]) for name in COPY)
    is_first[1:] = ~np.logical_and.reduce([each.fill_null(False).to_numpy() for each in same])
    return is_first


def _words(parts: pa.Table) -> pa.Table:
    """Return the latest code and details of failures; few lives have any."""
    has_words = reduce(pc.or_, (pc.is_valid(parts[name]) for name in _WORDS))
    in_turn = parts.filter(has_words).sort_by([(name, "ascending") for name in _ORDER])
    return summed(in_turn, _LIFE, _WORDS)


def _replay_of(parts: pa.Table, carried: pa.Table) -> pa.Table:
    """Return the letters that lives were replayed from; few lives have any."""
    replays = parts.filter(pc.is_valid(parts["replay_of"]))
    before = carried["replay_of"].combine_chunks()
    # The parts of open lives come last.
    rows = parts.slice(len(parts) - len(carried)).select([*_LIFE])
    letters = with_columns(
        rows.take(pc.list_parent_indices(before)), {"replay_of": pc.list_flatten(before)}
    )
    both = pa.concat_tables([replays.select(letters.column_names), letters])
    # In the same order, however they came in batches.
    return summed(both.sort_by("replay_of"), _LIFE, {"replay_of": ("replay_of", "distinct")})


def _ended(lives: pa.Table) -> pa.Table:
    """Return the lives with their ends; lost if their process ended without one."""
    end, over = lives["end"], lives["over_us"]
    was_open = pc.and_(pc.is_null(end), pc.less(over, NEVER))
    is_lost = pc.and_(was_open, _is_passing(lives))
    # Its queue has it again, although the process that lent it could not say so.
    has_returned = pc.and_(pc.and_not(was_open, is_lost), _is_lent(lives))
    stayed = pc.if_else(is_lost, LOST, pc.if_else(has_returned, Kind.MOVED, OPEN))
    place = pc.bit_wise_and(end, 2**_PLACE - 1).combine_chunks()
    ended = with_columns(
        lives,
        {
            "channel": pc.coalesce(lives["channel"], lives["its_channel"]),
            "handed_ts": lives["handed_us"],
            "wording": only_if(pc.not_equal(lives["wording"], ""), lives["wording"]),
            "ended_ts": pc.if_else(
                pc.or_(is_lost, has_returned), over, pc.shift_right(end, _PLACE)
            ),
            "state": pc.coalesce(_ENDS.take(place), stayed),
        },
    )
    return ended.select(LIFE.names).cast(LIFE)


def _is_lent(lives: pa.Table) -> pa.ChunkedArray:
    """Return whether a session of another shard had the copy, which is stored in its queue."""
    is_first = pc.equal(lives["generation"], 0)
    return pc.and_(is_first, pc.equal(lives["kept"], 0)).fill_null(False)


def _is_passing(lives: pa.Table) -> pa.ChunkedArray:
    """Return whether the store lacks the copy; the journal did not always say it of a replay."""
    has_passing = pc.less(lives["its_kept"], lives["its_copies"]).fill_null(True)
    unnamed = is_unnamed(lives["receiver"])
    none_stored = pc.equal(lives["its_kept"], 0).fill_null(False)
    first = pc.or_(none_stored, pc.and_(unnamed, has_passing))
    of_replay = pc.coalesce(pc.equal(lives["kept"], 0), unnamed)
    return pc.if_else(pc.greater(lives["generation"], 0), of_replay, first)
