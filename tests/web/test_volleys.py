"""The bench sends volleys of every small message that a client may send."""

from pathlib import Path
from typing import Any

import pytest

from bench.stalls.volleys import SMALL
from holdfast.bayeux.publish.point_to_point import PTP
from holdfast.bayeux.services.topic_answers import ACTIONS, TOPICS
from holdfast.bayeux.state.service_channels import Services
from holdfast.compose import serving
from tests.unit.login.signing import SECRET
from tests.web.people import settings


async def test_there_are_volleys_for_each_service_and_each_of_its_actions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = {PTP}
    add = Services.add

    def note(self: Services, pattern: str, service: Any) -> None:
        services.add(pattern)
        add(self, pattern, service)

    monkeypatch.setattr(Services, "add", note)
    (tmp_path / "key").write_bytes(SECRET)
    async with serving(settings(tmp_path, chat=True, login_keys=str(tmp_path / "key"))):
        assert TOPICS in services
    calls = services - {TOPICS} | {f"{TOPICS} {action}" for action in ACTIONS}
    assert {name for name in SMALL if name.startswith("/service/")} == calls


def test_volleys_that_erase_the_topics_come_last_and_each_finds_them() -> None:
    erasing = [name for name, small in SMALL.items() if "erase" in name or small.needs_topics]
    assert [each for each in erasing if SMALL[each].needs_topics] == erasing
    assert [*SMALL][-len(erasing) :] == erasing
