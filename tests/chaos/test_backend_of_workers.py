"""Three workers ask one application, and nothing is lost or forbidden, whoever is killed."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.chaos.test_webhooks_of_workers import has_restarted
from tests.chaos.test_workers import Deployment
from tests.web.backend_members import CHANNELS, CLOSED, RIGHTS, Decider, Member
from tests.web.people import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WORKERS = 3
SECOND = 10
NAMES = ("ada", "bob", "eve", "kim")


@pytest.fixture
async def decider() -> AsyncIterator[Decider]:
    decider = Decider(*NAMES)
    await decider.open()
    yield decider
    await decider.close()


@pytest.fixture
def deployment(decider: Decider, tmp_path: Path) -> Iterator[Deployment]:
    rights = tmp_path / "rights.toml"
    rights.write_text(RIGHTS)
    given = ["--backend", json.dumps(decider.application.settings()), "--rights", str(rights)]
    made = Deployment(tmp_path, WORKERS, *given, "--channels", json.dumps(CHANNELS))
    yield made
    made.close()


async def test_nothing_is_lost_or_forbidden_when_workers_are_killed_or_restart(
    deployment: Deployment, decider: Decider
) -> None:
    members = [Member(lambda: deployment.url, name) for name in NAMES]
    try:
        for place in range(WORKERS):
            publishing = asyncio.gather(*(each.publish(SECOND) for each in members))
            await asyncio.sleep(0.3)
            os.kill(deployment.workers()[place], signal.SIGKILL)
            await publishing
            publishing = asyncio.gather(*(each.publish(SECOND) for each in members))
            await until(partial(has_restarted, deployment))
            await decider.fail(0.1)
            await publishing
        with decider.always():
            await asyncio.sleep(1.5)
            for each in members:
                await each.publish(1)
                await each.check()
            decider.application.table["subscribe", CLOSED] = {"allow": True}
            assert await members[0].history(CLOSED) == []
        errors = set().union(*(each.errors for each in members))
        assert "403:denied_by_backend:publish_denied" in errors
        assert not any(each.startswith("500") for each in errors), errors
    finally:
        for each in members:
            await each.__aexit__()
