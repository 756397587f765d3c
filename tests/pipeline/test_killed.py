"""An ingest that is killed at any moment loses nothing and stores nothing twice."""

from typing import TYPE_CHECKING

import pytest

from holdfast.pipeline.ingest import Source, take_what_is_there
from tests.pipeline.audited import findings_of, violations
from tests.pipeline.doomed import KILLS, Doomed
from tests.pipeline.others import asked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.timeout(120 + 60 * KILLS)
@pytest.mark.beside
def test_every_event_is_stored_once_although_ingests_were_killed(
    doomed: Doomed, spark: "SparkSession"
) -> None:
    assert (doomed.wait(), doomed.killed) == ("", KILLS)
    lake, told = doomed.lake, doomed.events
    take_what_is_there(spark, Source(doomed.store.url), lake, lambda taken: None)
    counted = asked(lake, "select count(*), count(distinct (epoch, seq, pos)) from events")
    assert counted == (len(told), len(told))
    lives = asked(lake, "select count(*), count(distinct (msg, receiver, generation)) from life")
    assert lives == (20, 20)
    assert violations(findings_of(lake)) == []
