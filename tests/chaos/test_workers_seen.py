"""What operators see of several workers: which process is which, and how each of them is."""

import os
import re
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.web.admin.paths import API
from holdfast.web.admin.tokens import OPERATOR_FILE
from tests.chaos.test_workers import (
    Deployment,
    children,
    deployed,
    ports_in_a_row,
    traffic,
    until,
)
from tests.web.people import until as until_async

pytestmark = pytest.mark.slow  # each starts several processes

Row = dict[str, Any]


class Operator:
    """Asks any worker."""

    def __init__(self, deployment: Deployment, http: aiohttp.ClientSession) -> None:
        self._http = http
        token = (deployment.data / OPERATOR_FILE).read_text().strip()
        self._headers = {"Authorization": f"Bearer {token}"}

    async def get(self, path: str) -> Row:
        # A connection of its own, which any worker may accept.
        url = f"/admin{API}{path}"
        async with self._http.get(url, headers=self._headers | {"Connection": "close"}) as response:
            found: Row = await response.json()
            return found

    async def shards(self) -> list[Row]:
        rows: list[Row] = (await self.get("/shards")).get("items", [])
        return rows

    async def showing(self, shard: int, **expected: object) -> list[Row]:
        """Return what a worker says as soon as it says this of a shard: others may know less."""
        rows: list[Row] = []

        async def shows() -> bool:
            rows[:] = await self.shards()
            return bool(rows) and all(rows[shard][name] == each for name, each in expected.items())

        await until_async(shows)
        return rows


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


async def test_each_process_and_each_worker_can_be_told_from_the_others(tmp_path: Path) -> None:
    async with (
        deployed(tmp_path, 2) as deployment,
        traffic(deployment),
        aiohttp.ClientSession(deployment.url) as http,
    ):
        ada, supervisor = Operator(deployment, http), deployment.process.pid
        assert name_of(supervisor) == "holdfast"
        assert [*map(name_of, children(supervisor))] == ["holdfast-import"]
        rows = await ada.showing(1, state="serving", links=1)
        assert [name_of(each["pid"]) for each in rows] == ["holdfast/0", "holdfast/1"]
        assert {each["pid"] for each in rows} == {*deployment.workers()}
        assert [each["restarts"] for each in rows] == [0, 0]

        os.kill(rows[1]["pid"], signal.SIGKILL)
        again = await ada.showing(1, restarts=1, last_end="signal 9", state="serving", links=1)
        assert again[0]["pid"] == rows[0]["pid"]
        assert name_of(again[1]["pid"]) == "holdfast/1"
        assert again[1]["since"] > rows[1]["since"]

        assert (await deployment.restart()) == {"done": True}
        # It becomes a new program then.
        await until(lambda: name_of(supervisor) == "holdfast")
        await ada.showing(1, restarts=0, state="serving")


async def test_others_say_that_a_worker_ends_again_and_again(tmp_path: Path) -> None:
    first = ports_in_a_row(2)
    url = f"http://127.0.0.1:{first}"
    async with (
        deployed(tmp_path, 2, "--own-port", str(first)) as deployment,
        aiohttp.ClientSession(url) as http,
    ):
        ada = Operator(deployment, http)
        [_, second] = await ada.showing(1, state="serving")
        (tmp_path / "broken").touch()
        os.kill(second["pid"], signal.SIGKILL)

        rows: list[Row] = []

        async def is_seen() -> bool:
            rows[:] = await ada.shards()
            return bool(rows) and rows[1]["state"] == "away" and rows[1]["restarts"] > 2

        await until_async(is_seen)
        [_, row] = rows
        assert (row["pid"], row["last_end"]) == (None, "exit code 2")
        assert row["since"] > second["since"]
        async with http.get("/metrics") as response:
            text = await response.text()
        assert 'holdfast_shard_answers{shard="1"} 0.0' in text
        [count] = re.findall(r'holdfast_shard_restarts_total{shard="1"} (.*)', text)
        assert float(count) > 2
        assert "shard 1 cannot be reached since" in (await ada.get("/now"))["sentence"]
        (tmp_path / "broken").unlink()
        await ada.showing(1, state="serving")


async def test_a_frozen_worker_is_silent_and_others_say_how_far_it_is_behind(
    tmp_path: Path,
) -> None:
    first = ports_in_a_row(3)
    url = f"http://127.0.0.1:{first}"
    # Its supervisor is patient.
    given = f"--own-port {first} --frozen-timeout 600000"
    async with (
        deployed(tmp_path, 3, *given.split()) as deployment,
        traffic(deployment) as flowing,
        aiohttp.ClientSession(url) as http,
    ):
        ada = Operator(deployment, http)
        [*_, third] = await ada.showing(2, state="serving")
        os.kill(third["pid"], signal.SIGSTOP)
        try:

            async def is_seen() -> bool:
                now = await ada.get("/now")
                row = now["shards"]["items"][2]
                told = now["sentence"].startswith("shard 2 does not answer")
                return row["state"] == "silent" and row["pid"] is None and told

            await until_async(is_seen)
        finally:
            os.kill(third["pid"], signal.SIGCONT)
        await ada.showing(2, state="serving", pid=third["pid"])
        await flowing.flows()
