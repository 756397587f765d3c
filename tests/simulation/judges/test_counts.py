"""When the metrics of servers do not add up."""

from typing import Any

from tests.simulation.judges.counts import Counts, Page, Served, read
from tests.simulation.judges.excuses import Excuses


def page(
    *,
    accepted: int = 5,
    taken: int = 4,
    appended: int = 4,
    failures: int = 0,
    missing: int = 0,
    unaccounted: int = 0,
) -> Page:
    return read(f"""# HELP holdfast_entries_accepted Entries.
holdfast_messages_published_total 3.0
holdfast_entries_accepted_total {accepted}
holdfast_entries_restored_total 1
holdfast_entries_settled_total{{outcome="acked"}} 2
holdfast_entries_settled_total{{outcome="dead"}} 1
holdfast_entries_waiting 2
holdfast_entries_in_flight 1
holdfast_entries_unaccounted {unaccounted}
holdfast_work_failures_total {failures}
holdfast_log_entries_appended_total {appended}
holdfast_log_entries_missing_total{{from="1"}} {missing}
holdfast_log_entries_taken_total{{from="0"}} {taken}
holdfast_log_entries_taken_total{{from="1"}} {taken}
""")


class Server:
    began_at = 0.0


def faults(*pages: Page, served: Served | None = None, excuses: Excuses | None = None) -> list[str]:
    server: Any = Server()
    found = {place: (server, each) for place, each in enumerate(pages)}
    counts = Counts(found, served or Served(0, 9), excuses or Excuses())
    return counts.violations(50.0, count=len(pages))


def test_what_came_into_queues_has_left_or_is_there() -> None:
    assert faults(page()) == []
    assert faults(page(accepted=6)) == ["S9: server 0 had 7 entries, and knows of 3 and 3"]


def test_no_server_misses_an_entry_of_its_own() -> None:
    wrong = "S9: server 0 says that entries are unaccounted for"
    assert faults(page(unaccounted=1)) == [wrong]


def test_no_piece_of_work_fails() -> None:
    assert len(faults(page(failures=1))) == 1


def test_what_a_shard_has_appended_the_others_have_taken() -> None:
    assert faults(page(), page()) == []
    assert len(faults(page(appended=5), page())) == 1
    excuses = Excuses()
    excuses.add("freeze_store", 20.0, 1.0)
    assert faults(page(appended=5), page(), excuses=excuses) == []


def test_servers_have_accepted_what_clients_were_told_and_no_more_than_these_have_sent() -> None:
    assert faults(page(), served=Served(2, 3)) == []
    assert len(faults(page(), served=Served(4, 5))) == 1
    assert len(faults(page(), served=Served(1, 2))) == 1


def test_servers_also_accept_what_they_publish_by_themselves() -> None:
    assert faults(page(), served=Served(1, 2, own=1)) == []
    assert len(faults(page(), served=Served(1, 1, own=1))) == 1


def test_only_a_failover_of_the_store_leaves_a_gap_in_a_log() -> None:
    excuses = Excuses()
    excuses.add("kill_server", 20.0, 1.0)
    assert len(faults(page(missing=2), excuses=excuses)) == 1
    excuses.add("fail_over", 20.0, 1.0)
    assert faults(page(missing=2), excuses=excuses) == []
