"""Targets for attacks, each checked when the attack is over."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.abuse.target import Target
from tests.serving import Servers
from tests.slowness import times_slower

# Limits that tests can reach, and times that they can wait for: longer ones where everything is
# slow, so that no client loses its session between two requests.
CLOSE_LIMITS = {
    "timeout": 5000 * round(times_slower(most=4.0)),
    "max_interval": 3000 * round(times_slower(most=4.0)),
    "request_timeout": 10_000,
    "write_timeout": 500,
    # The hosts in requests of attackers that care for something else.
    "host_name": ["holdfast.test", "h", "a"],
    "max_queue_bytes": 8 * 1024 * 1024,
}
IMPATIENT = {"request_timeout": 500}
# For sessions that send much without a connect, which takes long on a slow machine.
PATIENT = {"timeout": 60_000, "max_interval": 60_000}
FRONT_ENDS = [True, False]

MakeTarget = Callable[..., Target]


@pytest.fixture
def target_with(servers: Servers) -> Iterator[MakeTarget]:
    """A function that makes targets with further settings."""
    targets: list[Target] = []

    def make(**settings: Any) -> Target:
        target = Target(servers.with_settings({**CLOSE_LIMITS, **settings}))
        targets.append(target)
        return target

    yield make
    for target in targets:
        target.check_unharmed()


@pytest.fixture
def target(target_with: MakeTarget) -> Target:
    """A server with short deadlines."""
    return target_with()


@pytest.fixture(params=FRONT_ENDS, ids=["fast lane", "ordinary front end"])
def either_front_end(target_with: MakeTarget, request: pytest.FixtureRequest) -> Target:
    """The target, through each of the two front ends."""
    return target_with() if request.param else target_with(fast_lane=False)
