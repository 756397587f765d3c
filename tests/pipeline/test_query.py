"""The position belongs to the tables: a checkpoint of Spark neither moves it nor is trusted."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.pipeline.failures import JournalFailed, PipelineFailed
from holdfast.pipeline.ingest import IngestProgress, Source, take_what_is_there
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.query import IngestQuery, _for_users
from holdfast.pipeline.source.journal_source import REMEDIES
from holdfast.pipeline.source.planning import Offset, Planner
from holdfast.pipeline.source.ranges import range_of
from holdfast.pipeline.source.streams import Journals
from holdfast.pipeline.source.taking import Taken
from tests.pipeline.journals import Writer
from tests.pipeline.others import asked
from tests.pipeline.test_source import some_events
from tests.store.servers import ValkeyServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

COUNTED = "select count(*), count(distinct (node, seq, pos)) from events"


def ingest(spark: "SparkSession", store: ValkeyServer, place: Path) -> IngestProgress:
    return take_what_is_there(spark, Source(store.url), Lake(place), lambda taken: None)


def remove(place: Path, other: Path) -> None:
    shutil.rmtree(place)


def exchange(place: Path, other: Path) -> None:
    remove(place, other)
    shutil.copytree(other, place)


def tear(place: Path, other: Path) -> None:
    for file in place.rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:3])


def test_a_checkpoint_that_is_missing_torn_or_of_another_lake_changes_nothing(
    spark: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    writer, lake = Writer(store), Lake(tmp_path / "lake")
    checkpoint, other = lake.root / "_checkpoint", tmp_path / "other"
    writer.write_all(some_events(0, 4), each=6)
    ingest(spark, store, lake.root)
    writer.write_all(some_events(4, 8), each=6)
    ingest(spark, store, other)
    assert checkpoint.exists()
    events = 24
    spoils: list[Callable[[Path, Path], None]] = [remove, exchange, tear]
    for n, spoil in enumerate(spoils):
        spoil(checkpoint, other / "_checkpoint")
        writer.write_all(some_events(8 + n, 9 + n), each=6)
        ingest(spark, store, lake.root)
        events += 3
        assert asked(lake, COUNTED) == (events, events)
    assert lake.state() == 3


def test_a_batch_that_spark_gives_again_is_taken_once(
    spark: "SparkSession", store: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, lake = Writer(store), Lake(tmp_path / "lake")
    writer.write_all(some_events(0, 4), each=6)
    take: Callable[..., None] = IngestQuery._take_one

    def take_twice(query: IngestQuery, *batch: Any) -> None:
        for _ in range(2):
            take(query, *batch)

    monkeypatch.setattr(IngestQuery, "_take_one", take_twice)
    assert ingest(spark, store, lake.root) == IngestProgress(1, 12)
    assert (asked(lake, COUNTED), lake.state()) == ((12, 12), 0)


def test_a_failure_in_a_batch_is_raised_as_it_is(
    spark: "SparkSession", store: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Writer(store).write_all(some_events(0, 4), each=6)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("holdfast.pipeline.ingest.write_batch", fail)
    with pytest.raises(OSError, match="No space left"):
        ingest(spark, store, tmp_path / "lake")


def test_missing_frames_stop_an_ingest_with_the_remedy_of_the_command(
    spark: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 10), each=3)
    writer.delete(*writer.entries()[4:6])
    with pytest.raises(PipelineFailed, match=r"^the journal of node n1: frames 5 to 6 are missing"):
        ingest(spark, store, tmp_path / "lake")
    with pytest.raises(PipelineFailed, match=r"Use --accept-loss to continue without them; the"):
        ingest(spark, store, tmp_path / "lake")


@pytest.mark.parametrize("kind", REMEDIES)
def test_users_of_the_command_are_told_its_options_and_not_those_of_the_source(
    kind: type[JournalFailed],
) -> None:
    assert _for_users(f"it is so. {REMEDIES[kind]}") == str(kind("it is so"))


class Planned:
    """The ranges of three batches, and the offsets between them."""

    def __init__(self, store: ValkeyServer) -> None:
        writer = Writer(store)
        writer.write_all(some_events(0, 9), each=3)
        planner = Planner(Journals(store.url, "holdfast"), cores=1, accepts_loss=False)
        self.offsets: list[Offset] = [{}]
        self.batches: list[Taken] = []
        for _ in range(3):
            start = self.offsets[-1]
            end = planner.advance(start, planner.newest(), 9)
            rows = [range_of(piece).to_pylist()[0] for piece in planner.pieces(start, end)]
            self.offsets.append(end)
            self.batches.append(Taken.of([(None, json.dumps(row)) for row in rows]))


def test_a_batch_ends_where_the_next_one_begins(store: ValkeyServer) -> None:
    planned = Planned(store)
    for batch, start, end in zip(
        planned.batches, planned.offsets, planned.offsets[1:], strict=False
    ):
        assert batch.end(start) == end
        # The tables have it already.
        assert batch.end(end) is None
    assert planned.batches[0].end(planned.offsets[3]) is None


def test_a_batch_of_another_place_in_the_journal_is_refused(store: ValkeyServer) -> None:
    planned = Planned(store)
    for batch, start in ((1, 0), (2, 0), (2, 1)):
        with pytest.raises(PipelineFailed, match="does not belong to these tables"):
            planned.batches[batch].end(planned.offsets[start])
    both = Taken([], [*planned.batches[0].ranges, *planned.batches[1].ranges])
    with pytest.raises(PipelineFailed, match="does not belong to these tables"):
        both.end(planned.offsets[1])
    assert both.end({}) == planned.offsets[2]


def test_a_batch_without_ranges_is_none() -> None:
    assert Taken.of([]).end({}) is None
