"""Each report, on stories whose numbers anyone can count."""

from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from holdfast.journal.schema import Event
from holdfast.pipeline import schemas, summaries
from holdfast.pipeline.lake import OPEN
from holdfast.pipeline.replay import CONDITIONS, parts, plan, summary
from holdfast.pipeline.reports.dead import dead, poison
from holdfast.pipeline.reports.flow import funnel, throughput
from holdfast.pipeline.reports.latency import latency
from holdfast.pipeline.reports.receivers import flapping, holdback_advice, redelivery
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.results import find_out
from holdfast.store.letter_filter import LetterFilter
from tests.unit.pipeline.events import START_US, event, published
from tests.unit.pipeline.stories import acked, died, handed, the_story
from tests.unit.pipeline.told import made_of, one_run, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.beside


def more() -> list[Event]:
    """One message kills three of four; joe needs three attempts, and his line is bad."""
    told = [published(40, 3, "/poison"), published(50, 1, "/slow")]
    # Not for all of them the store has it.
    told.append(published(40, 1, "/poison", kept=0, size=0))
    for who in ("a/1", "b/1", "c/1"):
        told += [handed(40.1, 40, who), *died(40.2, 40, who, "user.update.internalError")]
    told += [handed(50 + 2 * n, 50, "joe/1", n + 1) for n in range(3)]
    told.append(acked(56, 50, "joe/1"))
    told += [event("dispatcher", 60 + n, receiver="joe/1", what="polling") for n in range(3)]
    told.append(event("session", 64, receiver="joe/1", what="resumed", number=0))
    # Of this the journal has no more than the end.
    told.append(acked(1, -5, "joe/1"))
    return told


_ALONE = Lock()


def tables(spark: "SparkSession") -> Tables:
    # Two threads take tests of this file at the same time.
    with _ALONE:
        return _tables(spark)


@cache
def _tables(spark: "SparkSession") -> Tables:
    told = one_run([*the_story(), *more()])
    events = spark.createDataFrame(table_of(told)).localCheckpoint()
    life = spark.createDataFrame(made_of(told).life).localCheckpoint()
    closed = life.where("state <> 'open'")
    times, deaths = summaries.latency(closed), summaries.dead(closed)
    lost = spark.createDataFrame([("n1", "/poison", 1, None)], schemas.LOST)
    return Tables(events, life, times.localCheckpoint(), deaths.localCheckpoint(), lost)


def rows(frame: "DataFrame", *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*names).collect()]


def test_the_funnel_loses_nobody(spark: "SparkSession") -> None:
    counts = ("published", "copies", "replayed", "handed", "acked", "dead", "lost", "open")
    assert rows(funnel(tables(spark)), "channel", *counts) == [
        ("/chat", 5, 10, 0, 10, 9, 1, 0, 0),
        ("/orders", 5, 10, 1, 11, 9, 1, 0, 1),
        ("/poison", 1, 4, 0, 3, 0, 3, 1, 0),
        ("/slow", 1, 1, 0, 1, 1, 0, 0, 0),
    ]


def test_deaths_that_are_alike_are_one_row(spark: "SparkSession") -> None:
    assert rows(dead(tables(spark)), "code", "channel", "dead", "receivers") == [
        ("user.update.internalError", "/poison", 3, 3),
        ("user.update.error", "/chat", 1, 1),
        ("user.update.error", "/orders", 1, 1),
    ]


def test_what_most_die_of_is_poison(spark: "SparkSession") -> None:
    assert rows(poison(tables(spark)), "channel", "receivers", "dead", "share", "code") == [
        ("/poison", 3, 3, 1.0, "user.update.internalError")
    ]


def test_latency_is_told_in_milliseconds(spark: "SparkSession") -> None:
    columns = ("channel", "n", "delivery_p50", "delivery_max", "acked", "answer_p50", "answer_max")
    assert rows(latency(tables(spark)), *columns) == [
        ("/chat", 10, 10.0, 10.0, 9, 40.0, 50.0),
        ("/orders", 9, 10.0, 10.0, 8, 40.0, 50.0),
        ("/poison", 3, 100.0, 100.0, 0, None, None),
        ("/slow", 1, 0.0, 0.0, 1, 6000.0, 6000.0),
    ]


def test_what_the_console_shows_is_told_as_the_administration_tells_things(
    spark: "SparkSession",
) -> None:
    found = find_out(tables(spark))
    assert {name: len(value["rows"]) for name, value in found.items()} == {
        "dead": 3,
        "latency": 4,
        "poison": 1,
        "holdback-advice": 1,
    }
    assert {value["since"] for value in found.values()} == {START_US // 1000}
    hour = found["latency"]["rows"][0]
    assert (hour["hour"], hour["channel"], hour["n"]) == (START_US // 1000, "/chat", 10)
    assert found["poison"]["rows"][0] == {
        "message": f"n1-{START_US * 1000 + 40 * 10**9}",
        "channel": "/poison",
        "receivers": 3,
        "dead": 3,
        "share": 1.0,
        "code": "user.update.internalError",
    }


LATER_MS = START_US // 1000 + 40_000


@pytest.mark.parametrize(
    ("wanted", "letters"),
    [
        ({}, [0, 40, 40, 40]),
        ({"subject": "b", "code": "user.update.internalError"}, [40]),
        (
            {"receiver": "bob/1", "channel": "/chat", "fingerprint": "f", "until": LATER_MS},
            [0],
        ),
        ({"since": LATER_MS}, [40, 40, 40]),
    ],
)
def test_a_plan_has_what_is_wanted_and_was_not_replayed(
    spark: "SparkSession", wanted: dict[str, Any], letters: list[int]
) -> None:
    assert planned(tables(spark), wanted) == letters


def test_what_most_receivers_died_of_can_be_left_out(spark: "SparkSession") -> None:
    assert planned(tables(spark), {}, without_poison=True) == [0]


def test_a_plan_knows_every_condition_of_the_servers_filter() -> None:
    # Which letters there are, and in which state, is known by the server alone.
    assert CONDITIONS.keys() == LetterFilter.model_fields.keys() - {"ids", "state"}


def planned(tables: Tables, wanted: dict[str, Any], **how: Any) -> list[int]:
    return [int(letter) for part in parts(plan(tables, wanted, **how), 2) for letter in part]


@pytest.mark.parametrize(
    ("to", "letters"),
    [
        ("kim/1", [22, 31, 52, 62, 72]),
        ("joe/1", [12, 22, 23, 31, 43, 52, 62, 72, 82, 92]),
        (None, [12, 22, 23, 31, 43, 52, 62, 72, 82, 92]),
    ],
)
def test_who_gets_all_letters_gets_no_message_twice_but_those_that_died_of_it(
    spark: "SparkSession", to: str | None, letters: list[int]
) -> None:
    life = spark.createDataFrame(
        [
            # Ann's letter was for both of them.
            (1, "ann/1", 0, "dead", 11, []),
            (1, "bob/1", 0, "dead", 12, []),
            (1, "kim/1", 1, "acked", None, [11]),
            (2, "ann/1", 0, "dead", 21, []),
            (2, "kim/1", 1, "dead", 22, [21]),
            (2, "bob/1", 0, "dead", 23, []),
            # Kim had it as everybody had.
            (3, "ann/1", 0, "dead", 31, []),
            (3, "kim/1", 0, "acked", None, []),
            # Ann died once more of what kim then got for bob's letter.
            (4, "ann/1", 0, "dead", 41, []),
            (4, "bob/1", 0, "dead", 42, []),
            (4, "ann/1", 1, "dead", 43, [41]),
            (4, "kim/1", 1, "acked", None, [42]),
            # Kim was to have it, and had it not.
            *_ends_of_one_for_both(5, "discarded"),
            *_ends_of_one_for_both(6, "expired"),
            *_ends_of_one_for_both(7, "lost_with_process"),
            *_ends_of_one_for_both(8, "written"),
            *_ends_of_one_for_both(9, "open"),
        ],
        "msg bigint, receiver string, generation int, state string, letter bigint, "
        "replay_of array<bigint>",
    )
    columns = (column.split() for column in schemas.LIFE.split(", "))
    more = [(name, kind) for name, kind in columns if name not in life.columns]
    whole = life.select("*", *(F.lit(None).cast(kind).alias(name) for name, kind in more))
    of_node = whole.fillna("n1", "origin")
    assert planned(Tables(*[of_node] * 5), {}, to=to) == letters


def _ends_of_one_for_both(msg: int, state: str) -> list[tuple[Any, ...]]:
    return [
        (msg, "ann/1", 0, "dead", 10 * msg + 1, []),
        (msg, "bob/1", 0, "dead", 10 * msg + 2, []),
        (msg, "kim/1", 1, state, None, [10 * msg + 1]),
    ]


def test_letters_of_one_message_are_carried_out_together(spark: "SparkSession") -> None:
    letters = [(1, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 6), (4, 7), (4, 8), (4, 9), (5, 10)]
    told = spark.createDataFrame(letters, "msg bigint, letter bigint")
    found = [[int(id) for id in part] for part in parts(told, 3)]
    assert found == [[1, 2], [3, 4, 5], [6, 7, 8], [9, 10]]


def test_letters_that_were_replayed_to_whomever_are_planned_no_more(spark: "SparkSession") -> None:
    told = [published(1, 3)]
    for n, who in enumerate(("eve/1", "kim/1", "joe/1"), 1):
        told += [each._replace(letter=n) for each in died(2, 1, who)]
    to_zoe = {"receiver": "zoe/1", "generation": 1}
    told.append(event("replayed", 3, 1, letter=1, **to_zoe))
    first = made_of(one_run(told))
    # It is one message, and as often replayed: to those who count, one life.
    again = [acked(4, 1, "zoe/1"), event("replayed", 5, 1, letter=2, **to_zoe)]
    second = made_of(one_run([*told, *again])[len(told) :], first)
    is_over = pc.not_equal(first.life["state"], OPEN)
    life = spark.createDataFrame(pa.concat_tables([first.life.filter(is_over), second.life]))
    assert planned(Tables(*[life] * 5), {}) == [3]


def test_a_plan_is_told_by_what_went_wrong(spark: "SparkSession") -> None:
    columns = ("channel", "code", "letters", "receivers")
    assert rows(summary(plan(tables(spark), {})), *columns) == [
        ("/poison", "user.update.internalError", 3, 3),
        ("/chat", "user.update.error", 1, 1),
    ]


def test_who_gets_things_twice_is_at_the_top(spark: "SparkSession") -> None:
    found = rows(
        redelivery(tables(spark)), "receiver", "copies", "redeliveries", "attempts", "share"
    )
    assert found[0] == ("joe/1", 1, 2, 3, 1.0)
    # The others refused what they got, and got it once.
    assert {row[0] for row in found[1:]} == {"a/1", "b/1", "c/1", "bob/1"}
    assert {row[2] for row in found[1:]} == {0}


def test_who_comes_and_goes_is_flapping(spark: "SparkSession") -> None:
    assert rows(flapping(tables(spark)), "receiver", "losses", "how") == [("joe/1", 3, "polling")]


def test_the_advice_is_what_helped(spark: "SparkSession") -> None:
    columns = ("channel", "retried", "succeeded", "backoff", "max_attempts", "share")
    # Who died of the first attempt tells nothing of a second.
    assert rows(holdback_advice(tables(spark)), *columns) == [("/slow", 1, 1, 3000.0, 3, 1.0)]


def test_throughput_adds_up(spark: "SparkSession") -> None:
    columns = ("minute", "published", "copies", "bytes", "handed", "ended", "dead")
    found = rows(throughput(tables(spark)), *columns)
    assert [row[1:] for row in found] == [(12, 25, 1200, 27, 25, 5)]
