"""What the judge of jobs knows, without a world."""

from types import SimpleNamespace
from typing import Any

from tests.simulation.jobs import CHANNEL, Jobs
from tests.simulation.oracle import Publish
from tests.simulation.workers import Hand

ACCEPTED = Publish("boss", 1, CHANNEL, 0.0, id="a-1")


def judge() -> Jobs:
    oracle: Any = SimpleNamespace(
        now=lambda: 1.0, published={"m": ACCEPTED}, may_be_gone=lambda _: False
    )
    books: Any = SimpleNamespace(letters=lambda: [], work=lambda: [])
    found = Jobs(oracle, books)
    found.taken("joe", Hand("m", 1, 1.0), is_marked=False)
    return found


def test_a_job_is_lost_if_nobody_has_said_what_became_of_it() -> None:
    assert judge().violations() == ["jobs: m, accepted as a-1, is not done"]


def test_a_job_is_done_once_a_worker_says_so_though_the_reply_is_held_to_the_end() -> None:
    found = judge()
    found.says("joe", [Hand("m", 1, 1.0)])
    assert found.violations() == []
