"""A listener for Salesforce's Streaming API meets the stand-in of docs/how-to/salesforce.md."""

import asyncio
import json
import os
import subprocess
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from docs.examples.salesforce.salesforce import Salesforce, stand_in
from tests.clients.node_client import MODULES, require_node
from tests.pages import ROOT, blocks
from tests.serving import environment

LISTENER = ROOT / "docs" / "examples" / "salesforce" / "listener.mjs"
CHANNEL = "/event/Order__e"
LIMIT_S = 60

# The server of the stand-in is traced by its own tests.
pytestmark = pytest.mark.untraced


@pytest_asyncio.fixture
async def salesforce() -> AsyncIterator[Salesforce]:
    async with stand_in() as running:
        yield running


class Listener:
    """The program, and what it prints."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def says(self, *lines: object) -> None:
        assert self._process.stdout is not None
        async with asyncio.timeout(LIMIT_S):
            heard = [(await self._process.stdout.readline()).decode().strip() for _ in lines]
        assert heard == [str(line) for line in lines]

    async def says_until(self, last: str) -> list[str]:
        """What it says up to this line."""
        assert self._process.stdout is not None
        heard = [""]
        async with asyncio.timeout(LIMIT_S):
            while heard[-1] != last:
                heard.append((await self._process.stdout.readline()).decode().strip())
        return heard[1:]


@asynccontextmanager
async def listening(salesforce: Salesforce, folder: Path) -> AsyncIterator[Listener]:
    require_node()
    modules = folder / "node_modules"
    if not modules.exists():
        modules.symlink_to(MODULES)
        (folder / "listener.mjs").write_text(LISTENER.read_text("utf-8"))
    process = await asyncio.create_subprocess_exec(
        "node",
        folder / "listener.mjs",
        cwd=folder,
        env={**os.environ, "SALESFORCE_URL": salesforce.url},
        stdout=PIPE,
        stderr=STDOUT,
    )
    try:
        yield Listener(process)
    finally:
        process.kill()
        await process.communicate()


async def publish(salesforce: Salesforce, item: str) -> int:
    data = {"schema": "vN0", "payload": {"Item__c": item}, "event": {"EventApiName": "Order__e"}}
    return await salesforce.publish(CHANNEL, data)


def event(item: str) -> str:
    return json.dumps({"Item__c": item}, separators=(",", ":"))


async def test_a_listener_goes_on_where_it_was(salesforce: Salesforce, tmp_path: Path) -> None:
    await publish(salesforce, "before it came")
    async with listening(salesforce, tmp_path) as listener:
        await listener.says("listening")
        for item in ("apple", "pear"):
            await publish(salesforce, item)
            await listener.says(event(item))
    await publish(salesforce, "missed")
    async with listening(salesforce, tmp_path) as listener:
        heard = await listener.says_until(event("missed"))
        # The listener may have been killed before it had stored the last place.
        assert {*heard} <= {"listening", event("pear"), event("missed")}
        await publish(salesforce, "plum")
        await listener.says_until(event("plum"))


async def test_a_listener_that_is_forgotten_misses_nothing(
    salesforce: Salesforce, tmp_path: Path
) -> None:
    async with listening(salesforce, tmp_path) as listener:
        await listener.says("listening")
        await publish(salesforce, "apple")
        await listener.says(event("apple"))
        salesforce.forget_clients()
        await publish(salesforce, "pear")
        assert (await listener.says_until(event("pear")))[0] == "403::Unknown client"


async def test_a_place_expires(salesforce: Salesforce, tmp_path: Path) -> None:
    old = await publish(salesforce, "old")
    (tmp_path / "place").write_text(str(old))
    await salesforce.let_events_expire()
    await publish(salesforce, "new")
    async with listening(salesforce, tmp_path) as listener:
        heard = await listener.says_until(event("new"))
    assert heard[0] == (
        f"400::The replayId {{{old}}} you provided was invalid. Please provide a valid ID, -2 to "
        "replay all events, or -1 to replay only new events."
    )
    assert event("old") not in heard


async def test_a_listener_whose_login_ends_logs_in_again(
    salesforce: Salesforce, tmp_path: Path
) -> None:
    async with listening(salesforce, tmp_path) as listener:
        await listener.says("listening")
        await publish(salesforce, "apple")
        await listener.says(event("apple"))
        salesforce.end_logins()
        await publish(salesforce, "pear")
        heard = await listener.says_until(event("pear"))
    assert heard[0] == "401::Authentication invalid"


def test_the_test_of_the_page_passes_as_it_stands_there(tmp_path: Path) -> None:
    require_node()
    page = blocks(ROOT / "docs" / "how-to" / "salesforce.md")
    [code] = [block.text for block in page if block.language == "python"]
    for file in (LISTENER, LISTENER.with_name("salesforce.py")):
        (tmp_path / file.name).write_text(file.read_text("utf-8"))
    (tmp_path / "node_modules").symlink_to(MODULES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    (tmp_path / "test_listener.py").write_text(code)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


HANDSHAKE = {"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": []}


@pytest.mark.parametrize(
    ("path", "headers", "said"),
    [
        ("/cometd", {}, {"error": "400::API version in the URI is mandatory."}),
        ("/cometd/22.0", {}, {"error": "400::Unsupported API version."}),
        ("/cometd/60.0", {}, {"error": "403::Handshake denied"}),
        ("/cometd/60.0", {"Authorization": "OAuth x"}, {"error": "403::Handshake denied"}),
    ],
)
async def test_a_handshake_is_denied(
    salesforce: Salesforce, path: str, headers: Mapping[str, str], said: Mapping[str, Any]
) -> None:
    async with (
        aiohttp.ClientSession(headers=headers) as client,
        client.post(salesforce.url + path, json=[HANDSHAKE]) as response,
    ):
        [reply] = await response.json()
    assert reply["error"].startswith(said["error"])
    assert reply["advice"] == {"reconnect": "none"}
