"""The lives of copies, in the order in which things happened."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from app.journal.schema import Event
from pipeline import schemas
from pipeline.lives import lives
from pipeline.messages import known
from pipeline.replay import Wanted, parts, plan
from pipeline.reports.tables import Tables
from pipeline.runs import carried_with_runs, runs_of, with_runs
from tests.pipeline.journals import event, published
from tests.pipeline.stories import acked, died, handed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def replayed(after_s: float, msg: int, receiver: str, letter: int = 1) -> Event:
    more = {"letter": letter, "generation": 1, "channel": "/a"}
    return event("replayed", after_s, msg, receiver=receiver, **more)


def lives_of(
    spark: "SparkSession", told: Sequence[Event], carried: "DataFrame | None" = None
) -> "DataFrame":
    """The lives that such events, each in a frame of its own, make of these."""
    rows = [(*each, "seed-1", seq if each.node == "n1" else 1, 0) for seq, each in enumerate(told)]
    schema = schemas.JOURNAL.replace("ts timestamp", "ts bigint")
    events = spark.createDataFrame(rows, schema).withColumn("ts", F.timestamp_micros("ts"))
    nobody, nothing = (spark.createDataFrame([], each) for each in (schemas.LIFE, schemas.MESSAGE))
    none = runs_of([])
    before = carried_with_runs(nobody if carried is None else carried, none)
    return lives(with_runs(events, none), before, known(events, nothing)).localCheckpoint()


@pytest.mark.beside
def test_a_clock_that_was_put_back_does_not_mix_up_the_lives_of_a_copy(
    spark: "SparkSession",
) -> None:
    told = [
        published(1, 2),
        *(handed(1.1, 1, who) for who in ("ann/1", "bob/1")),
        *(each for who in ("ann/1", "bob/1") for each in died(9, 1, who)),
        # Now it is earlier; and bob's replay happens at another node, whose clock is right.
        replayed(5, 1, "ann/1"),
        handed(5.1, 1, "ann/1"),
        acked(5.2, 1, "ann/1"),
        replayed(20, 1, "bob/1")._replace(node="n2"),
        acked(20.2, 1, "bob/1")._replace(node="n2"),
    ]
    found = lives_of(spark, told)
    assert {(row.receiver, row.generation, row.state) for row in found.collect()} == {
        ("ann/1", 0, "dead"),
        ("ann/1", 1, "acked"),
        ("bob/1", 0, "dead"),
        ("bob/1", 1, "acked"),
    }


@pytest.mark.beside
def test_letters_that_were_replayed_to_whomever_are_planned_no_more(spark: "SparkSession") -> None:
    told = [published(1, 3)]
    for n, who in enumerate(("eve/1", "kim/1", "joe/1"), 1):
        told += [each._replace(letter=n) for each in died(2, 1, who)]
    first = lives_of(spark, [*told, replayed(3, 1, "zoe/1", 1)])
    carried = first.where("state = 'open'").drop("state")
    # It is one message, and as often replayed: to those who count, one life.
    second = lives_of(spark, [acked(4, 1, "zoe/1"), replayed(5, 1, "zoe/1", 2)], carried)
    life = first.where("state <> 'open'").unionByName(second)
    tables = Tables(first, life, *[first] * 3)
    [part] = parts(plan(tables, Wanted()), 9)
    assert [int(letter) for letter in part] == [3]
