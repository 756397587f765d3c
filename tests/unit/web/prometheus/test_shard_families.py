"""The metrics of what crosses between shards."""

from holdfast.delivery.ports.other_shards import LogFigures
from holdfast.web.prometheus.door_figures import DoorFigures
from holdfast.web.prometheus.shard_families import door_families_of, families_of


def test_every_figure_has_a_family_and_names_both_shards() -> None:
    figures = LogFigures(
        *(2, 10, 3, {0: 4, 1: 5}),
        skipped={0: 6},
        missing={0: 7},
        behind_s={0: 1.5},
        passed=8,
        beyond={1: 9},
    )
    found = {
        (sample.name.removeprefix("holdfast_log_"), *sample.labels.values()): sample.value
        for family in families_of(figures)
        for sample in family.samples
    }
    assert found == {
        ("entries_appended_total",): 10,
        ("entries_dropped_total",): 3,
        ("entries_taken_total", "0"): 4,
        ("entries_taken_total", "1"): 5,
        ("entries_skipped_total", "0"): 6,
        ("entries_missing_total", "0"): 7,
        ("entries_beyond_total", "1"): 9,
        ("behind_seconds", "2", "0"): 1.5,
        ("holdfast_linked_messages_total",): 8,
    }


def test_what_a_worker_has_passed_on_is_counted_by_receiver() -> None:
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in door_families_of(DoorFigures({1: 5}, {1: 2}))
        for sample in family.samples
    }
    assert found == {
        ("holdfast_requests_forwarded_total", "1"): 5,
        ("holdfast_connections_given_total", "1"): 2,
    }


def test_a_worker_on_a_host_among_others_names_it() -> None:
    *_, family = door_families_of(DoorFigures({}, {}, "a.example"))
    [sample] = family.samples
    assert (sample.name, sample.labels) == ("holdfast_shard_host", {"host": "a.example"})
