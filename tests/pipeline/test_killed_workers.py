"""Work that sessions of all workers share, while workers are killed: the tables tell of each piece.

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
MESSAGES = 60
SETTINGS = {
    **{"workers": WORKERS, "journal": True, "max_interval": 2000},
    "channels": {"/jobs": {"work_queue": True}},
}
LIMIT_S = 90.0


class Town:
    """A publisher, and sessions that do work, which come back whatever happens."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._chance = random.Random(SEED)
        # The books of those who do it: how often each piece came.
        self.came: Counter[int] = Counter()
        self._is_over = False

    async def publish(self) -> None:
        """Publish each piece of work until it is accepted."""
        person = Person(self._url)
        async with person.http:
            for number in range(MESSAGES):
                delivery = {"key": f"job-{SEED}-{number}"}
                while not await self._is_accepted(person, number, delivery):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
                await asyncio.sleep(0.02)

    async def _is_accepted(self, person: Person, number: int, delivery: Json) -> bool:
        with suppress(aiohttp.ClientError, AssertionError, StopIteration, RuntimeError):
            if not person.client_id:
                await person.handshake()
            reply = await person.reply("/jobs", data=number, ext={"delivery": delivery})
            if reply["successful"]:
                return True
            if str(reply.get("error", "")).startswith("402"):
                person.client_id = ""
        return False

    async def work(self, session: str) -> None:
        """Do work, some of which is refused at first, until all is done."""
        person = Person(self._url)
        async with person.http:
            while not self._is_over:
                with suppress(aiohttp.ClientError, AssertionError, StopIteration, RuntimeError):
                    await self._work_as(person, session)
                await asyncio.sleep(0.1)

    async def _work_as(self, person: Person, session: str) -> None:
        assert (await person.handshake(session))["successful"]
        assert (await person.reply("/meta/subscribe", subscription="/jobs"))["successful"]
        ack, verdicts = 0, list[Json]()
        while not self._is_over:
            *events, reply = await person.connect(200, ack=ack, delivery={"verdicts": verdicts})
            if not reply["successful"]:
                return
            ack, verdicts = reply["ext"]["ack"], []
            for event in events:
                self.came[event["data"]] += 1
                # Nobody refuses what came twice, so that nothing dies.
                if self.came[event["data"]] == 1 and self._chance.random() < 0.1:
                    seq = event["ext"]["delivery"]["seq"]
                    verdicts.append({"seq": seq, "errorCode": "communication.noConnection"})
            await asyncio.sleep(self._chance.random() * 0.05)

    async def live(self, deployment: Deployment) -> None:
        # Of what sessions without a name do, the last second before a kill is not stored.
        names = [f"{name}/1" for name in ("ann", "bob", "dan", "eve", "joe", "sue")]
        tasks = [asyncio.create_task(self.work(name)) for name in names]
        publishing = asyncio.create_task(self.publish())
        for kill in range(KILLS):
            await asyncio.sleep(0.5 + self._chance.random())
            worker = (kill + SEED) % WORKERS
            await asyncio.to_thread(killed, deployment, worker)
        async with asyncio.timeout(LIMIT_S):
            await publishing
            while len(self.came) < MESSAGES:  # noqa: ASYNC110 - clients know no events
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
def test_work_is_one_copy_in_the_tables_although_workers_are_killed(tmp_path: Path) -> None:
    with deployed(tmp_path, SETTINGS) as deployment:
        town = Town(deployment.url)
        asyncio.run(town.live(deployment))
    lake = ingested(tmp_path)
    assert violations(findings_of(lake)) == []
    with of_lake(lake) as tables:
        [row] = tables.ask(FUNNEL).by_name()
    numbers = {name: row[name] for name in ("published", "copies", "open", "lost", "dead")}
    assert numbers == {**dict.fromkeys(numbers, 0), "published": MESSAGES, "copies": MESSAGES}
    assert MESSAGES <= row["acked"] <= town.came.total()
