"""Traffic of all workers while workers are killed: the tables tell of each message.

HOLDFAST_BOOKS says how often workers are killed, and HOLDFAST_BOOKS_SEED when.
"""

import asyncio
import os
import random
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.flow import FUNNEL
from tests.clients.deployment import Deployment, deployed
from tests.pipeline.audited import findings_of, violations
from tests.pipeline.test_workers import ingested
from tests.web.people import Json, Person

pytestmark = pytest.mark.untraced

KILLS = int(os.environ.get("HOLDFAST_BOOKS", "2"))
SEED = int(os.environ.get("HOLDFAST_BOOKS_SEED", "5"))
WORKERS = 2
# On each channel: work, news for all, and orders for one of them.
MESSAGES = 60
CHANNELS = ("/jobs", "/news", "/orders")
# Of what sessions without a name do, the last second before a kill is not stored.
NAMES = ("ann", "bob", "dan", "eve", "joe", "sue")
SETTINGS = {
    **{"workers": WORKERS, "journal": True, "max_interval": 2000},
    "channels": {"/jobs": {"work_queue": True}},
}
LIMIT_S = 240.0
# What clients meet while their worker is away.
BROKEN = (aiohttp.ClientError, AssertionError, LookupError, RuntimeError, ValueError)


class Town:
    """A publisher, and sessions that do work and listen, which come back whatever happens."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._chance = random.Random(SEED)
        # The books of those who get it: how often each message came, and who refused which.
        self.came: Counter[str] = Counter()
        self.refused: set[tuple[str, str]] = set()
        self._listening: set[str] = set()
        self._is_over = False

    async def publish(self, channel: str) -> None:
        """Publish each message until it is accepted."""
        while len(self._listening) < len(NAMES):  # noqa: ASYNC110 - clients know no events
            await asyncio.sleep(0.1)
        person = Person(self._url)
        async with person.http:
            for number in range(MESSAGES):
                delivery: Json = {"key": f"{SEED}{channel}{number}"}
                if channel == "/orders":
                    delivery["destinations"] = [{"name": NAMES[number % len(NAMES)]}]
                message: Json = {"channel": channel, "data": f"{channel} {number}"}
                message["ext"] = {"delivery": delivery}
                while not await self._is_accepted(person, message):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
                await asyncio.sleep(0.02)

    async def _is_accepted(self, person: Person, message: Json) -> bool:
        with suppress(*BROKEN):
            if not person.client_id:
                await person.handshake()
            reply = await person.reply(**message)
            if reply["successful"]:
                return True
            if str(reply.get("error", "")).startswith("402"):
                person.client_id = ""
        return False

    async def work(self, session: str) -> None:
        """Get messages, some of which are refused, until all have come."""
        person = Person(self._url)
        async with person.http:
            while not self._is_over:
                with suppress(*BROKEN):
                    await self._work_as(person, session)
                await asyncio.sleep(0.1)

    async def _work_as(self, person: Person, session: str) -> None:
        assert (await person.handshake(session))["successful"]
        for channel in ("/jobs", "/news"):
            assert (await person.reply("/meta/subscribe", subscription=channel))["successful"]
        self._listening.add(session)
        ack, verdicts = 0, list[Json]()
        while not self._is_over:
            *events, reply = await person.connect(200, ack=ack, delivery={"verdicts": verdicts})
            if not reply["successful"]:
                return
            ack, verdicts = reply["ext"]["ack"], []
            for event in events:
                code = self._judged(session, event["data"])
                if code is not None:
                    seq = event["ext"]["delivery"]["seq"]
                    verdicts.append({"seq": seq, "errorCode": code})
            await asyncio.sleep(self._chance.random() * 0.05)

    def _judged(self, session: str, data: str) -> str | None:
        """Return why a session refuses a message, if it does."""
        self.came[data] += 1
        if data.startswith("/news"):
            # It dies, however often it comes again until then.
            if (session, data) not in self.refused and self._chance.random() < 0.1:
                self.refused.add((session, data))
            return "user.update.error" if (session, data) in self.refused else None
        is_first = self.came[data] == 1
        return "communication.noConnection" if is_first and self._chance.random() < 0.1 else None

    async def live(self, deployment: Deployment) -> None:
        tasks = [asyncio.create_task(self.work(f"{name}/1")) for name in NAMES]
        publishing = asyncio.gather(*map(self.publish, CHANNELS))
        for kill in range(KILLS):
            await asyncio.sleep(0.5 + self._chance.random())
            worker = (kill + SEED) % WORKERS
            await asyncio.to_thread(killed, deployment, worker)
        async with asyncio.timeout(LIMIT_S):
            await publishing
            while len(self.came) < len(CHANNELS) * MESSAGES:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            # What a killed worker had returns, and what became of the last pieces is told.
            await asyncio.sleep(7.0)
        self._is_over = True
        await asyncio.gather(*tasks)


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
        town = Town(deployment.url)
        asyncio.run(town.live(deployment))
    lake = ingested(tmp_path)
    assert violations(findings_of(lake)) == []
    with of_lake(lake) as tables:
        rows = {row["channel"]: row for row in tables.ask(FUNNEL).by_name()}
    numbers = {
        channel: tuple(rows[channel][name] for name in ("copies", "lost")) for channel in CHANNELS
    }
    copies = {"/jobs": MESSAGES, "/news": MESSAGES * len(NAMES), "/orders": MESSAGES}
    assert numbers == {channel: (copies[channel], 0) for channel in CHANNELS}
    # A queue hears what became of its work, perhaps before the killed worker has stored that.
    left = {channel: rows[channel]["open"] for channel in CHANNELS}
    assert left.pop("/jobs") <= KILLS * len(NAMES)
    assert left == {"/news": 0, "/orders": 0}
    published = {channel: rows[channel]["published"] for channel in CHANNELS}
    # The worker that accepted an order need not have it in its store: another one has the copy.
    assert published.pop("/orders") <= MESSAGES
    assert published == {"/jobs": MESSAGES, "/news": MESSAGES}
    ends = {channel: (rows[channel]["acked"], rows[channel]["dead"]) for channel in CHANNELS}
    dead = len(town.refused)
    assert ends["/news"] == (copies["/news"] - dead, dead)
    assert ends["/orders"] == (MESSAGES, 0)
    # A killed worker may have done some before another one did it again.
    came = sum(town.came[f"/jobs {number}"] for number in range(MESSAGES))
    assert MESSAGES <= ends["/jobs"][0] + rows["/jobs"]["open"] <= came
