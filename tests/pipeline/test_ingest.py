"""Ingest: every event once in the tables, and the life of every copy told whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from pipeline.failures import PipelineFailed
from pipeline.ingest import Source, Taken, take_what_is_there
from pipeline.lake import Lake
from tests.pipeline.journals import START_US, Writer
from tests.pipeline.stories import the_story
from tests.store.servers import ValkeyServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def ingest(spark: "SparkSession", store: ValkeyServer, lake: Lake, **how: Any) -> Taken:
    return take_what_is_there(spark, Source(store.url, **how), lake, lambda taken: None)


def lives(spark: "SparkSession", lake: Lake) -> set[tuple[Any, ...]]:
    """Second of the message, receiver, generation, channel and state."""
    closed = lake.table(spark, "life").drop("batch")
    rows = closed.unionByName(lake.table(spark, "open").selectExpr("*", "'open' as state"))
    return {
        (
            (row.msg // 1000 - START_US) // 1_000_000,
            row.receiver,
            row.generation,
            row.channel,
            row.state,
        )
        for row in rows.collect()
    }


def the_lives() -> set[tuple[Any, ...]]:
    told: set[tuple[Any, ...]] = set()
    for n in range(10):
        channel = "/orders" if n % 2 else "/chat"
        told.add((n, "ann/1", 0, channel, "acked"))
        state = "dead" if n % 5 == 0 else "open" if n == 9 else "acked"
        told.add((n, "bob/1", 0, channel, state))
    # It was replayed in a batch that knew nothing more of its message.
    told.add((5, "bob/1", 1, None, "acked"))
    return told


def test_every_event_is_there_once_and_every_life_is_told(
    spark: "SparkSession", store: ValkeyServer, lake: Lake
) -> None:
    writer = Writer(store)
    writer.write_all(the_story()[:36], each=6)
    assert ingest(spark, store, lake) == Taken(1, 36)
    writer.write_all(the_story()[36:], each=6)
    ingest(spark, store, lake)
    # As after a death between the tables and the checkpoint's last word.
    for file in (lake.checkpoint / "commits").glob("*1*"):
        file.unlink()
    assert lake.committed() == 0
    assert lake.table(spark, "events").count() == 36
    ingest(spark, store, lake)
    assert counted_by_others(lake) == (len(the_story()), len(the_story()), "2025-11-20")
    assert lives(spark, lake) == the_lives()


def counted_by_others(lake: Lake) -> Any:
    """Events, those that differ, and the latest day."""
    return duckdb.execute(
        f"select count(*), count(distinct (node, epoch, seq, pos)), max(d)::text "
        f"from read_parquet('{lake.root}/events/*/*/*.parquet', hive_partitioning = true)"
    ).fetchone()


def test_without_tables_it_is_said_how_to_get_some(spark: "SparkSession", lake: Lake) -> None:
    with pytest.raises(PipelineFailed, match="ingest first"):
        lake.table(spark, "events")


def test_tables_that_lost_their_checkpoint_are_not_filled_twice(
    spark: "SparkSession", store: ValkeyServer, lake: Lake
) -> None:
    (lake.root / "events").mkdir(parents=True)
    with pytest.raises(PipelineFailed, match="_checkpoint"):
        ingest(spark, store, lake)
