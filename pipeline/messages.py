"""The known facts about messages, and the number of their open copies."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.journal.schema import Kind
from holdfast.pipeline import schemas
from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.copies import DAY_NS, MESSAGE, REPLIES, REPLY_CHANNELS
from holdfast.pipeline.copies import LOST as LOST_WITH_PROCESS
from holdfast.pipeline.rows import Sums, beside, of_each_word, only_if, summed, with_columns
from holdfast.pipeline.runs import NEVER

MESSAGES = arrow_of(schemas.MESSAGE)
LOST = arrow_of(schemas.LOST)
_ZERO = pa.scalar(0, pa.int64())
_SUMS = ("copies", "kept", "ended", "unnamed_ended", "lost")
_PARTS = MESSAGES.append(pa.field("over_us", pa.int64()))
_OF_ROWS = (*MESSAGE, "node")
_EMPTY = {each.name: each.type for each in MESSAGES if each.name not in _OF_ROWS}
# Nothing is known of the stored copies of some messages.
_COUNTED = tuple(name for name in _SUMS if name != "kept")


def parts(events: pa.Table, of_copies: pa.Table, carried: pa.Table) -> pa.Table:
    """Return the parts of what is known of messages: MESSAGES, and when their run was over.

    Args:
        events: The events, with their runs as in `carried`: see `holdfast.pipeline.runs`.
        of_copies: The parts of lives that `holdfast.pipeline.lives` has made of events and of
            open copies.
        carried: The messages with open copies, with their runs.
    """
    of_events = [_begun(events), _ended(of_copies), _moved(of_copies)]
    return pa.concat_tables([*of_events, _open(of_copies), carried])


def known(parts: pa.Table) -> pa.Table:
    """Return every message that has events or was unsettled, with its known facts: MESSAGES.

    Unknown facts are null, such as the stored copies of a message whose first events were trimmed.
    """
    sums: Sums = {name: (name, "sum") for name in _SUMS}
    words: Sums = {name: (name, "max") for name in ("channel", "node")}
    whole = summed(parts, MESSAGE, {**words, **sums})
    return whole.select(MESSAGES.names)


def _begun(events: pa.Table) -> pa.Table:
    """Return the parts of publishes; replays, which are apart, only tell the channel."""
    kinds = pa.array([Kind.PUBLISHED, Kind.REPLAYED])
    told = events.filter(pc.is_in(events["kind"], kinds))
    is_first = pc.equal(told["kind"], Kind.PUBLISHED)
    columns = {name: only_if(is_first, told[name]) for name in ("copies", "kept")}
    return _part(told, {"channel": together(told["channel"]), **columns})


def _ended(of_copies: pa.Table) -> pa.Table:
    is_first = pc.equal(of_copies["generation"], 0)
    is_over = pc.and_not(of_copies["is_end"], of_copies["is_move"])
    over = of_copies.filter(pc.and_(is_over, is_first))
    ones = {"ended": pa.repeat(1, len(over)), "unnamed_ended": is_unnamed(over["receiver"])}
    return _part(over, ones)


def _moved(of_copies: pa.Table) -> pa.Table:
    """Return the parts of replays that moved: the copies that they became count for no publish."""
    is_move, is_entry = of_copies["is_move"], of_copies["is_entry"]
    is_replay = pc.greater(of_copies["generation"], 0)
    moved = of_copies.filter(pc.and_(is_replay, pc.or_(is_move, is_entry)))
    less = pc.if_else(moved["is_move"], 1, -1)
    is_kept = pc.coalesce(pc.equal(moved["kept"], 1), pc.invert(is_unnamed(moved["receiver"])))
    return _part(moved, {"copies": less, "kept": pc.if_else(is_kept, less, 0)})


def _open(of_copies: pa.Table) -> pa.Table:
    """Return the parts of open copies: only replays may be left of a message, and may move."""
    rows = of_copies.filter(pc.is_valid(of_copies["channel"]))
    return _part(rows, {"channel": rows["channel"]})


def _part(rows: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    nothing = {name: pa.nulls(len(rows), type) for name, type in _EMPTY.items()}
    whole = with_columns(rows.select([*_OF_ROWS, "over_us"]), {**nothing, **columns})
    return whole.select(_PARTS.names).cast(_PARTS)


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
    some = pc.subtract(pc.subtract(then["copies"], then["kept"]), then["unnamed_ended"])
    on_their_way = pc.subtract(then["copies"], then["ended"])
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
    over = pc.add(messages["ended"], messages["lost"])
    return messages.filter(pc.greater(messages["copies"], over)).select(MESSAGES.names)


def unsettled_in_all(messages: pa.Table) -> pa.Table:
    """Return the rows of all shards about messages with open copies, which may change shards."""
    sums: Sums = {name: (name, "sum") for name in _COUNTED}
    whole = summed(messages, MESSAGE, sums)
    over = pc.add(whole["ended"], whole["lost"])
    is_open = pc.greater(whole["copies"], over)
    marked = with_columns(whole.select([*MESSAGE]), {"is_open": is_open})
    found = beside(messages, marked, MESSAGE)
    return found.filter(found["is_open"]).select(MESSAGES.names)


def lost(gone: pa.Table, lives: pa.Table) -> pa.Table:
    """Return the passing copies that were lost with their process: LOST.

    Replays are always among the lives, because their journal events have the receiver.
    """
    is_replay = pc.greater(lives["generation"], 0)
    replays = lives.filter(pc.and_(is_replay, pc.equal(lives["state"], LOST_WITH_PROCESS)))
    found_us = replays["ended_ts"].cast(pa.int64())
    counted = {"gone": pa.repeat(1, len(replays)), "found_us": found_us}
    of_replays = with_columns(replays, counted).select(gone.column_names)
    whole = pa.concat_tables([gone, of_replays])
    day = pc.divide(whole["msg"], DAY_NS).cast(pa.int32()).cast(pa.date32())
    by = ("origin", "channel", "day", "found_us")
    sums = summed(with_columns(whole, {"day": day}), by, {"n": ("gone", "sum")})
    return with_columns(sums, {"found_ts": sums["found_us"]}).select(LOST.names).cast(LOST)
