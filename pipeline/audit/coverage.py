"""Finds what the journal cannot know: the ends of killed runs, and runs without books.

A run begins with the start of a process and ends with its stop. If a process is killed, the events
that were not in a frame yet are lost.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

from holdfast.journal.schema import FULL, LONGEST_WAIT_S, Kind
from holdfast.pipeline.epochs import parts

# The kinds of unknowns: a run was killed; has no books; has not ended; has not ended and is silent;
# or lacks its start.
UNCLEAN, UNBOOKED, OPEN = "run.unclean", "run.unbooked", "run.open"
SILENT, CUT = "run.silent", "run.cut"
# In these times, violations could be hidden.
UNCERTAIN = (UNCLEAN, UNBOOKED, SILENT)
# Of these, those that are over: what goes on is reported each time.
OVER = (UNCLEAN, UNBOOKED)
# An earlier audit has reported it.
REPORTED = "run.reported"
# A server with nothing to do is heard of every minute.
_LONG_US = 120_000_000
_US_PER_MS = 1000
# For so long a message that is not stored may wait for stored ones. Behind a kill, ids are ahead of
# clocks by less.
_APART_US = 5_000_000
_IS_NODE = f"kind = '{Kind.NODE}'"
_LOSS = (
    f"events of its last {LONGEST_WAIT_S:.0f} s that were not stored can be missing; "
    f"under load, those of its last 0.1 s and {FULL} more"
)

# The stretches of all nodes, without incidents: these are the pipeline's. The last event is not the
# latest, because clocks are set back.
STRETCHES = f"""
    with frames as (
        select node, epoch, seq, min(since) as since, max(until) as until,
            min(case when {_IS_NODE} and what = 'start' then since end) as start,
            max(case when kind = '{Kind.BOOKS}' and what <> 'restored' then until end) as booked,
            max(case when {_IS_NODE} and what = 'stop' then 1 else 0 end) as stops
        from {{ledger}} where pos >= 0 group by node, epoch, seq
    ),
    placed as (
        select *, max(case when booked is not null then seq end)
            over (partition by node, epoch) as booked_seq
        from frames
    )
    select node, epoch, unix_micros(min(since)) as first_us,
        unix_micros(max_by(until, seq)) as last_us, unix_micros(min(start)) as start_us,
        unix_micros(max(booked)) as booked_us,
        unix_micros(min(case when seq > booked_seq then since end)) as unbooked_us,
        max(stops) > 0 as is_stopped
    from placed group by node, epoch
"""


class Stretch(NamedTuple):
    """The events of a node under one epoch: microseconds since 1970."""

    node: str
    epoch: str
    first_us: int
    last_us: int
    # The start of the process, its last books, and the first event after these.
    start_us: int | None = None
    booked_us: int | None = None
    unbooked_us: int | None = None
    is_stopped: bool = False


class Unknown(NamedTuple):
    """A time of which not everything is known; `until_us` is None if it goes on."""

    kind: str
    node: str
    since_us: int
    until_us: int | None
    what: str

    @property
    def as_reported(self) -> "Unknown":
        """The same, if an earlier audit has reported it."""
        return self._replace(kind=REPORTED, what=f"{self.kind}, as an earlier audit has reported")


def gaps_in(unknowns: Iterable[Unknown]) -> list[tuple[int, int]]:
    """Return between which times messages came of which a killed run may not have told."""
    return [
        (each.since_us - _APART_US, each.until_us + _APART_US)
        for each in unknowns
        if each.kind == UNCLEAN and each.until_us is not None
    ]


def unknowns_of(
    stretches: Iterable[Stretch], heard: Mapping[str, int], now_us: int
) -> Iterator[Unknown]:
    """Yield the unknowns of all nodes, in the order of their runs.

    Args:
        heard: By node, when its server was last heard of, in ms since 1970.
    """
    for node, of_node in groupby(sorted(stretches), attrgetter("node")):
        found = _runs(list(of_node))
        heard_us = heard.get(node, 0) * _US_PER_MS
        for run, following in pairwise([*found, None]):
            if run is not None:
                yield from _of_run(run, following, heard_us, now_us)


def _runs(of_node: list[Stretch]) -> list[Stretch]:
    """Return the runs in their order; an epoch without a start belongs to the run before."""
    began: dict[str, int] = {}
    for each in of_node:
        seed, _ = parts(each.epoch)
        began[seed] = min(each.first_us, began.get(seed, each.first_us))

    def order(each: Stretch) -> tuple[int, int]:
        seed, number = parts(each.epoch)
        return began[seed], number

    runs: list[Stretch] = []
    for each in sorted(of_node, key=order):
        if each.start_us is not None or not runs:
            runs.append(each)
        else:
            runs[-1] = _joined(runs[-1], each)
    return runs


def _joined(run: Stretch, later: Stretch) -> Stretch:
    """Return the run with a later stretch."""
    booked_us, unbooked_us = later.booked_us, later.unbooked_us
    if booked_us is None:
        booked_us, unbooked_us = run.booked_us, run.unbooked_us or later.first_us
    return run._replace(
        last_us=max(run.last_us, later.last_us),
        booked_us=booked_us,
        unbooked_us=unbooked_us,
        is_stopped=later.is_stopped,
    )


def _of_run(
    run: Stretch, following: Stretch | None, heard_us: int, now_us: int
) -> Iterator[Unknown]:
    if not run.is_stopped:
        if following is None:
            yield _of_last(run, max(run.last_us, heard_us), now_us)
        else:
            yield Unknown(
                UNCLEAN, run.node, run.last_us, following.start_us, f"it was killed: {_LOSS}"
            )
    if run.start_us is None:
        text = (
            "its start is not in the tables; nothing before its first books there can be compared"
        )
        yield Unknown(CUT, run.node, run.first_us, run.last_us, text)
    # An idle server writes no books, so the time before its next event is known.
    since = run.start_us or run.first_us if run.booked_us is None else run.unbooked_us
    if since is not None and run.last_us - since > _LONG_US:
        text = "it wrote no books to compare these events with"
        yield Unknown(UNBOOKED, run.node, since, run.last_us, text)


def _of_last(run: Stretch, heard_us: int, now_us: int) -> Unknown:
    """Return the unknown of a run that may go on; while it does, it is heard of every minute."""
    silent_us = now_us - heard_us
    if silent_us <= _LONG_US:
        text = "it has not stopped: it is running, or was killed; nothing later is known"
        return Unknown(OPEN, run.node, heard_us, None, text)
    text = (
        f"it may have ended: the last ingest had heard nothing of it for {silent_us // 10**6} s. "
        "It was killed, or needs another ingest"
    )
    return Unknown(SILENT, run.node, heard_us, now_us, text)
