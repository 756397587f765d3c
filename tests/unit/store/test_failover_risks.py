"""What a start and `holdfast doctor` say about failovers."""

import pytest

from holdfast.store.failover_risks import Surroundings, risks_of

ALONE = Surroundings(0)


@pytest.mark.parametrize("durability", ["memory", "everysec", "always"])
def test_a_server_without_replicas_has_no_failover(durability: str) -> None:
    assert risks_of(ALONE, durability) == []


@pytest.mark.parametrize(("durability", "count"), [("memory", 0), ("everysec", 1), ("always", 1)])
def test_a_failover_may_lose_what_only_the_primary_has(durability: str, count: int) -> None:
    said = risks_of(Surroundings(1), durability)
    assert len(said) == count
    assert all("Only durability replicas:n" in each for each in said)


def test_messages_that_replicas_confirm_are_safe_if_there_are_enough() -> None:
    assert risks_of(Surroundings(2), "replicas:2") == []
    [said] = risks_of(Surroundings(1), "replicas:2")
    assert "the store has 1 replica:" in said


@pytest.mark.parametrize("name", ["node_timeout_ms", "down_after_ms"])
def test_a_failover_must_begin_before_publishers_stop_waiting(name: str) -> None:
    assert risks_of(Surroundings(1, **{name: 3000}), "replicas:1") == []
    [said] = risks_of(Surroundings(1, **{name: 15_000}), "replicas:1")
    assert "is 15000" in said
    assert "Set it to 2000" in said


def test_a_primary_that_sentinels_cannot_reach_must_stop_accepting_messages() -> None:
    watched = Surroundings(1, down_after_ms=2000, min_replicas=0)
    assert "min-replicas-to-write is 0" in risks_of(watched, "always")[1]
    assert risks_of(watched, "replicas:1") == []
    stops = Surroundings(1, down_after_ms=2000, min_replicas=1)
    hidden = Surroundings(1, down_after_ms=2000)
    assert len(risks_of(stops, "always")) == len(risks_of(hidden, "always")) == 1
