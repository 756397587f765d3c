"""The lives of copies, in the order in which things happened."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from app.journal.schema import Event
from pipeline import schemas
from pipeline.lives import lives
from pipeline.messages import known
from pipeline.runs import carried_with_runs, runs_of, with_runs
from tests.pipeline.journals import event, published
from tests.pipeline.stories import acked, died, handed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def replayed(after_s: float, msg: int, receiver: str) -> Event:
    return event("replayed", after_s, msg, receiver=receiver, generation=1, channel="/a")


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
    rows = [(*each, "seed-1", seq if each.node == "n1" else 1, 0) for seq, each in enumerate(told)]
    schema = schemas.JOURNAL.replace("ts timestamp", "ts bigint")
    events = spark.createDataFrame(rows, schema).withColumn("ts", F.timestamp_micros("ts"))
    nobody, nothing = (spark.createDataFrame([], each) for each in (schemas.LIFE, schemas.MESSAGE))
    none = runs_of([])
    found = lives(with_runs(events, none), carried_with_runs(nobody, none), known(events, nothing))
    assert {(row.receiver, row.generation, row.state) for row in found.collect()} == {
        ("ann/1", 0, "dead"),
        ("ann/1", 1, "acked"),
        ("bob/1", 0, "dead"),
        ("bob/1", 1, "acked"),
    }
