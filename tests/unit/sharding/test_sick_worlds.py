"""What is not stored, and who has no name, beside stores that are frozen or full."""

from collections import Counter
from collections.abc import Callable
from unittest.mock import patch

import pytest

from holdfast.cluster.reading import LogReader
from holdfast.sharding.direct import DirectArrivals
from holdfast.sharding.early import Cause
from holdfast.sharding.kept_first import KeptFirst
from holdfast.sharding.passing import Passing
from tests.unit.sharding.sick_world import SickWorld

STEPS = 1200


def played(seed: int) -> SickWorld:
    world = SickWorld(seed)
    world.run(STEPS)
    return world


@pytest.mark.slow
def test_everybody_hears_everything_soon_and_in_order_beside_sick_stores() -> None:
    early: Counter[Cause] = Counter()
    sicknesses = dropped = 0
    for seed in range(12):
        world = played(seed)
        sicknesses += world.sicknesses
        for shard in world.shards.values():
            early += shard.member.early.counts
            dropped += shard.member.own.log.dropped
    assert sicknesses > 30
    assert {*early} == {*Cause}
    assert dropped == 0


def found_from(first: int, seeds: int = 40) -> str:
    """Return what the first of these worlds finds that finds anything."""
    for seed in range(first, first + seeds):
        try:
            played(seed)
        except AssertionError as error:
            return str(error)
    return ""


@pytest.mark.interpreted
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("what", "name", "broken", "found", "first"),
    # The seeds to begin with have found it; any change may make it another one.
    [
        # A store that takes nothing delays what is read for those that need no store.
        (LogReader, "_hear_ahead", lambda *_: None, "late|lacks", 7),
        # What an own store does not take for the log is lost.
        (Passing, "give_up", lambda _, entries: len(entries), "lacks", 2),
        # Messages wait for a log for ever.
        (DirectArrivals, "_give_up", lambda _: None, "late", 19),
        # Named sessions get them at once.
        (KeptFirst, "holds", lambda *_: False, "out of order", 1),
    ],
)
def test_what_does_not_go_on_beside_a_sick_store_is_found(
    what: type, name: str, broken: Callable[..., object], found: str, first: int
) -> None:
    with patch.object(what, name, broken):
        said = found_from(first)
    assert any(each in said for each in found.split("|"))
