"""Requests are answered by clients of any worker, once."""

import asyncio
from pathlib import Path
from typing import Any

from tests.store.store_process import until
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person

POWER = "/data/power"


async def requester(at: Workers, door: int) -> Person:
    person = at.person(door)
    person.wants = {"request": True}
    assert (await person.handshake())["successful"]
    return person


async def responder(at: Workers, door: int) -> Person:
    person = at.person(door)
    assert (await person.handshake())["successful"]
    assert (await person.reply("/meta/subscribe", subscription=POWER))["successful"]
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


async def test_a_request_does_not_end_before_its_message_has_come(tmp_path: Path) -> None:
    async with workers(tmp_path, chat=False) as at:
        asker, called = await requester(at, 0), await responder(at, 1)
        sharding = at.servers[0].sharding
        assert sharding is not None
        await at.delay(0, 1, 0.2)
        # Its message takes the link, and the question who answers it takes the log.
        await until(sharding.member.others.own.passing._has_links)
        assert (await ask(asker))["successful"]
        [event] = await events(called)
        reply = await called.reply(event["ext"]["replyTo"], data=1)
        assert reply["successful"], reply


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
