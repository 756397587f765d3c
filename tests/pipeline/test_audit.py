"""The audit finds nothing in a sound journal, and every fault that a test puts into one."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from holdfast.journal.schema import Event
from holdfast.pipeline import on_spark
from holdfast.pipeline.arrow import ARROW
from holdfast.pipeline.lake import Lake
from tests.pipeline.audited import Findings, findings, findings_of
from tests.pipeline.stored import store
from tests.unit.pipeline.events import NODE, SECOND, START_US, event, published
from tests.unit.pipeline.stories import acked, books, delivery, died, handed, start, the_story

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Rows = list[tuple[Any, ...]]
Found = list[tuple[str, str | None, int]]


def rows_of(events: Iterable[Event], node: str) -> Rows:
    """Events as they are read from the journal, one in each frame; but books share one."""
    rows: Rows = []
    seq = pos = 0
    before = ""
    for each in events:
        is_next = each.kind != "books" or before != "books"
        seq, pos = (seq + 1, 0) if is_next else (seq, pos + 1)
        number = node[1:]
        origin = node if each.origin == NODE else each.origin and each.origin + number
        own = each._replace(node=node, origin=origin)
        rows.append((*own, "seed-1", seq, pos))
        before = each.kind
    return rows


# The story's own sums.
SUMS = {"accepted": 21, "acked": 18, "dead": 2, "expired": 0, "discarded": 0, "open": 4}
# Before it there were copies of which the journal knows nothing.
RESTORED = 3


Change = Callable[[list[Event]], list[Event]]


def without(kind: str) -> Change:
    def take_out(told: list[Event]) -> list[Event]:
        place = next(n for n, each in enumerate(told) if each.kind == kind)
        return told[:place] + told[place + 1 :]

    return take_out


FAULTS: dict[
    str, tuple[Callable[[list[Event]], list[Event]], list[tuple[str, str | None, int]]]
] = {
    "an ack that was written twice": (
        lambda told: [*told, acked(25, 1, "ann/1")],
        [
            ("books_acked", None, 1),
            ("books_open", None, -1),
            ("never_handed", "ann/1", 1),
            ("settled_twice", "ann/1", 1),
            ("too_many_ends", None, 1),
        ],
    ),
    "an ack of a receiver without a copy": (
        lambda told: [*told, acked(25, 1, "eve/1")],
        [
            ("books_acked", None, 1),
            ("books_open", None, -1),
            ("never_handed", "eve/1", 1),
            ("too_many_ends", None, 1),
            ("too_many_receivers", None, 1),
        ],
    ),
    "a death after an ack": (
        lambda told: [*told, *died(25, 1, "bob/1")],
        [
            ("books_dead", None, 1),
            ("books_open", None, -1),
            ("settled_twice", "bob/1", 1),
            ("too_many_ends", None, 1),
        ],
    ),
    "a hand-over after the end": (
        lambda told: [*told, handed(25, 1, "ann/1", 2)],
        [("handed_after_end", "ann/1", 1)],
    ),
    "a hand-over to a receiver without a copy": (
        lambda told: [*told, handed(25, 9, "eve/1")],
        [("too_many_receivers", None, 1)],
    ),
    "an ack of what was not handed over": (
        without("handed"),
        [("never_handed", "ann/1", 1)],
    ),
    "a second first hand-over": (
        lambda told: [*told, handed(25, 9, "bob/1")],
        [("handed_twice", "bob/1", 1)],
    ),
    "a replay of a letter from elsewhere, of which the books know nothing": (
        lambda told: [
            *told,
            delivery("replayed", 24, 22, "bob/1", generation=1),
            handed(25, 22, "bob/1"),
            acked(25.1, 22, "bob/1"),
        ],
        [("books_accepted", None, 1), ("books_acked", None, 1)],
    ),
    "a message that nobody published": (
        lambda told: [*told, handed(25, 22, "bob/1")],
        [("not_published", None, 1)],
    ),
    "a publish that is missing": (
        without("published"),
        [("books_accepted", None, -2), ("books_open", None, -2), ("not_published", None, 5)],
    ),
    "an ack that is missing": (
        without("acked"),
        [("books_acked", None, -1), ("books_open", None, 1)],
    ),
    "frames that are missing": (
        lambda told: [*told, event("frame.gap", 25, what="frames 1 to 2 are missing", number=2)],
        [("frame.gap", None, 2)],
    ),
    "events that were dropped": (
        lambda told: [*without("acked")(told), event("dropped", 25, what="buffer", number=1)],
        [("dropped", None, 1)],
    ),
}


def changed(change: Change) -> list[Event]:
    return [*start_of_run(-1, RESTORED), *change(the_story()), *books(30, **SUMS)]


def start_of_run(after_s: float, restored: int) -> list[Event]:
    return [start(after_s), *books(after_s, restored=restored)]


def instead(kind: str, /, **other: Any) -> Change:
    """Change fields of the first event of a kind."""

    def replace(told: list[Event]) -> list[Event]:
        place = next(n for n, each in enumerate(told) if each.kind == kind)
        return [*told[:place], told[place]._replace(**other), *told[place + 1 :]]

    return replace


def of_running_server(change: Change, later_s: int = 31) -> list[Event]:
    """A run with the books of one minute, and events after them."""
    told = {name: number for name, number in SUMS.items() if name != "open"}
    later = [
        published(later_s, 1),
        handed(later_s, later_s, "ann/1"),
        acked(later_s, later_s, "ann/1"),
    ]
    return [*start_of_run(-1, RESTORED), *change(the_story()), *books(30, **told), *later]


def of_cut_server(change: Change) -> list[Event]:
    """The rest of a run whose start is gone: what its books have counted between two minutes."""
    told = [published(1, 1), handed(1, 1, "ann/1"), acked(1, 1, "ann/1")]
    later = [published(4, 1), handed(4, 4, "ann/1"), acked(4, 4, "ann/1")]
    now = [*told, *books(3, accepted=7, acked=6), *change(later)]
    return [*now, *books(5, accepted=8, acked=7, open=9), start(6), *books(6, restored=9)]


def two_runs(accepted: int) -> list[Event]:
    now = [*start_of_run(0, 0), published(1, 1), handed(1, 1, "ann/1")]
    told = [*now, *books(2, accepted=1, acked=0, open=1)]
    later = [*start_of_run(10, 1), acked(11, 1, "ann/1")]
    return [*told, *later, *books(12, accepted=accepted, acked=1, open=0)]


def twice_acked(after_s: float, msg: int) -> list[Event]:
    """Hand-overs to both receivers, and their acks."""
    return [
        each
        for who in ("ann/1", "bob/1")
        for each in (handed(after_s, msg, who), acked(after_s, msg, who))
    ]


def set_back(told: list[Event], first: int) -> list[Event]:
    """The events, with the times an hour earlier from one of them on."""
    hour_us = 3600 * SECOND
    back = [each._replace(ts=each.ts - hour_us) for each in told[first:]]
    return told[:first] + back


def again() -> list[Event]:
    return [handed(2, 1, "ann/1"), handed(3, 1, "ann/1", 2), acked(4, 1, "ann/1")]


moved, entered = partial(delivery, "moved"), partial(delivery, "entered")


def work_done_twice() -> list[Event]:
    """Ann's shard was killed when she had acked; bob gets the work, too."""
    return [
        start(0),
        published(1, 1),
        moved(1.1, 1, "work:/a/0"),
        entered(1.1, 1, "ann/1", kept=0),
        handed(1.2, 1, "ann/1"),
        acked(1.3, 1, "ann/1"),
        moved(2, 1, "ann/1", code="taken_back"),
        entered(2, 1, "work:/a/0", attempt=1),
        moved(2.1, 1, "work:/a/0"),
        entered(2.1, 1, "bob/1", kept=0, attempt=1),
        handed(2.2, 1, "bob/1", 2),
    ]


def returned_work() -> list[Event]:
    """Ann refuses an item of a work queue, and bob acks it; the journal counts on for bob."""
    refused = delivery("refused", 1.2, 1, "ann/1", attempt=1, code="user.update.error")
    return [
        start(0),
        published(1, 1),
        moved(1.1, 1, "work:/a/0"),
        handed(1.1, 1, "ann/1"),
        refused,
        moved(1.3, 1, "ann/1"),
        moved(1.4, 1, "work:/a/0"),
        handed(1.5, 1, "bob/1", 2),
        acked(1.6, 1, "bob/1"),
    ]


def returned_to_its_subject() -> list[Event]:
    """The session of joe ends with a message for joe, and his next one acks it."""
    return [
        start(0),
        published(1, 1),
        handed(1.1, 1, "joe/1"),
        moved(1.3, 1, "joe/1"),
        moved(1.4, 1, "joe/0"),
        handed(1.5, 1, "joe/2", 2),
        acked(1.6, 1, "joe/2"),
    ]


def given_to_one_who_had_it() -> list[Event]:
    """Both sessions of sue have a message for her and for one of them, and the other one ends."""
    return [
        start(0),
        published(1, 2),
        handed(1.1, 1, "sue/2"),
        acked(1.2, 1, "sue/2"),
        moved(1.3, 1, "sue/1"),
        entered(1.3, 1, "sue/0"),
        moved(1.4, 1, "sue/0"),
        entered(1.4, 1, "sue/2"),
        handed(1.5, 1, "sue/2"),
        acked(1.6, 1, "sue/2"),
    ]


# Each case is a node of its own, so that one audit checks all of them.
CASES: dict[str, tuple[list[Event], Found]] = {
    "a sound journal": (changed(lambda told: told), []),
    "a message that was published before the journal began": (
        [start(100), delivery("acked", 101, 5, "ann/1"), published(102, 0)],
        [],
    ),
    "a message of which a part was removed with its day": (
        [start(100), published(99, 1)._replace(ts=START_US + 101 * SECOND), *twice_acked(102, 99)],
        [],
    ),
    "work of which its shard says nothing any more, done before and afterwards": (
        [*work_done_twice(), acked(2.5, 1, "bob/1")],
        [],
    ),
    "such work, whose queue was at a worker that was killed, too": (
        [
            *[each for each in work_done_twice() if each.ts != START_US + 2 * SECOND],
            acked(2.5, 1, "bob/1"),
        ],
        [],
    ),
    "such work that was done once more": (
        [*work_done_twice(), acked(2.5, 1, "bob/1"), acked(2.6, 1, "bob/1")],
        [
            ("never_handed", "bob/1", 1),
            ("settled_twice", "bob/1", 1),
            ("too_many_ends", None, 1),
        ],
    ),
    "an item of a work queue that one refused and another acked": (returned_work(), []),
    "a message that returned to its subject": (returned_to_its_subject(), []),
    "a message that another copy of reached its receiver": (given_to_one_who_had_it(), []),
    "an ack of that copy which was written twice": (
        [*given_to_one_who_had_it(), acked(1.7, 1, "sue/2")],
        [
            ("never_handed", "sue/2", 1),
            ("settled_twice", "sue/2", 1),
            ("too_many_ends", None, 1),
        ],
    ),
    "an ack of returned work that was not handed over": (
        without("redelivered")(returned_work()),
        [("never_handed", "bob/1", 1)],
    ),
    "an ack after a second hand-over without a first one": (
        without("handed")([*start_of_run(0, 0), published(1, 1), *again()]),
        [("never_handed", "ann/1", 1)],
    ),
    "a message of a node that has no journal": (
        [start(0), handed(1, 1, "ann/1")._replace(origin="g")],
        [("not_published", None, 1)],
    ),
    "a copy that left its queue without an event": (
        [*start_of_run(-1, RESTORED), *the_story(), *books(30, **{**SUMS, "open": 3})],
        [("books_open", None, 1)],
    ),
    "a clock that was put back by an hour in the midst": (
        [*start_of_run(-1, RESTORED), *set_back(the_story(), 20), *set_back(books(30, **SUMS), 0)],
        [],
    ),
    "two runs, each with books of its own": (two_runs(0), []),
    "a running server": (of_running_server(lambda told: told), []),
    "a missing ack of a running server": (
        of_running_server(without("acked")),
        [("books_acked", None, -1)],
    ),
    "an ack of a running server, changed to an expiry": (
        of_running_server(instead("acked", kind="expired")),
        [("books_acked", None, -1), ("books_expired", None, 1)],
    ),
    "a server that was idle for an hour after its books": (
        of_running_server(lambda told: told, 30 + 3600),
        [],
    ),
    "a run whose start was cut": (of_cut_server(lambda told: told), []),
    "a missing ack in a run whose start was cut": (
        of_cut_server(without("acked")),
        [("books_acked", None, -1)],
    ),
    "an extra copy of a running server": (
        of_running_server(instead("published", copies=3)),
        [("books_accepted", None, 1)],
    ),
    "the books of a later run": (two_runs(1), [("books_accepted", None, -1)]),
    **{name: (changed(change), expected) for name, (change, expected) in FAULTS.items()},
}


def lake_of_all(place: Path) -> Lake:
    rows: Rows = []
    for number, (told, _) in enumerate(CASES.values()):
        rows += rows_of(told, f"n{number}")
    named = [dict(zip(ARROW.names, row, strict=True)) for row in rows]
    return store(place, events=pa.Table.from_pylist(named, ARROW))


def check(rows: Findings) -> None:
    found: dict[str, Found] = {name: [] for name in CASES}
    times = set()
    for row in rows:
        if row["kind"].startswith("run."):
            times.add((row["kind"], row["node"]))
        else:
            # The node without a journal is g, with the number of the node that mentions it.
            name = [*CASES][int(row["node"][1:])]
            found[name].append((row["kind"], row["receiver"], row["number"]))
    assert found == {name: expected for name, (_, expected) in CASES.items()}
    assert times == {("run.open", f"n{number}") for number in range(len(CASES))}


def test_the_audit_finds_each_fault_of_a_journal_and_nothing_else(tmp_path: Path) -> None:
    check(findings_of(lake_of_all(tmp_path)))


def killed(before: list[Event], left: list[Event]) -> Rows:
    """A run that was killed at 20, and the next one at 30 with what that had left in its store."""
    first = rows_of([start(0), published(20, 1), *twice_acked(20, 20)[:2], *before], "n0")
    later = rows_of([*left, start(30)], "n0")
    return first + [(*row[:-3], "seed-2", *row[-2:]) for row in later]


@pytest.mark.parametrize(
    ("before", "left", "kinds"),
    [
        ([], [handed(20, 21, "ann/1"), acked(21, 21, "ann/1")], set()),
        ([published(21, 1, kept=0)], twice_acked(21, 21), set()),
        ([published(21, 0)], [handed(21, 21, "ann/1")], set()),
        # Everything of what is stored is known, and so is what had happened long before the kill.
        ([published(21, 1)], twice_acked(21, 21), {"too_many_ends", "too_many_receivers"}),
        ([], [handed(20, 9, "ann/1")], {"not_published"}),
    ],
    ids=["no publish", "some copies", "addressed", "stored", "long before"],
)
def test_a_kill_excuses_what_is_unknown_of_messages_that_were_not_stored_then(
    tmp_path: Path, before: list[Event], left: list[Event], kinds: set[str]
) -> None:
    named = [dict(zip(ARROW.names, row, strict=True)) for row in killed(before, left)]
    lake = store(tmp_path, events=pa.Table.from_pylist(named, ARROW))
    found = {row["kind"] for row in findings_of(lake)}
    assert found - {"run.open"} == {"run.unclean", *kinds}


@pytest.mark.beside
def test_an_audit_on_a_cluster_has_the_same_findings(spark: "SparkSession", tmp_path: Path) -> None:
    lake = lake_of_all(tmp_path)
    check(findings(on_spark.of_lake(lake, spark), lake))
