"""Anybody's Spark reads the journal by the data source `holdfast_journal`, as documented."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.pipeline.arrow import ARROW
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.source.journal_source import JournalSource
from holdfast.pipeline.source.options import SourceOptions
from holdfast.pipeline.source.planning import Planner
from holdfast.pipeline.source.ranges import piece_of, range_of
from holdfast.pipeline.source.reading import read_piece
from holdfast.pipeline.source.streams import Journals
from holdfast.store.format.keys import RedisKeys
from tests.pages import ROOT, blocks
from tests.pipeline.journals import Writer
from tests.pipeline.stored import store_events
from tests.pipeline.test_source import some_events
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.framed_events import one_run
from tests.unit.pipeline.stories import the_story

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLES = {
    block.kind: block.text
    for block in blocks(ROOT / "docs" / "reference" / "tables.md")
    if block.language in ("python", "sql") and block.kind
}
PLACE = "redis://127.0.0.1:6379/0"


@pytest.fixture
def notebook(spark: "SparkSession") -> "SparkSession":
    """A session that knows the source, as in the first example."""
    known: dict[str, Any] = {"spark": spark}
    exec(EXAMPLES["register"], known)  # the page's own words
    return spark


def test_a_session_of_the_page_has_this_python_and_a_java(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JAVA_HOME", "PYSPARK_PYTHON"):
        monkeypatch.setenv(name, "")
    known: dict[str, Any] = {}
    exec(EXAMPLES["session"], known)
    assert known["spark"].version == spark.version
    java = Path(os.environ["JAVA_HOME"], "bin", "java")
    # Spark starts it with a module that small Javas lack.
    subprocess.run([java, "--add-modules=jdk.incubator.vector", "-version"], check=True)
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def at(text: str, store: ValkeyServer, place: Path) -> str:
    """An example with a store and folders of the test."""
    assert PLACE in text
    return text.replace("/tmp/", f"{place}/").replace(PLACE, store.url)


def run(name: str, spark: "SparkSession", store: ValkeyServer, place: Path) -> dict[str, Any]:
    known: dict[str, Any] = {"spark": spark}
    exec(at(EXAMPLES[name], store, place), known)
    return known


def read(spark: "SparkSession", store: ValkeyServer, **options: object) -> "DataFrame":
    reader = spark.read.format("holdfast_journal").option("url", store.url)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def taken(spark: "SparkSession", store: ValkeyServer, place: Path, **options: object) -> list[int]:
    """Run a stream over what is available; return the rows of each of its batches."""
    reader = spark.readStream.format("holdfast_journal").option("url", store.url)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    rows = list[int]()
    query = (
        reader.load()
        .writeStream.foreachBatch(lambda batch, number: rows.append(batch.count()))
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination(60)
    finally:
        # Only this one: tests in other threads have queries in the same session.
        query.stop()
    return rows


def test_a_batch_has_a_typed_row_for_each_event(
    notebook: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    Writer(store).write_all(some_events(0, 10), each=6)
    found = read(notebook, store).toArrow()
    assert (len(found), found.schema.names) == (30, ARROW.names)
    assert found.schema.field("ts").type == ARROW.field("ts").type
    known = run("batch", notebook, store, tmp_path)
    assert {(row.kind, row["count"]) for row in known["counted"].collect()} == {
        ("published", 10),
        ("handed", 10),
        ("acked", 10),
    }


def test_spark_reads_the_tables_by_the_files_that_belong_to_them(
    spark: "SparkSession", tmp_path: Path
) -> None:
    lake = store_events(tmp_path / "lake", one_run(the_story()))
    # A file that was replaced, which belongs to the table no more.
    (file,) = lake.found("life")
    shutil.copy(file.path, file.path.with_name("replaced.parquet"))
    known: dict[str, Any] = {"spark": spark}
    exec(EXAMPLES["tables"].replace("data/lake", str(lake.root)), known)
    assert {row.state: row["count"] for row in known["counted"].collect()} == {
        "acked": 18,
        "dead": 2,
    }


def test_filters_are_evaluated_before_rows_pass_through_java(
    notebook: "SparkSession", store: ValkeyServer
) -> None:
    Writer(store).write_all(some_events(0, 10), each=6)
    setting = "spark.sql.python.filterPushdown.enabled"
    # As it is by default, Spark does it.
    assert read(notebook, store).filter("kind = 'acked'").count() == 10
    notebook.conf.set(setting, "true")
    try:
        found = read(notebook, store).filter("kind = 'acked' and ts > '2020-01-01' and pos % 1 = 0")
        assert found.count() == 10
        plan = found._jdf.queryExecution().executedPlan().toString()
    finally:
        notebook.conf.unset(setting)
    # What is left to Spark.
    [condition] = [line.partition("Filter ")[2] for line in plan.splitlines() if "Filter (" in line]
    assert condition.startswith("((pos#"), plan
    assert "kind" not in condition
    assert "ts" not in condition


def test_sql_reads_the_journal_as_a_view(
    notebook: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    Writer(store).write_all(some_events(0, 4), each=6)
    define, ask = at(EXAMPLES["sql"], store, tmp_path).strip().rstrip(";").split(";\n")
    notebook.sql(define)
    assert [tuple(row) for row in notebook.sql(ask).collect()] == [("/a", 4)]


def test_a_stream_goes_on_from_its_checkpoint_with_what_is_new(
    notebook: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 10), each=6)
    seen = []
    for _ in range(2):
        run("stream", notebook, store, tmp_path)
        table = notebook.read.parquet(str(tmp_path / "events"))
        seen.append((table.count(), table.select("seq", "pos").distinct().count()))
        writer.write_all(some_events(10, 12), each=6)
    assert seen == [(30, 30), (36, 36)]


def test_a_stream_takes_at_most_so_many_events_in_a_batch(
    notebook: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    Writer(store).write_all(some_events(0, 10), each=6)
    assert taken(notebook, store, tmp_path, maxEventsPerTrigger=12) == [12, 12, 6]


def test_a_batch_reads_from_one_offset_to_another(
    notebook: "SparkSession", store: ValkeyServer
) -> None:
    writer = Writer(store)
    planner = Planner(Journals(store.url, "holdfast"), cores=1, accepts_loss=False)
    writer.write_all(some_events(0, 2), each=6)
    start = planner.advance({}, planner.newest(), None)
    writer.write_all(some_events(2, 5), each=3)
    end = planner.advance(start, planner.newest(), 6)
    between = {"startingOffsets": json.dumps(start), "endingOffsets": json.dumps(end)}
    assert read(notebook, store, **between).count() == 6
    assert read(notebook, store, startingOffsets="latest").count() == 0


def test_ranges_have_a_row_for_each_share_from_which_its_events_are_read(
    notebook: "SparkSession", store: ValkeyServer
) -> None:
    for node in ("n1", "n2"):
        Writer(store, node).write_all(
            [each._replace(node=node) for each in some_events(0, 4)], each=6
        )
    journals = Journals(store.url, "holdfast")
    rows = read(notebook, store, form="ranges").collect()
    told = [(row.node, row.epoch, row.frames, row.events) for row in rows]
    assert sorted(told) == [("n1", "seed-1", 2, 12), ("n2", "seed-1", 2, 12)]
    pieces = [piece_of(row.asDict(), "holdfast") for row in rows]
    events = [read_piece(journals, piece, accepts_loss=False) for piece in pieces]
    assert sum(batch.num_rows for batches in events for batch in batches) == 24


def test_a_piece_is_the_same_after_it_was_a_row(store: ValkeyServer) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 10), each=3)
    writer.delete(*writer.entries()[4:6])
    journals = Journals(store.url, "holdfast")
    planner = Planner(journals, cores=1, accepts_loss=True)
    [piece] = planner.pieces({}, planner.advance({}, planner.newest(), None))
    assert piece.findings
    [row] = range_of(piece).to_pylist()
    assert piece_of(row, "holdfast") == piece


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, r'needs the store of the server: option\("url"'),
        ({"url": "x", "form": "rows"}, "no form rows; it has events and ranges"),
        ({"url": "x", "mostEvents": "5"}, "no option mostevents; it has url.*maxEventsPerTrigger"),
        ({"url": "x", "maxEventsPerTrigger": "0"}, "maxEventsPerTrigger is a positive number"),
        ({"url": "x", "maxTriggerDelay": "soon"}, "maxTriggerDelay is a number of seconds"),
        ({"url": "x", "failOnDataLoss": "no"}, "failOnDataLoss is true or false, not no"),
        ({"url": "x", "startingOffsets": "3"}, "startingOffsets is earliest, latest, or the JSON"),
    ],
)
def test_a_wrong_option_is_named_with_what_it_may_be(given: dict[str, str], words: str) -> None:
    with pytest.raises(PipelineFailed, match=words):
        SourceOptions.of(given)
    with pytest.raises(PipelineFailed, match=words):
        JournalSource(given).schema()


def test_a_stream_with_an_end_is_refused(store: ValkeyServer) -> None:
    source = JournalSource({"url": store.url, "endingOffsets": "{}"})
    with pytest.raises(PipelineFailed, match="a stream has no end"):
        source.streamReader(None)  # type: ignore[arg-type]


def test_missing_frames_stop_a_reader_and_it_says_how_to_go_on(
    notebook: "SparkSession", store: ValkeyServer
) -> None:
    from pyspark.errors import PySparkException

    writer = Writer(store)
    writer.write_all(some_events(0, 10), each=3)
    writer.delete(*writer.entries()[4:6])
    with pytest.raises(PySparkException, match=r"frames 5 to 6 are missing. Set .*failOnDataLoss"):
        read(notebook, store).count()
    # The others, and a row that says what is missing.
    assert read(notebook, store, failOnDataLoss=False).count() == 25


def test_a_store_that_was_emptied_stops_a_stream_and_it_says_how_to_go_on(
    notebook: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    writer = Writer(store)
    writer.write_all(some_events(0, 4), each=6)
    taken(notebook, store, tmp_path)
    store.ask("FLUSHALL")
    writer.epoch = "other-1"
    writer.write_all(some_events(4, 6), each=6)
    with pytest.raises(StreamingQueryException, match=r"before it was emptied. Begin"):
        taken(notebook, store, tmp_path)
    assert taken(notebook, store, tmp_path, failOnDataLoss=False) == [7]


@pytest.mark.parametrize("url", ["htp://127.0.0.1", "redis://127.0.0.1:x/0", "127.0.0.1:6379"])
def test_a_wrong_url_is_one_sentence(url: str) -> None:
    with pytest.raises(PipelineFailed, match="that is no store: it is redis://HOST") as failed:
        reader_of(url=url).partitions()
    assert "\n" not in str(failed.value)


def test_a_namespace_without_a_journal_is_named_with_the_reason(store: ValkeyServer) -> None:
    with pytest.raises(PipelineFailed, match="the namespace news has no journal: no server"):
        reader_of(url=store.url, namespace="news").partitions()
    with pytest.raises(PipelineFailed, match="the namespace news has no journal: no server"):
        stream_of(url=store.url, namespace="news").initialOffset()
    store.ask("HSET", RedisKeys("news").meta, "epoch", "seed-1")
    with pytest.raises(PipelineFailed, match="or its setting journal is off"):
        reader_of(url=store.url, namespace="news").partitions()


def reader_of(**options: str) -> Any:
    return JournalSource(options).reader(cast("Any", None))


def stream_of(**options: str) -> Any:
    return JournalSource(options).streamReader(cast("Any", None))


def test_a_store_that_does_not_answer_is_named(notebook: "SparkSession", tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    reader = notebook.read.format("holdfast_journal")
    with pytest.raises(PySparkException, match=r"nobody.*the store does not answer"):
        reader.load(f"unix://{tmp_path}/nobody").count()
