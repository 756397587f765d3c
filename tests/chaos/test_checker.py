"""The checker finds everything that can go wrong, and nothing where all went well."""

import pytest

from tests.chaos.bad_histories import BAD
from tests.chaos.checker import EXAMPLES, Invariant, check
from tests.chaos.good_histories import GOOD
from tests.chaos.history import Phase
from tests.chaos.stories import Tale, story_of

ERROR = "user.update.error"


@pytest.mark.parametrize("tale", GOOD)
def test_a_good_history_is_valid(tale: Tale) -> None:
    result = story_of(tale).result()
    assert result.is_valid, result.report()


@pytest.mark.parametrize(("tale", "invariant"), BAD)
def test_a_bad_history_is_caught(tale: Tale, invariant: Invariant) -> None:
    result = story_of(tale).result()
    assert invariant in result.broken, result.report()


def test_every_invariant_has_been_broken() -> None:
    assert {invariant for _, invariant in BAD} == set(Invariant)


# What it says


def test_the_result_counts_messages_and_copies() -> None:
    story = story_of(lambda story: None)
    story.publish("p-1", "p-2", "p-4")
    story.publish("p-3", outcome=Phase.INFO)
    story.publish("p-5", life_ms=1)
    story.answer("p-1", "p-2", "p-3")
    story.settle("p-1")
    story.settle("p-2", code=ERROR)
    story.answer("p-3", redelivered=1)
    story.fault("kill server")
    story.hold()
    story.scan(waiting=("p-3",), dead=("p-2",))
    result = story.result()
    assert (result.attempts, result.acked, result.recovered) == (5, 4, 1)
    assert (result.delivered, result.processed, result.duplicated) == (3, 1, 1)
    assert (result.dead, result.pending, result.held, result.expired) == (1, 1, 1, 1)
    assert (result.lost, result.faults) == (1, 1)


def test_what_the_durability_allows_to_be_lost_is_counted_apart() -> None:
    story = story_of(lambda story: None)
    story.publish_while_a_replica_lags("p-1", "p-2", may_lose=True)
    story.pause(1)
    story.publish("p-3")
    story.get("p-2")
    result = story.result()
    assert (result.forgotten, result.lost) == (1, 1)


@pytest.mark.parametrize(
    ("missing", "part"),
    [({1}, "prefix"), ({2}, "middle"), ({3}, "postfix"), ({1, 2, 3}, "postfix")],
)
def test_the_report_says_where_messages_are_missing(missing: set[int], part: str) -> None:
    story = story_of(lambda story: None)
    story.publish("p-1", "p-2", "p-3")
    story.get(*(f"p-{serial}" for serial in (1, 2, 3) if serial not in missing))
    assert f"in the {part} of" in story.result().report()


def test_the_report_has_the_counts_and_some_examples() -> None:
    story = story_of(lambda story: None)
    story.publish(*(f"p-{serial}" for serial in range(1, 100)))
    lines = story.result().report().splitlines()
    assert lines[0].startswith("valid? false: attempts 99 acked 99")
    assert "lost 99" in lines[0]
    assert lines[1].startswith("99 x I1")
    assert len(lines) == 2 + EXAMPLES


def test_an_empty_history_is_valid() -> None:
    assert check([]).is_valid
