"""What a start and `holdfast doctor` say about failovers."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.store.links.failover_risks import Surroundings, answering, risks_of
from holdfast.store.links.primary import SentinelsView

ALONE = Surroundings(0)
IN_CLUSTER = Surroundings(1, is_in_cluster=True)


def behind_sentinels(*, down_after_ms: int = 2000, count: int = 3, named: int = 3) -> Surroundings:
    return Surroundings(1, sentinels=SentinelsView(down_after_ms, count, named), min_replicas=1)


@pytest.mark.parametrize("durability", ["memory", "everysec", "always"])
def test_a_server_without_replicas_has_no_failover(durability: str) -> None:
    assert risks_of(ALONE, durability) == []


def test_a_replica_counts_that_has_answered_lately() -> None:
    def listed(*lags: int) -> int:
        about = {
            f"slave{n}": f"ip=127.0.0.1,port=1,state=online,offset=1,lag={lag}"
            for n, lag in enumerate(lags)
        }
        return answering({"connected_slaves": str(len(lags)), **about})

    assert [listed(), listed(1), listed(4), listed(0, 59)] == [0, 1, 0, 1]
    assert answering({"connected_slaves": "2"}) == 2
    assert answering({}) == 0


@pytest.mark.parametrize(("durability", "count"), [("memory", 0), ("everysec", 1), ("always", 1)])
def test_a_failover_may_lose_what_only_the_primary_has(durability: str, count: int) -> None:
    said = risks_of(IN_CLUSTER, durability)
    assert len(said) == count
    assert all("Only durability replicas:n" in each for each in said)


def test_messages_that_replicas_confirm_are_safe_if_there_are_enough() -> None:
    assert risks_of(replace(IN_CLUSTER, replicas=2), "replicas:2") == []
    [said] = risks_of(IN_CLUSTER, "replicas:2")
    assert "the store has 1 replica:" in said


@pytest.mark.parametrize(
    "within",
    [
        lambda ms: replace(IN_CLUSTER, node_timeout_ms=ms),
        lambda ms: behind_sentinels(down_after_ms=ms),
    ],
    ids=["cluster", "sentinels"],
)
def test_a_failover_must_begin_before_publishers_stop_waiting(
    within: Callable[[int], Surroundings],
) -> None:
    assert risks_of(within(3000), "replicas:1") == []
    [said] = risks_of(within(15_000), "replicas:1")
    assert "is 15000" in said
    assert "Set it to 2000" in said


@pytest.mark.parametrize("durability", ["memory", "everysec", "replicas:1"])
def test_replicas_that_take_over_unnoticed_are_a_risk_whatever_the_durability(
    durability: str,
) -> None:
    assert "may go on beside another one" in risks_of(Surroundings(1), durability)[-1]


@pytest.mark.parametrize(("count", "named"), [(3, 1), (4, 2), (5, 2)])
def test_most_sentinels_must_be_named(count: int, named: int) -> None:
    [said] = risks_of(behind_sentinels(count=count, named=named), "replicas:1")
    assert f"names {named} of {count} Sentinels" in said
    assert risks_of(behind_sentinels(count=count, named=count // 2 + 1), "replicas:1") == []


def test_a_primary_that_sentinels_cannot_reach_must_stop_accepting_messages() -> None:
    watched = replace(behind_sentinels(), min_replicas=0)
    assert "min-replicas-to-write is 0" in risks_of(watched, "always")[1]
    assert risks_of(watched, "replicas:1") == []
    hidden = replace(watched, min_replicas=None)
    assert len(risks_of(behind_sentinels(), "always")) == len(risks_of(hidden, "always")) == 1
