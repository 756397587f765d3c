"""Requests are answered by clients of any worker, once, whichever worker is killed."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person
from tests.web.sharding.fleet import Visitor, fleet

POWER = "/data/power"


async def requester(at: Workers, door: int) -> Person:
    person = at.person(door)
    person.wants = {"request": True}
    assert (await person.handshake())["successful"]
    return person


async def responder(at: Workers, door: int, **qos: Any) -> Person:
    person = at.person(door)
    assert (await person.handshake())["successful"]
    ext = {"ext": {"delivery": qos}} if qos else {}
    assert (await person.reply("/meta/subscribe", subscription=POWER, **ext))["successful"]
    return person


async def ask(person: Person, serial: int = 1, **ext: Any) -> Json:
    ext = {"replyTo": f"{person.ret}/{4_000_000 + serial}", "timeout": 10_000, **ext}
    return await person.reply(POWER, data=serial, ext=ext)


async def events(person: Person, count: int = 1) -> list[Json]:
    """The next events, each acked."""
    found: list[Json] = []
    ack = 0
    async with asyncio.timeout(20):
        while len(found) < count:
            replies = await person.connect(500, ack=ack)
            found += [each for each in replies if "data" in each]
            ack = replies[-1].get("ext", {}).get("ack", ack)
    return found


async def test_clients_of_all_workers_answer(tmp_path: Path) -> None:
    async with workers(tmp_path, chat=False) as at:
        asker = await requester(at, 0)
        people = [await responder(at, door) for door in (0, 1, 1)]
        assert (await ask(asker, request="all"))["successful"]
        for number, person in enumerate(people):
            [event] = await events(person)
            reply = await person.reply(event["ext"]["replyTo"], data=number)
            assert reply["successful"], reply
            reply = await person.reply(event["ext"]["replyTo"], data=number)
            assert reply["error"].endswith(":duplicate_reply")
        found = [each["data"] for each in await events(asker, 4)]
        assert found == [0, 1, 2, {"replies": 3, "missing": 0}]


async def test_who_has_nobody_to_ask_hears_it_at_once(tmp_path: Path) -> None:
    async with workers(tmp_path, chat=False) as at:
        asker = await requester(at, 1)
        await responder(at, 0, responds=False)
        for serial, mode in enumerate(("first", "all", "one")):
            assert (await ask(asker, serial, request=mode))["successful"]
            [event] = await events(asker)
            assert event["error"] == f"404:{POWER}:no_responders"


async def test_one_client_of_another_worker_is_asked(tmp_path: Path) -> None:
    async with workers(tmp_path, chat=False) as at:
        asker = await requester(at, 0)
        people = [await responder(at, 1), await responder(at, 1)]
        for person in people:
            await person.connect(0, ack=0)
        holding = [asyncio.create_task(person.connect(3_000, ack=0)) for person in people]
        assert (await ask(asker, request="one"))["successful"]
        found = [each for held in holding for each in await held if "data" in each]
        assert len(found) == 1


@pytest.mark.parametrize("door", [0, 1])
async def test_work_is_answered_at_any_worker(tmp_path: Path, door: int) -> None:
    rules = {POWER: {"work_queue": True}}
    async with workers(tmp_path, chat=False, channels=rules) as at:
        askers = [await requester(at, each) for each in (0, 1)]
        for asker in askers:
            assert (await ask(asker))["successful"]
        person = await responder(at, door)
        for event in await events(person, 2):
            reply = await person.reply(event["ext"]["replyTo"], data="!")
            assert reply["successful"], reply
        for asker in askers:
            assert [each["data"] for each in await events(asker)] == ["!"]


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
async def test_each_request_has_one_outcome_though_a_worker_is_killed(
    tmp_path: Path, killed: int
) -> None:
    async with (
        fleet(tmp_path) as both,
        Visitor(both, 0, "joe/1") as asker,
        Visitor(both, 1, "ann/1") as other,
    ):
        asker.wants = {"request": True}
        await asker.person()
        assert (await other.subscribe(POWER))["successful"]
        asked: set[str] = set()
        is_over = asyncio.Event()

        async def ask_on() -> None:
            for number in range(400):
                if len(asked) == 40:
                    return
                with suppress(aiohttp.ClientError, AssertionError, ConnectionError):
                    person = await asker.person()
                    reply_to = f"{person.ret}/{4_000_000 + number}"
                    ext = {"replyTo": reply_to, "timeout": 15_000}
                    if (await asker.ask(POWER, data=number, ext=ext))["successful"]:
                        asked.add(reply_to)
                await asyncio.sleep(0.02)

        async def answer_on() -> None:
            done = 0
            while not is_over.is_set():
                await other.listen()
                for event in other.events[done:]:
                    await other.publish(event["ext"]["replyTo"], event["data"])
                done = len(other.events)

        answering = asyncio.create_task(answer_on())
        asking = asyncio.create_task(ask_on())
        await asyncio.sleep(0.4)
        await both.end(killed, signal.SIGKILL)
        await both.start(killed)
        await asking
        async with asyncio.timeout(40):
            while not asked <= {each["channel"] for each in asker.events}:
                await asker.listen()
        is_over.set()
        await answering
        assert len(asked) == 40, both.log()
        # After a kill, a message may come again, with the same id.
        outcomes = {(each["channel"], each["ext"]["delivery"]["id"]) for each in asker.events}
        channels = [channel for channel, _ in outcomes]
        assert len({*channels}) == len(channels), both.log()
        answered = {each["channel"] for each in asker.events if "error" not in each}
        assert len(answered) > len(asked) / 2


async def test_a_remote_call_is_answered_by_a_client_of_another_worker(tmp_path: Path) -> None:
    async with workers(tmp_path, chat=False) as at:
        caller = at.person(0)
        await caller.handshake()
        service = f"/service{POWER}"
        assert (await caller.reply(service, data=1, id="1"))["successful"]
        called = await responder(at, 1)
        assert (await caller.reply(service, data=2, id="2"))["successful"]
        [event] = await events(called)
        assert event["data"] == 2
        assert (await called.reply(event["ext"]["replyTo"], data=230))["successful"]
        [answer] = await events(caller)
        assert (answer["channel"], answer["id"], answer["data"]) == (service, "2", 230)
