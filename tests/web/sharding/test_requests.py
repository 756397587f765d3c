"""Requests are answered by clients of any worker, once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person

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
