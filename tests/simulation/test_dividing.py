"""What the judges are told of a division."""

import random
from types import SimpleNamespace
from typing import Any

from tests.simulation.dividing import Division
from tests.simulation.judges.excuses import Excuses


def test_a_division_that_is_over_leaves_other_troubles_their_times() -> None:
    others = [(1.0, 2.0), (11.0, 14.0), (90.0, 95.0)]
    oracle = SimpleNamespace(lost_links=[*others], lost_contacts=[*others])
    world = SimpleNamespace(now=10.0)
    stage: Any = SimpleNamespace(
        world=world, random=random.Random(1), oracle=oracle, excuses=Excuses()
    )
    deployment: Any = SimpleNamespace(rules={})
    division = Division(stage, deployment)
    division._disturb()
    world.now = 12.0
    division._settle()
    for times in (oracle.lost_links, oracle.lost_contacts):
        *before, (begin, end) = times
        assert before == others
        assert begin == 10.0
        assert 12.0 <= end < 40.0
