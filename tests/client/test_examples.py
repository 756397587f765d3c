"""The programs in docs/examples that use the Python client work as their pages say."""

import asyncio
import json
import os
import re
import shlex
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import pytest

from holdfast import Client, Message
from tests.client.broker import Broker
from tests.client.cells import run_cells
from tests.pages import ROOT, USUAL_PLACE
from tests.serving import Server, Servers, environment

EXAMPLES = ROOT / "docs" / "examples"
LIMIT_S = 60
T = TypeVar("T")


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.with_settings({"channels": {"/jobs/**": {"work_queue": True}}})


@asynccontextmanager
async def started(example: str, *words: str) -> AsyncIterator[Process]:
    """The program, from when it is ready; it is ended as by ctrl-C."""
    program = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLES / example), *words, env=environment(), stdout=PIPE, stderr=PIPE
    )
    try:
        assert await line_of(program) == "ready"
        yield program
        program.send_signal(signal.SIGINT)
        async with asyncio.timeout(LIMIT_S):
            said, complained = await program.communicate()
        assert (program.returncode, said, complained) == (0, b"", b"")
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


async def line_of(program: Process) -> str:
    assert program.stdout is not None
    async with asyncio.timeout(LIMIT_S):
        return (await program.stdout.readline()).decode().rstrip("\n")


async def next_of(queue: asyncio.Queue[T]) -> T:
    async with asyncio.timeout(LIMIT_S):
        return await queue.get()


async def next_data(heard: asyncio.Queue[Message]) -> Any:
    return (await next_of(heard)).data


async def test_workers_share_jobs_and_a_job_that_all_refuse_is_a_dead_letter(
    server: Server,
) -> None:
    token, letters = (server.data / "admin-token").read_text().strip(), asyncio.Queue[Message]()
    async with (
        Client(server.url, token=token) as operator,
        started("worker.py", server.url) as first,
        started("worker.py", server.url) as second,
    ):
        only = "data.channel = '/jobs/pictures'"
        await operator.subscribe("/sys/deadMessage", letters.put_nowait, filter=only)
        for picture in ("cat.jpg", "dog.jpg"):
            await operator.publish("/jobs/pictures", {"picture": picture, "pixels": 100})
        done = {await line_of(first), await line_of(second)}
        assert done == {"resized cat.jpg to 100 pixels", "resized dog.jpg to 100 pixels"}
        await operator.publish("/jobs/pictures", {"picture": "bee.jpg", "pixels": -1})
        letter = await next_data(letters)
    assert letter["errorCode"] == "user.update.illegalArgument"
    assert [each["text"] for each in letter["attempts"]] == 2 * ["a picture cannot have -1 pixels"]


async def test_the_bot_rolls_dice_in_the_chat(server: Server) -> None:
    room, heard = "/chat/room/dice", asyncio.Queue[Message]()
    async with started("bot.py", server.url, "dice"), Client(server.url, session="ada") as ada:
        await ada.subscribe(room, heard.put_nowait)
        for text in ("hello", "!roll 0d6", "!roll 3d6"):
            await ada.publish(room, {"id": text, "from": "ada", "text": text})
        said = [await next_data(heard) for _ in range(4)]
    assert [each["from"] for each in said] == ["ada", "ada", "ada", "dice"]
    rolled = re.fullmatch(r"([1-6]) \+ ([1-6]) \+ ([1-6]) = (\d+)", said[-1]["text"])
    assert rolled is not None
    *rolls, total = map(int, rolled.groups())
    assert sum(rolls) == total


async def test_the_bridge_loses_nothing_while_the_broker_is_away(server: Server) -> None:
    broker, heard = Broker(), asyncio.Queue[Message]()
    await broker.start()
    async with (
        started("bridge.py", server.url, "127.0.0.1", str(broker.port)) as program,
        Client(server.url) as client,
    ):
        await client.subscribe("/commands/*", heard.put_nowait)
        broker.send("commands/heating", b'"on"')
        assert await next_data(heard) == "on"
        await client.publish("/sensors/kitchen", {"celsius": 20})
        assert await next_of(broker.published) == ("sensors/kitchen", b'{"celsius": 20}')
        broker.stop()
        await client.publish("/sensors/cellar", {"celsius": 11})
        await broker.start()
        assert await line_of(program) == "ready"
        assert await next_of(broker.published) == ("sensors/cellar", b'{"celsius": 11}')
    broker.stop()


@asynccontextmanager
async def run_as_told(page: str, url: str) -> AsyncIterator[tuple[Process, str]]:
    """The web service, run by the command of the page, and its address; both workers are ready."""
    [command] = re.findall(r"`(uvicorn [^`]+)`", (ROOT / "docs" / page).read_text())
    words = [sys.executable, "-m", *shlex.split(command), "--port", "0", "--no-access-log"]
    known = environment() | {"HOLDFAST_URL": url}
    program = await asyncio.create_subprocess_exec(
        *words, cwd=EXAMPLES, env=known, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    assert program.stderr is not None
    log = ""
    try:
        async with asyncio.timeout(LIMIT_S):
            while log.count("startup complete") < 2:
                line = (await program.stderr.readline()).decode()
                assert line, log
                log += line
        [address] = re.findall(r"running on (http://\S+)", log)
        await listens_at(address)
        yield program, address
    finally:
        if program.returncode is None:
            # Its workers would outlive it.
            os.killpg(program.pid, signal.SIGKILL)
            await program.wait()


async def listens_at(address: str) -> None:
    """Wait until somebody listens there: an application is complete before its server listens."""
    place = urlsplit(address)
    async with asyncio.timeout(LIMIT_S):
        while True:
            with suppress(ConnectionRefusedError):
                _, writer = await asyncio.open_connection(place.hostname, place.port)
                writer.close()
                return
            await asyncio.sleep(0.05)


async def order_at(http: aiohttp.ClientSession, address: str, item: str) -> int:
    """Order an item; return which process has accepted the order."""
    async with http.post(f"{address}/orders/{item}") as response:
        assert response.status == 200, await response.text()
        process: int = (await response.json())["process"]
        return process


async def test_the_web_service_in_two_processes_refuses_no_order_and_packs_each_once(
    server: Server,
) -> None:
    # Each order comes over a connection of its own, which one of the processes accepts.
    connector = aiohttp.TCPConnector(force_close=True)
    ordered, processes = list[str](), set[int]()
    async with (
        run_as_told("how-to/python-client.md", server.url) as (program, address),
        aiohttp.ClientSession(connector=connector) as http,
    ):
        while len(ordered) < 60 or len(processes) < 2:
            items = [f"item-{len(ordered) + n}" for n in range(20)]
            processes.update(await asyncio.gather(*(order_at(http, address, n) for n in items)))
            ordered += items
        # Two processes may write into one line, and end it twice.
        told = "".join([await line_of(program) for _ in ordered])
        program.send_signal(signal.SIGTERM)
        async with asyncio.timeout(LIMIT_S):
            said, complained = await program.communicate()
    packed = re.findall(r"process (\d+) packs (item-\d+)", told + said.decode())
    assert sorted(item for _, item in packed) == sorted(ordered)
    assert {int(process) for process, _ in packed} <= processes
    assert "ERROR" not in complained.decode()
    assert "WARNING" not in complained.decode()


async def test_the_cells_of_the_notebook_run_in_their_order(server: Server) -> None:
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text())
    cells = ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == "code"]
    place = urlsplit(server.url).netloc
    said = await run_cells(cell.replace(USUAL_PLACE, place) for cell in cells)
    assert "".join(said) == "21.5\n"
