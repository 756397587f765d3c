"""A delayed message counts as published once, when it is delivered, and a cancelled one as such."""

from pathlib import Path

from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.catalogue import REPORTS
from tests.pipeline.audited import findings_of, violations
from tests.pipeline.stored import store_events
from tests.unit.bayeux.publish.test_delays import cancel, delay, read, reader
from tests.unit.journal.test_delays import events, journaled
from tests.unit.pipeline.framed_events import one_run


def test_tables_count_a_delayed_message_once_and_a_cancelled_one_as_discarded(
    tmp_path: Path,
) -> None:
    server = journaled()
    writer = server.keeper.writer  # type: ignore[attr-defined]
    writer.begin_run(0.0)
    joe, sender = reader(server), server.client()
    delay(sender, "delivered")
    cancel(server, delay(sender, "cancelled"))
    sender.publish("/a", "at once")
    server.advance(1.3)
    assert (read(joe), read(joe)) == (["at once", "delivered"], [])
    writer.journal.write_books(100.0)
    lake = store_events(tmp_path, one_run(events(server)))
    assert violations(findings_of(lake)) == []
    with of_lake(lake) as tables:
        (funnel,) = tables.ask(REPORTS["funnel"]).by_name()
        states = tables.ask(
            "select state, count(*) as n from {life} group by state order by state", 10
        ).rows
    assert funnel["published"] == 2
    assert (funnel["handed"], funnel["acked"], funnel["discarded"]) == (2, 2, 1)
    # That a delay is over is a move, and makes no other copy.
    assert (funnel["copies"], funnel["moves"], funnel["open"]) == (3, 1, 0)
    assert funnel["share"] == round(2 / 3, 4)
    assert [tuple(each) for each in states] == [("acked", 2), ("discarded", 1), ("due", 1)]
