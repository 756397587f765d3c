"""With another aiohttp than the one that the fast lane was written for."""

import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.compose import serving
from holdfast.settings import Settings
from holdfast.web.front import fast_lane
from holdfast.web.http import aiohttp_parts
from tests.abuse.attacker import HANDSHAKE
from tests.serving import ROOT


@pytest.mark.parametrize(
    ("version", "is_supported"),
    [
        ("3.14.0", True),
        ("3.14.99", True),
        ("3.13.9", False),
        ("3.15.0", False),
        ("3.140.0", False),
        ("4.0.0", False),
    ],
)
def test_the_minor_version_says_whether_the_fast_lane_is_open(
    version: str, is_supported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aiohttp, "__version__", version)
    assert aiohttp_parts.is_supported() is is_supported


def test_the_version_that_is_installed_is_supported_and_pinned() -> None:
    assert aiohttp_parts.is_supported()
    assert '"aiohttp<3.15"' in (ROOT / "pyproject.toml").read_text()


async def test_with_another_version_of_aiohttp_the_fast_lane_is_closed_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(aiohttp, "__version__", "3.99.0")
    made: list[object] = []
    monkeypatch.setattr(fast_lane.FastLane, "__init__", lambda *_, **__: made.append(1))
    given: dict[str, Any] = {"port": 0, "data": tmp_path}
    jar = aiohttp.CookieJar(unsafe=True)
    with caplog.at_level(logging.WARNING):
        async with (
            serving(Settings(**given)) as url,
            aiohttp.ClientSession(url, cookie_jar=jar) as client,
        ):
            async with client.post("/cometd", json=[HANDSHAKE]) as response:
                (hello,) = await response.json()
            mine = {"clientId": hello["clientId"]}
            subscribe = {"channel": "/meta/subscribe", "subscription": "/a", **mine}
            async with client.post("/cometd", json=[subscribe]) as response:
                assert (await response.json())[0]["successful"]
            async with client.ws_connect("/cometd") as socket:
                await socket.send_json([{"channel": "/a", "data": 1, **mine}])
                assert (await socket.receive_json())[0]["data"] == 1
    assert made == []
    assert "fast_lane" in caplog.text


async def test_the_installed_version_does_not_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given: dict[str, Any] = {"port": 0, "data": tmp_path}
    with caplog.at_level(logging.WARNING):
        async with serving(Settings(**given)) as url:
            assert url.startswith("http://127.0.0.1:")
    assert caplog.text == ""
