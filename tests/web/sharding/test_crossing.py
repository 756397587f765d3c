"""Messages cross between workers with a real store each."""

import asyncio
from pathlib import Path
from typing import Any

from holdfast.delivery.basics.channels import HELD_ROW
from tests.store.store_process import until
from tests.web.forwarding.workers import workers
from tests.web.people import Person


async def heard(person: Person, count: int) -> list[Any]:
    """So many messages, or what comes within a minute."""
    found: list[Any] = []
    ack = 0
    for _ in range(60):
        replies = await person.connect(1000, ack=ack)
        found += [each["data"] for each in replies if "data" in each]
        ack = replies[-1].get("ext", {}).get("ack", ack)
        if len(found) >= count:
            break
    return found


async def subscribed(person: Person, channel: str, session: str | None = None) -> None:
    assert (await person.handshake(session))["successful"]
    reply = await person.reply("/meta/subscribe", subscription=channel)
    assert reply["successful"], reply


async def publish(person: Person, channel: str, data: Any, **options: Any) -> None:
    ext = {"ext": {"delivery": options}} if options else {}
    reply = await person.reply(channel, data=data, **ext)
    assert reply["successful"], reply


async def test_a_publish_at_one_worker_reaches_sessions_of_the_other(tmp_path: Path) -> None:
    async with workers(tmp_path, chat=False) as at:
        named, plain, writer = at.person(1), at.person(1), at.person(0)
        await subscribed(named, "/news", "joe/1")
        await subscribed(plain, "/news")
        await writer.handshake()
        for number in range(20):
            await publish(writer, "/news", number)
            await publish(writer, "/news", -number - 1, persistent=False)
        expected = [each for number in range(20) for each in (number, -number - 1)]
        both = await asyncio.gather(heard(named, 40), heard(plain, 40))
        assert [*both] == [expected, expected]


async def test_a_channel_that_one_worker_holds_is_held_for_publishers_at_the_other(
    tmp_path: Path,
) -> None:
    async with workers(tmp_path, chat=False) as at:
        writer, patient = at.person(0), {"ext": {"delivery": {"refuseHeld": True}}}
        await writer.handshake()
        sharding, holds = at.servers[0].sharding, at.servers[1].bayeux.life.channel_holds
        assert sharding is not None
        holds.hold("/news", "stock-taking", "operator/ann")
        await until(lambda: sharding.member.others.has_row(HELD_ROW + "/news") is True)
        refused = await writer.reply("/news", data=1, **patient)
        assert refused["error"] == "503:communication.user.holdback,/news:channel_held_back"
        holds.release("/news", "operator", "operator/ann")
        await until(lambda: sharding.member.others.has_row(HELD_ROW + "/news") is False)
        assert (await writer.reply("/news", data=1, **patient))["successful"]
