"""The known facts about messages, and the number of their open copies."""

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.journal.schema import Kind
from holdfast.pipeline import schemas
from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.copies import LAST_ENDS, MESSAGE, REPLIES, REPLY_CHANNELS
from holdfast.pipeline.rows import Sums, beside, of_each_word, only_if, summed, with_columns
from holdfast.pipeline.runs import NEVER

MESSAGES = arrow_of(schemas.MESSAGE)
LOST = arrow_of(schemas.LOST)
_ZERO = pa.scalar(0, pa.int64())
_SUMS = tuple(MESSAGES.names[len(MESSAGE) + 1 :])
# Nothing is known of the stored copies of some messages.
_COUNTED = tuple(name for name in _SUMS if name != "kept")


def parts(events: pa.Table, carried: pa.Table) -> pa.Table:
    """Return the parts of what is known of messages: MESSAGES, and when their run was over.

    Args:
        events: The events, with their runs as in `carried`: see `holdfast.pipeline.runs`.
        carried: The messages with open copies, with their runs.
    """
    return pa.concat_tables([_parts(events), carried])


def known(parts: pa.Table) -> pa.Table:
    """Return every message that has events or was unsettled, with its known facts: MESSAGES.

    Unknown facts are null, such as the stored copies of a message whose first events were trimmed.
    """
    sums: Sums = {name: (name, "sum") for name in _SUMS}
    whole = summed(parts, MESSAGE, {"channel": ("channel", "max"), **sums})
    return whole.select(MESSAGES.names)


def _parts(events: pa.Table) -> pa.Table:
    """Return the part of each event in what is known of its message."""
    kind, unnamed = events["kind"], is_unnamed(events["receiver"])
    is_begin, is_replay = pc.equal(kind, Kind.PUBLISHED), pc.equal(kind, Kind.REPLAYED)
    is_end = pc.is_in(kind, pa.array(LAST_ENDS))
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


def gone(parts: pa.Table, known: pa.Table) -> pa.Table:
    """Return the copies that ended with their process, by message and the next start.

    Each start is examined, because a batch may have several.
    """
    over = parts["over_us"]
    starts = sorted(us for us in pc.unique(over).to_pylist() if us < NEVER)
    found = known.select([*MESSAGE, "channel"]).slice(0, 0)
    nothing = {"gone": pa.array([], pa.int64()), "found_us": pa.array([], pa.int64())}
    found = with_columns(found, nothing)
    for us in starts:
        # Nothing is new about the other messages.
        changed = pc.unique(parts["msg"].filter(pc.equal(over, us)))
        is_earlier = pc.and_(pc.less_equal(over, us), pc.is_in(parts["msg"], changed))
        found = pa.concat_tables([found, _gone_at(us, parts.filter(is_earlier), known, found)])
    return found


def _gone_at(us: int, earlier: pa.Table, known: pa.Table, found: pa.Table) -> pa.Table:
    """Return the copies that were gone at a start and not before."""
    # The state at the end of a process is the sum of earlier events.
    then = summed(earlier, MESSAGE, {name: (name, "sum") for name in _SUMS})
    is_passing = pc.equal(known["kept"], 0).fill_null(False)
    facts = with_columns(known.select([*MESSAGE, "channel"]), {"is_passing": is_passing})
    then = beside(then, facts, MESSAGE)
    then = beside(then, summed(found, MESSAGE, {"gone_before": ("gone", "sum")}), MESSAGE)
    then = with_columns(then, {name: pc.coalesce(then[name], _ZERO) for name in _SUMS})
    left = pc.subtract(_gone(then), pc.coalesce(then["gone_before"], _ZERO))
    then = with_columns(then, {"gone": left, "found_us": pa.repeat(us, len(then))})
    return then.filter(pc.greater(left, 0)).select(found.column_names)


def _gone(then: pa.Table) -> pa.ChunkedArray:
    """Return the copies that were open at that time and that the store did not have."""
    unnamed = pc.subtract(then["unnamed_replayed"], then["unnamed_ended"])
    some = pc.add(pc.subtract(then["copies"], then["kept"]), unnamed)
    on_their_way = pc.subtract(pc.add(then["copies"], then["replayed"]), then["ended"])
    left = pc.if_else(then["is_passing"], on_their_way, some)
    return pc.subtract(left, then["lost"])


def messages(known: pa.Table, gone: pa.Table) -> pa.Table:
    """Return MESSAGES, in which copies that are gone count as lost."""
    numbers = summed(gone, MESSAGE, {"gone": ("gone", "sum")})
    whole = beside(known, numbers, MESSAGE)
    # An unknown number of stored copies stays unknown.
    whole = with_columns(whole, {name: pc.coalesce(whole[name], _ZERO) for name in _COUNTED})
    lost = pc.add(whole["lost"], pc.coalesce(whole["gone"], _ZERO))
    return with_columns(whole, {"lost": lost}).select(MESSAGES.names)


def still_unsettled(messages: pa.Table) -> pa.Table:
    """Return the messages with open copies."""
    begun = pc.add(messages["copies"], messages["replayed"])
    over = pc.add(messages["ended"], messages["lost"])
    return messages.filter(pc.greater(begun, over)).select(MESSAGES.names)


def lost(gone: pa.Table) -> pa.Table:
    """Return the passing copies that were lost with their process, by channel: LOST."""
    sums = summed(gone, ("origin", "channel", "found_us"), {"n": ("gone", "sum")})
    return with_columns(sums, {"found_ts": sums["found_us"]}).select(LOST.names).cast(LOST)
