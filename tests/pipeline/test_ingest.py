"""Ingest: every event is in the tables once, and the life of every copy is complete."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.journal.schema import Event
from holdfast.pipeline import lacking
from holdfast.pipeline.delta import Table
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.heard import remembered
from holdfast.pipeline.ingest import IngestProgress, Source, go_on, take_what_is_there
from holdfast.pipeline.lake import Lake
from holdfast.store.format.keys import RedisKeys
from tests.pipeline.journals import Writer
from tests.pipeline.losses import miss_each_file
from tests.pipeline.others import asked
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.events import START_US, published
from tests.unit.pipeline.stories import acked, handed, start, the_story

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def ingest(spark: "SparkSession", store: ValkeyServer, lake: Lake, **how: Any) -> IngestProgress:
    return take_what_is_there(spark, Source(store.url, **how), lake, lambda taken: None)


def lives(spark: "SparkSession", lake: Lake) -> set[tuple[Any, ...]]:
    """Second of the message, receiver, generation, channel and state."""
    rows = lake.table(spark, "life").unionByName(lake.table(spark, "open"))
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
    # It was replayed in a batch without other events of its message.
    told.add((5, "bob/1", 1, "/orders", "acked"))
    return told


def other(told: list[Event]) -> list[Event]:
    """The same events at another node."""
    return [each._replace(node="n2", origin=each.origin and "n2") for each in told]


def before_the_end() -> list[Event]:
    """A message that is stored for one of three, a passing one for two, and a stored one."""
    return other(
        [
            start(100),
            published(101, 1, "/mixed", kept=1),
            published(101, 2, "/mixed", kept=0),
            handed(101.1, 101, "joe/1"),
            handed(101.1, 101, "anonymous/-1"),
            published(102, 2, "/passing", kept=0),
            handed(102.1, 102, "anonymous/-1"),
            acked(102.2, 102, "anonymous/-1"),
            handed(102.3, 102, "ann/1"),
            published(103, 1, "/kept"),
            handed(103.1, 103, "kim/1"),
        ]
    )


def after_the_end() -> list[Event]:
    """The next process has what was stored; passing messages are gone."""
    again = handed(111, 101, "joe/1", 2)
    now = [published(112, 1, "/passing", kept=0), handed(112.1, 112, "anonymous/-1")]
    return other([start(110), again, acked(111.1, 101, "joe/1"), *now])


THE_LIVES_OF_PROCESSES = {
    (101, "joe/1", 0, "/mixed", "acked"),
    (101, "anonymous/-1", 0, "/mixed", "lost_with_process"),
    (102, "anonymous/-1", 0, "/passing", "acked"),
    (102, "ann/1", 0, "/passing", "lost_with_process"),
    # Her server has started again, but she has not returned.
    (103, "kim/1", 0, "/kept", "open"),
    (112, "anonymous/-1", 0, "/passing", "open"),
}


@pytest.mark.beside
def test_an_ingest_stores_every_event_once_and_every_life_complete(
    spark: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "lake")
    writer = Writer(store)
    writer.write_all(the_story()[:36], each=6)
    other_node = Writer(store, "n2")
    other_node.write_all(before_the_end())
    assert ingest(spark, store, lake) == IngestProgress(1, 47)
    assert lake.table(spark, "events").count() == 47
    writer.write_all(the_story()[36:], each=6)
    other_node.epoch = "seed-2"
    other_node.write_all(after_the_end())
    events = len(the_story()) + len(before_the_end()) + len(after_the_end())
    assert ingest(spark, store, lake) == IngestProgress(1, events - 47)
    assert counted_by_others(lake) == (events, events, "2025-11-20")
    assert lives(spark, lake) == the_lives() | THE_LIVES_OF_PROCESSES
    told = store.ask("HGETALL", f"{writer.stream}:read")
    assert told == {lake.id.encode(): writer.entries()[-1].encode()}
    # One of the three was not even handed over.
    lost = lake.table(spark, "lost").orderBy("channel").collect()
    assert [(row.channel, row.n) for row in lost] == [("/mixed", 2), ("/passing", 1)]
    miss_each_file(lake)
    waiting = lake.table(spark, "messages").select("channel").collect()
    assert sorted(row.channel for row in waiting) == ["/kept", "/orders", "/passing"]


def counted_by_others(lake: Lake) -> Any:
    """The numbers of events and of different events, and the latest day."""
    question = "select count(*), count(distinct (node, epoch, seq, pos)), max(d)::text from events"
    return asked(lake, question)


@pytest.mark.beside
def test_a_continuing_ingest_takes_frames_as_they_are_written(
    spark: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "lake")
    writer = Writer(store)
    heard: Queue[int] = Queue()
    source = Source(store.url)
    with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as haste:
        # No other test has a continuing ingest.
        haste.setattr("holdfast.pipeline.ingest._PAUSE_S", 0.1)
        is_over = threading.Event()
        done = pool.submit(
            go_on, spark, source, lake, lambda taken: heard.put(taken.events), is_over
        )
        try:
            # An empty journal is one to wait for.
            writer.write(start(0))
            assert heard.get(timeout=150) == 1
            second = writer.write(start(1))
            assert heard.get(timeout=150) == 2
            # An idle server is heard of, too.
            store.ask("HSET", RedisKeys("holdfast").meta, f"heard {writer.stream}", 17)
            wait_for(lambda: remembered(lake) == {"n1": 17})
            # The server is told that the frame is in the tables.
            assert store.ask("HGET", f"{writer.stream}:read", lake.id).decode() == second
        finally:
            is_over.set()
        done.result(150)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 150
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class _Stopping(Lake):
    """A lake whose ingest loses its query at each batch: somebody stops it."""

    spark: "SparkSession"

    def commit(self, *args: Any, **how: Any) -> Any:
        stop_query(self.spark)
        return super().commit(*args, **how)


def stop_query(spark: "SparkSession") -> None:
    """Stop the query of this thread's batch, and no other; Spark waits until the batch ends."""
    id = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    query = spark.streams.get(id or "")
    assert query is not None
    threading.Thread(target=query.stop).start()
    wait_for(lambda: not query.isActive)


@pytest.mark.beside
def test_an_ingest_whose_query_somebody_stops_says_so(
    spark: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    lake = _Stopping(tmp_path / "lake")
    lake.spark = spark
    Writer(store).write_all([start(n) for n in range(2)], each=1)
    with pytest.raises(PipelineFailed, match="stopped"):
        ingest(spark, store, lake, most=1)
    # Frames that were not read are not missing.
    assert lacking.remembered(lake) == {}
    assert ingest(spark, store, Lake(tmp_path / "lake")) == IngestProgress(1, 1)


@pytest.mark.beside
def test_a_continuing_query_that_somebody_stops_says_so(
    spark: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    # Spark need not be installed for other tests.
    from holdfast.pipeline.query import IngestQuery

    Writer(store).write(start(0))
    query = IngestQuery(
        spark,
        {"url": store.url},
        tmp_path / "checkpoint",
        lambda ranges: stop_query(spark),
        told=lambda: None,
        idle=lambda: None,
    )
    with pytest.raises(PipelineFailed, match="stopped"):
        query.go_on(0.1, threading.Event())


def test_reading_a_lake_without_tables_fails_and_names_the_ingest(
    spark: "SparkSession", lake: Lake
) -> None:
    with pytest.raises(PipelineFailed, match="ingest first"):
        lake.table(spark, "events")


def test_a_reader_during_the_first_ingest_is_told_that_there_are_no_tables_yet(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, told = Table.create, set[str]()

    def look_and_create(table: Table, log_days: int) -> None:
        # Files are written before the log that makes them a table.
        (lake.root / "events").mkdir(exist_ok=True)
        with pytest.raises(PipelineFailed) as failed:
            lake.newest()
        told.add(str(failed.value))
        create(table, log_days)

    monkeypatch.setattr(Table, "create", look_and_create)
    lake.sign()
    assert told == {f"{lake.root} has no tables yet: run holdfast pipeline ingest first"}


def test_tables_of_another_version_are_neither_read_nor_extended(lake: Lake) -> None:
    (lake.root / "events/batch=00000000").mkdir(parents=True)
    for version, words in (
        (None, "a much older holdfast: name another --lake"),
        ("2", "a much older holdfast: name another --lake"),
        ("4", "an older holdfast: holdfast pipeline backfill"),
        ("99", "a newer holdfast: update this one"),
    ):
        if version is not None:
            (lake.root / "_version").write_text(version)
        for attempt in (lake.check_version, lake.newest):
            with pytest.raises(PipelineFailed, match=words):
                attempt()


def test_an_ingest_into_tables_whose_position_is_missing_is_refused(
    spark: "SparkSession", store: ValkeyServer, lake: Lake
) -> None:
    Writer(store).write(start(0))
    ingest(spark, store, lake)
    (lake.root / "_offsets/0").unlink()
    with pytest.raises(PipelineFailed, match=r"_offsets/0, .* is missing"):
        ingest(spark, store, lake)
