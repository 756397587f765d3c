"""Makes lives and messages from events: each task handles a span of messages and writes its files.

The engine only receives receipts, as for events: see `holdfast.pipeline.source.event_files`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.pipeline.arrow import ARROW, arrow_of
from holdfast.pipeline.digests import move_with_digest
from holdfast.pipeline.lake import OPEN, NewFile, check
from holdfast.pipeline.latencies import latencies
from holdfast.pipeline.lives import LIFE, lives
from holdfast.pipeline.lives import parts as parts_of_lives
from holdfast.pipeline.messages import (
    MESSAGES,
    gone,
    known,
    lost,
    messages,
    still_unsettled,
    unsettled_in_all,
)
from holdfast.pipeline.messages import parts as parts_of_messages
from holdfast.pipeline.runs import Runs, carried_with_runs, with_runs
from holdfast.pipeline.source.event_files import PACKED, packing
from holdfast.pipeline.source.streams import shard_of
from holdfast.pipeline.spans import Span, parts, read, spans
from holdfast.pipeline.storage.place import draft_in
from holdfast.pipeline.tasks import Tasks

_RECEIPT = "table string, file string"
# The columns of events that lives and messages do not need are omitted.
_EVENTS = pa.schema(
    [each for each in ARROW if each.name not in ("size", "priority", "sender", "what", "number")]
)


class Settled(NamedTuple):
    """Lives with their states, messages with open copies, and lost copies."""

    life: pa.Table
    messages: pa.Table
    lost: pa.Table


def make_tables(
    tasks: Tasks, tables: Mapping[str, Sequence[Path]], runs: Runs, into: Path
) -> list[NewFile]:
    """Make the tables from these files of events and from what was carried.

    Args:
        tables: Files of `events`, and of `messages` and open lives.
        into: The folder of the tables.
    """
    for files in tables.values():
        check(files)
    found = spans(tables, tasks.cores)
    receipts = tasks.run(partial(_receipts, runs, into), found, _RECEIPT)
    return [NewFile(*row) for row in receipts]


def _receipts(runs: Runs, into: Path, span: Span) -> Iterator[pa.Table]:
    made = [each._asdict() for part in parts(span) for each in make_tables_of(part, runs, into)]
    yield pa.Table.from_pylist(made, arrow_of(_RECEIPT))


def make_tables_of(span: Span, runs: Runs, into: Path) -> Iterator[NewFile]:
    """Make the tables for the messages of a span; yield one file for each that has rows."""
    carried = (read(span, OPEN, LIFE), read(span, "messages", MESSAGES))
    settled = settle(read(span, "events", _EVENTS), *carried, runs)
    is_open = pc.equal(settled.life["state"], OPEN)
    tables = {
        "life": settled.life.filter(pc.invert(is_open)),
        OPEN: settled.life.filter(is_open),
        "messages": settled.messages,
        "lost": settled.lost,
        "latency": latencies(settled.life),
    }
    for table, rows in tables.items():
        if len(rows):
            yield NewFile(table, _written(rows, into / table))


def settle(events: pa.Table, copies: pa.Table, unsettled: pa.Table, runs: Runs) -> Settled:
    """Apply these events to open copies and unsettled messages."""
    events, copies = with_runs(events, runs), carried_with_runs(copies, runs)
    of_copies = parts_of_lives(events, copies)
    of_messages = parts_of_messages(events, of_copies, carried_with_runs(unsettled, runs))
    facts = known(of_messages)
    left, missing = _of_shards(of_messages, facts)
    life = lives(of_copies, copies, facts)
    return Settled(life, left, lost(missing, life))


def _of_shards(parts: pa.Table, facts: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the messages with open copies, a row for each shard, and the copies that are gone.

    Shards lose their copies with different processes.
    """
    nodes: list[str | None] = pc.unique(parts["node"]).to_pylist()
    shards: dict[int, list[str | None]] = {}
    for node in nodes:
        shards.setdefault(shard_of(node or ""), []).append(node)
    if len(shards) <= 1:
        missing = gone(parts, facts)
        return still_unsettled(messages(facts, missing)), missing
    found, lacking = [], []
    for own in shards.values():
        its_parts = parts.filter(pc.is_in(parts["node"], pa.array(own, pa.string())))
        its_facts = known(its_parts)
        lacking.append(gone(its_parts, its_facts))
        found.append(messages(its_facts, lacking[-1]))
    return unsettled_in_all(pa.concat_tables(found)), pa.concat_tables(lacking)


def _written(rows: pa.Table, into: Path) -> str:
    draft = draft_in(into, f"{uuid4().hex}.parquet")
    pq.write_table(rows, draft, row_group_size=PACKED, **packing(rows.schema))
    return move_with_digest(draft, into)
