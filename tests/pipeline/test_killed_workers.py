"""Traffic of all workers while workers are killed: the tables tell of each message.

HOLDFAST_BOOKS says how often workers are killed, and HOLDFAST_BOOKS_SEED when.
"""

import asyncio
import os
import re
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.flow import FUNNEL
from holdfast.pipeline.reports.requests import REQUESTS as REQUESTS_REPORT
from tests.clients.deployment import Deployment, deployed
from tests.pipeline.audited import findings_of, violations
from tests.pipeline.stubborn import (
    CHORES,
    DELAYED_EACH,
    MESSAGES,
    NAMES,
    QUESTIONS,
    Town,
)
from tests.pipeline.test_workers import ingested

pytestmark = pytest.mark.untraced

KILLS = int(os.environ.get("HOLDFAST_BOOKS", "2"))
SEED = int(os.environ.get("HOLDFAST_BOOKS_SEED", "5"))
WORKERS = 2
SETTINGS = {
    **{"workers": WORKERS, "journal": True, "max_interval": 2000},
    "channels": {name: {"work_queue": True} for name in ("/jobs", CHORES)},
}
LIMIT_S = 240.0
_OPEN = re.compile(r"^holdfast_entries_(?:waiting|in_flight)\{.*\} (\S+)$", re.MULTILINE)
Row = dict[str, Any]


async def live(town: Town, deployment: Deployment) -> None:
    """Let everybody do and say what they have, while workers are killed."""
    going_on = [asyncio.create_task(each) for each in town.going_on()]
    saying = asyncio.gather(*town.saying())
    for kill in range(KILLS):
        await asyncio.sleep(0.5 + town.chance.random())
        await asyncio.to_thread(killed, deployment, (kill + SEED) % WORKERS)
    async with asyncio.timeout(LIMIT_S):
        await saying
        while not town.has_heard_all:  # noqa: ASYNC110 - clients know no events
            await asyncio.sleep(0.1)
        # What a killed worker had returns.
        await asyncio.sleep(7.0)
        await _nothing_waits(deployment.url)
    town.is_over = True
    await asyncio.gather(*going_on)


async def _nothing_waits(url: str) -> None:
    """Wait until no worker has an entry whose end it does not know.

    They are asked twice: what is on its way from one worker to another is counted at neither. And
    a worker that has just been started does not say anything yet.
    """
    in_a_row = 0
    async with aiohttp.ClientSession(url) as http:
        while in_a_row < 2:
            await asyncio.sleep(0.5)
            async with http.get("/metrics") as response:
                text = await response.text()
            found = [float(each) for each in _OPEN.findall(text)]
            in_a_row = 0 if any(found) or len(found) < 2 * WORKERS else in_a_row + 1


def killed(deployment: Deployment, worker: int) -> None:
    """Kill the process of a worker; the supervisor starts another one."""
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_it = (each / "comm").read_text().strip() == f"holdfast/{worker}"
            if is_it and deployment.pid in ancestors(int(each.name)):
                os.kill(int(each.name), signal.SIGKILL)


def ancestors(pid: int) -> list[int]:
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


@pytest.mark.slow
def test_the_tables_agree_with_those_who_got_it_although_workers_are_killed(tmp_path: Path) -> None:
    with deployed(tmp_path, SETTINGS) as deployment:
        town = Town(deployment.url, SEED)
        asyncio.run(live(town, deployment))
    assert [(each.key, each.told) for each in town.questions if not each.is_told_well] == []
    lake = ingested(tmp_path)
    assert violations(findings_of(lake)) == []
    with of_lake(lake) as tables:
        funnel = {row["channel"]: row for row in tables.ask(FUNNEL).by_name()}
        requests = {row["channel"]: row for row in tables.ask(REQUESTS_REPORT).by_name()}
    assert _wrong_cells(funnel, _expected(town)) == {}
    _check_bounded(funnel, town)
    _check_requests(requests, town)


def _expected(town: Town) -> dict[str, Row]:
    """The cells of the funnel that the books know exactly. Nothing is lost or left open."""
    copies = {
        "/jobs": MESSAGES,
        "/news": MESSAGES * len(NAMES),
        "/orders": MESSAGES,
        CHORES: sum(each.channel == CHORES for each in town.questions),
        "/ret/*": sum(len(each.told) for each in town.questions),
    }
    rows = {
        channel: Row(copies=number, open=0, lost=0, discarded=0)
        for channel, number in copies.items()
    }
    dead = len(town.refused)
    rows["/news"] |= Row(acked=copies["/news"] - dead, dead=dead)
    for channel in ("/orders", "/ret/*"):
        rows[channel] |= Row(acked=copies[channel], dead=0)
    for channel in ("/jobs", "/news"):
        rows[channel] |= Row(published=MESSAGES)
    # Each delay that is over is a move. Work that somebody refuses moves, too.
    for channel in ("/news", "/orders"):
        rows[channel] |= Row(moves=MESSAGES // DELAYED_EACH)
    rows[QUESTIONS] = Row(open=0, lost=0, discarded=0)
    rows[CHORES] |= Row(published=copies[CHORES])
    rows["/ret/*"] |= Row(published=copies["/ret/*"])
    return rows


def _wrong_cells(rows: dict[str, Row], expected: dict[str, Row]) -> dict[tuple[str, str], Any]:
    """The cells that are others: what is there, and what is expected."""
    return {
        (channel, name): (rows[channel][name], number)
        for channel, cells in expected.items()
        for name, number in cells.items()
        if rows[channel][name] != number
    }


def _check_bounded(rows: dict[str, Row], town: Town) -> None:
    """Check what the books know less exactly."""
    # The worker that accepted an order need not have it in its store: another one has the copy. So
    # it is with a question for one. If that is not answered, perhaps it had no copy at all.
    assert rows["/orders"]["published"] <= MESSAGES
    asked = [each for each in town.questions if each.channel == QUESTIONS]
    for_one = [each for each in asked if each.is_for_one]
    for_all = len(asked) - len(for_one)
    answered = sum("" in each.told.values() for each in for_one)
    assert for_all <= rows[QUESTIONS]["published"] <= len(asked)
    fewest = for_all * len(NAMES) + answered
    assert fewest <= rows[QUESTIONS]["copies"] <= for_all * len(NAMES) + len(for_one)
    # A killed worker may have done some before another one did it again.
    came = Counter(data.partition(" ")[0] for data in town.came.elements())
    assert MESSAGES <= rows["/jobs"]["acked"] <= came["/jobs"]
    assert rows["/jobs"]["moves"] >= MESSAGES // DELAYED_EACH
    # Those whose deadline passes before somebody has them expire.
    for channel in (QUESTIONS, CHORES):
        row = rows[channel]
        assert row["acked"] + row["expired"] >= row["copies"]


def _check_requests(rows: dict[str, Row], town: Town) -> None:
    """Compare how requests ended with what those were told who asked.

    The events of requests are not stored with what they tell of, so a kill loses those of the last
    second: the report may have fewer.
    """
    for channel in (QUESTIONS, CHORES):
        mine = [each for each in town.questions if each.channel == channel]
        told = Counter(error.partition(":")[0] for each in mine for error in each.told.values())
        row = rows[channel]
        ends = (row["answered"], row["timeout"], row["no_responders"])
        most = (told[""], told["408"], told["404"])
        assert all(end <= limit for end, limit in zip(ends, most, strict=True)), (ends, most)
        assert row["answered"] > 0
