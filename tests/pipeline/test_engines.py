"""A cluster gives the same answers as one machine, on the same stored tables."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from holdfast.pipeline import on_spark
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.messages import LOST
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.reports.flow import FUNNEL
from holdfast.pipeline.reports.sums import recall
from holdfast.pipeline.scope import EVERYTHING, Scope
from holdfast.pipeline.verification import add_digests
from tests.pipeline.stored import store_events
from tests.pipeline.tales import DAY, KINDS, a_week, more, refusals, requests
from tests.unit.pipeline.events import START_US
from tests.unit.pipeline.framed_events import one_run
from tests.unit.pipeline.stories import acked, handed, refused_publishes, the_story

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON_A_DAY = Scope(START_US // 1000 + 5000, START_US // 1000 + DAY * 1000, channel="/orders")
OF_JOE = Scope(receiver="joe/1")


def store_everything(place: Path) -> Lake:
    """Tables in which every report finds something."""
    told = [*the_story(), *more(), *requests(), *refusals(), *a_week()]
    for n in range(10):
        told += [handed(n + 0.5, n, "eve/1"), acked(n + 0.7, n, "eve/1")]
    told += [refused_publishes(30, "publish_denied", "/orders", 3)]
    lost = {"origin": "n1", "channel": "/poison", "n": 1, "found_ts": START_US}
    return store_events(place, one_run(told), pa.Table.from_pylist([lost], LOST))


@pytest.mark.timeout(600)
@pytest.mark.beside
def test_a_cluster_gives_the_same_answers_as_one_machine(
    spark: "SparkSession", tmp_path: Path
) -> None:
    lake = store_everything(tmp_path)
    for scope, names in ((EVERYTHING, [*REPORTS]), (ON_A_DAY, KINDS), (OF_JOE, KINDS)):
        on_cluster = on_spark.of_lake(lake, spark, scope)
        with of_lake(lake, scope) as tables:
            for name in names:
                found = tables.ask(REPORTS[name])
                assert found.rows or scope != EVERYTHING, name
                assert on_cluster.ask(REPORTS[name]) == found, name


@pytest.mark.beside
def test_a_cluster_reads_no_file_that_was_changed(spark: "SparkSession", tmp_path: Path) -> None:
    lake = store_everything(tmp_path)
    add_digests(lake)
    on_cluster = on_spark.of_lake(lake, spark)
    [file] = lake.files("life")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert on_cluster.ask(REPORTS["throughput"]).rows
    with pytest.raises(PipelineFailed, match=f"{file} was changed after it was written"):
        on_cluster.ask(REPORTS["funnel"])


@pytest.mark.beside
def test_a_cluster_remembers_the_same_sums(spark: "SparkSession", tmp_path: Path) -> None:
    lake = store_everything(tmp_path)
    with of_lake(lake) as tables:
        found = tables.ask(FUNNEL)
        # The second time it adds up what the first one has written.
        for _ in range(2):
            on_cluster = on_spark.of_lake(lake, spark)
            recall(on_cluster, lake)
            assert on_cluster.ask(FUNNEL) == found
        recall(tables, lake)
        assert tables.ask(FUNNEL) == found
