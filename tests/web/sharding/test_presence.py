"""Clients of all workers see each other on channels."""

from pathlib import Path
from typing import Any

from tests.web.forwarding.workers import workers
from tests.web.people import Json, Person, until

LOBBY = "/chat/room/lobby"


async def events(person: Person, channel: str) -> list[Any]:
    """The data of what has come on a channel. Everything is acked."""
    replies = await person.connect(200)
    ack = replies[-1].get("ext", {}).get("ack")
    await person.connect(ack=ack)
    return [each["data"] for each in replies if each["channel"] == channel and "data" in each]


async def members(person: Person) -> set[str]:
    """The subjects in the lobby."""
    await person.ask("/service/presence", data={"channel": LOBBY})
    found: list[Json] = await events(person, "/service/presence")
    return {each["subject"] for each in found[-1]["members"]} if found else set()


async def test_people_of_the_chat_meet_at_any_worker(tmp_path: Path) -> None:
    async with workers(tmp_path) as both:
        names = [both.subject_of(shard) for shard in (0, 1)]
        people = [both.person(shard) for shard in (0, 1)]
        for person, name in zip(people, names, strict=True):
            reply = await person.handshake(f"{name}/1")
            assert reply["successful"]
            assert (await person.reply("/meta/subscribe", subscription=LOBBY))["successful"]
        for person in people:

            async def sees_both(person: Person = person) -> bool:
                return await members(person) == {*names}

            await until(sees_both)
        data = {"id": "1", "to": names[1], "text": "psst"}
        await people[0].ask("/service/chat/private", data=data)

        async def hears() -> bool:
            found = await events(people[1], "/service/chat/private")
            return any(each["text"] == "psst" for each in found)

        await until(hears)
