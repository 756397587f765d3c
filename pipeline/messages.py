"""The known facts about messages, and the number of their open copies."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.journal.schema import Kind
from holdfast.pipeline import schemas
from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.copies import ENDS, MESSAGE, REPLIES, REPLY_CHANNELS
from holdfast.pipeline.rows import Sums, beside, of_each_word, only_if, summed, with_columns
from holdfast.pipeline.runs import NEVER, Runs, when

MESSAGES = arrow_of(schemas.MESSAGE)
LOST = arrow_of(schemas.LOST)
_ZERO = pa.scalar(0, pa.int64())
_SUMS = tuple(MESSAGES.names[len(MESSAGE) + 1 :])
_THEN = "_then"


def known(events: pa.Table, carried: pa.Table) -> pa.Table:
    """Return every message that has events or was unsettled, with its known facts.

    Unknown facts are null, such as the stored copies of a message whose first events were trimmed.

    Args:
        events: The events, with their runs as in `carried`: see `holdfast.pipeline.runs`.
        carried: The messages with open copies, with their runs.
    """
    both = pa.concat_tables([_parts(events), carried])
    sums: Sums = {name: (name, "sum") for name in _SUMS}
    whole = summed(both, MESSAGE, {"channel": ("channel", "max"), **sums})
    # The state at the end of a process is the sum of earlier events.
    earlier = both.filter(pc.less(both["over_us"], NEVER))
    then = summed(earlier, MESSAGE, {name + _THEN: how for name, how in sums.items()})
    return beside(whole, then, MESSAGE)


def _parts(events: pa.Table) -> pa.Table:
    """Return the part of each event in what is known of its message."""
    kind, unnamed = events["kind"], is_unnamed(events["receiver"])
    is_begin, is_replay = pc.equal(kind, Kind.PUBLISHED), pc.equal(kind, Kind.REPLAYED)
    is_end = pc.is_in(kind, pa.array(ENDS))
    parts = with_columns(
        events.select([*MESSAGE, "copies", "kept", "over_us"]),
        {
            # Acks have no channel.
            "channel": only_if(pc.or_(is_begin, is_replay), together(events["channel"])),
            "published": is_begin,
            "replayed": is_replay,
            "ended": is_end,
            "unnamed_replayed": pc.and_(is_replay, unnamed),
            "unnamed_ended": pc.and_(is_end, unnamed),
            "lost": pa.nulls(len(events), pa.int64()),
        },
    )
    schema = MESSAGES.append(pa.field("over_us", pa.int64()))
    return parts.select(schema.names).cast(schema)


def together(channels: pa.ChunkedArray) -> pa.Array:
    """Return the channels that tables have: there is a reply channel for each request."""

    def ask(names: pa.Array) -> pa.Array:
        return pc.if_else(pc.starts_with(names, REPLIES), REPLY_CHANNELS, names)

    return of_each_word(channels, ask)


def is_unnamed(receivers: pa.ChunkedArray) -> pa.Array:
    """Return whether the server named the receiver: its number is below zero."""
    found = of_each_word(receivers, lambda names: pc.match_substring_regex(names, "/-[^/]*$"))
    return found.fill_null(False)


def messages(known: pa.Table) -> pa.Table:
    """Return MESSAGE, and `gone`: the copies that ended with their process.

    They count as lost.
    """
    # An unknown number of stored copies stays unknown.
    numbers = {*_SUMS, *(name + _THEN for name in _SUMS)} - {"kept", "kept" + _THEN}
    filled = with_columns(known, {name: pc.coalesce(known[name], _ZERO) for name in numbers})
    gone = _gone(filled["kept"], {name: filled[name + _THEN] for name in _SUMS})
    whole = with_columns(filled, {"lost": pc.add(filled["lost"], gone)})
    return with_columns(whole.select(MESSAGES.names), {"gone": gone})


def _gone(kept: pa.ChunkedArray, then: Mapping[str, pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return the copies that were open at that time and that the store did not have."""
    unnamed = pc.subtract(then["unnamed_replayed"], then["unnamed_ended"])
    some = pc.add(pc.subtract(then["copies"], pc.coalesce(then["kept"], _ZERO)), unnamed)
    on_their_way = pc.subtract(pc.add(then["copies"], then["replayed"]), then["ended"])
    left = pc.if_else(pc.equal(kept, 0).fill_null(False), on_their_way, some)
    return pc.max_element_wise(pc.subtract(left, then["lost"]), 0)


def still_unsettled(messages: pa.Table) -> pa.Table:
    """Return the messages with open copies."""
    begun = pc.add(messages["copies"], messages["replayed"])
    over = pc.add(messages["ended"], messages["lost"])
    return messages.filter(pc.greater(begun, over)).select(MESSAGES.names)


def lost(messages: pa.Table, runs: Runs) -> pa.Table:
    """Return the passing copies that were lost with their process, by channel: LOST."""
    gone = messages.filter(pc.greater(messages["gone"], 0))
    sums = summed(gone, ("origin", "channel"), {"n": ("gone", "sum")})
    # A replay may have been held by another node's process.
    latest = max(runs.last_us.values(), default=NEVER)
    found = pc.min_element_wise(when(runs.last_us, sums["origin"]), latest)
    return with_columns(sums, {"found_ts": found}).cast(LOST)
