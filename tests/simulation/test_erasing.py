"""What the judge of erasures knows, without a world."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.simulation.erasing import CHANNEL, Erasures
from tests.simulation.oracle import Publish


@pytest.mark.parametrize(
    ("begun_at", "accepted_at", "is_wrong"),
    [(5.0, 6.0, False), (7.5, 8.0, True), (1.0, 2.0, True)],
    ids=["published while it is erased", "published afterwards", "accepted before"],
)
def test_only_what_is_published_during_an_erasure_may_come_behind_its_event(
    begun_at: float, accepted_at: float, is_wrong: bool
) -> None:
    publish = Publish("p", 1, CHANNEL, begun_at, id="1", accepted_at=accepted_at)
    oracle: Any = SimpleNamespace(
        now=lambda: oracle.at,
        published={"m": publish},
        at=1.0,
        may_have_lost=lambda *_: False,
    )
    judge = Erasures(oracle)
    judge.expects("joe")
    judge.asks("joe")
    judge.subscribed("joe")
    oracle.at = 3.0
    erasure = judge.erases(CHANNEL, is_forced=False)
    oracle.at = 7.0
    judge.ended("joe")
    judge.answered(erasure, is_done=True)
    oracle.at = 9.0
    judge.heard("joe", "m")
    found = [each for each in judge.violations() if "without a subscription" in each]
    assert bool(found) is is_wrong
