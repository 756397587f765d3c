"""Hosts serve as they are installed, which is compiled where that is possible."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from bench.processes import answers, reserved_port
from tests.chaos.twin import LIMIT_S
from tests.serving import ROOT, environment

pytestmark = pytest.mark.slow

DOORS = ("127.0.0.1", "127.0.0.2")
POLLING = "long-polling"
HELLO = {"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": [POLLING]}
AND_THEN: list[dict[str, object]] = [
    {"channel": "/meta/subscribe", "subscription": "/a"},
    {"channel": "/a", "data": 1},
    {"channel": "/meta/connect", "connectionType": POLLING},
]


@pytest.fixture
def urls(tmp_path: Path) -> Iterator[list[str]]:
    """Where two hosts serve, each with a shard."""
    words = ["-m", "bench.many_hosts", "--hosts", "2", "--shards", "2", "--data", str(tmp_path)]
    log = tmp_path / "log"
    with reserved_port() as port, log.open("wb") as errors:
        hosts = subprocess.Popen(
            [sys.executable, *words, "--port", str(port)],
            cwd=ROOT,
            env=environment() | {"HOLDFAST_SUPERVISOR": "on"},
            stderr=errors,
        )
        urls = [f"http://{door}:{port}" for door in DOORS]
        try:
            ends_at = time.monotonic() + LIMIT_S
            while not all(answers(f"{url}/readyz?all=1") for url in urls):
                assert time.monotonic() < ends_at, log.read_text()
                time.sleep(0.1)
            yield urls
        finally:
            hosts.terminate()
            hosts.wait()
    assert "Traceback" not in log.read_text()


async def test_installed_hosts_serve_sessions_of_each_other(urls: list[str]) -> None:
    for url, other in (urls, urls[::-1]):
        await _goes_on_at(url, other)


async def _goes_on_at(url: str, other: str) -> None:
    """Begin a session at one host, and go on with it at another one."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        async with http.post(f"{url}/cometd", json=[HELLO]) as response:
            [greeted] = await response.json(content_type=None)
            shown = response.headers.getall("Set-Cookie")
        assert greeted["successful"]
        messages = [{**each, "clientId": greeted["clientId"]} for each in AND_THEN]
        cookies = {"Cookie": "; ".join(each.partition(";")[0] for each in shown)}
        async with http.post(f"{other}/cometd", json=messages, headers=cookies) as response:
            heard = await response.json(content_type=None)
    assert all(each.get("successful", True) for each in heard), heard
    assert [each["data"] for each in heard if "data" in each] == [1]
