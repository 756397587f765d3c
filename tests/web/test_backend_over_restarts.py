"""Whoever is killed or restarted: nothing forbidden is published, and no message is lost."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.web.backend_members import CHANNELS, CLOSED, RIGHTS, Decider, Member
from tests.web.played_supervisor import PlayedSupervisor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SECOND = 10
NAMES = ("ada", "bob", "eve")


@pytest.fixture
async def decider() -> AsyncIterator[Decider]:
    decider = Decider(*NAMES)
    await decider.open()
    yield decider
    await decider.close()


@pytest.fixture
def played(decider: Decider, tmp_path: Path) -> Iterator[PlayedSupervisor]:
    (tmp_path / "rights.toml").write_text(RIGHTS)
    given = {"backend": decider.application.settings(), "rights": str(tmp_path / "rights.toml")}
    with PlayedSupervisor(tmp_path, {**given, "channels": CHANNELS, "journal": False}) as played:
        yield played


@pytest.fixture
async def members(played: PlayedSupervisor) -> AsyncIterator[list[Member]]:
    found = [Member(lambda: played.url, name) for name in NAMES]
    yield found
    for each in found:
        await each.__aexit__()


async def publish(members: list[Member]) -> None:
    await asyncio.gather(*(each.publish(SECOND) for each in members))


async def check(members: list[Member], decider: Decider) -> None:
    with decider.always():
        # What was answered wrongly just now is asked again soon.
        await asyncio.sleep(1.5)
        for each in members:
            await each.publish(1)
            await each.check()
        decider.application.table["subscribe", CLOSED] = {"allow": True}
        assert await members[0].history(CLOSED) == []
    errors = set().union(*(each.errors for each in members))
    assert "403:denied_by_backend:publish_denied" in errors
    assert not any(each.startswith("500") for each in errors), errors


async def test_nothing_is_lost_or_forbidden_when_the_server_is_killed(
    played: PlayedSupervisor, decider: Decider, members: list[Member]
) -> None:
    for _ in range(3):
        publishing = asyncio.create_task(publish(members))
        await asyncio.sleep(0.3)
        played.server.kill()
        await asyncio.to_thread(played.start)
        await publishing
    await check(members, decider)


async def test_nothing_is_lost_or_forbidden_when_the_server_restarts(
    played: PlayedSupervisor, decider: Decider, members: list[Member]
) -> None:
    for _ in range(3):
        publishing = asyncio.create_task(publish(members))
        await asyncio.to_thread(played.restart)
        await publishing
    await check(members, decider)


async def test_nothing_is_lost_or_forbidden_when_a_restart_fails(
    played: PlayedSupervisor, decider: Decider, members: list[Member]
) -> None:
    publishing = asyncio.create_task(publish(members))
    successor, _ = await asyncio.to_thread(played.prepare)
    await asyncio.to_thread(played.leave)
    successor.kill()
    await asyncio.to_thread(played.take_back)
    await publishing
    await check(members, decider)


async def test_nothing_is_lost_or_forbidden_when_the_application_is_killed(
    played: PlayedSupervisor, decider: Decider, members: list[Member]
) -> None:
    for pause_s in (0.0, 0.1, 0.05):
        publishing = asyncio.create_task(publish(members))
        await asyncio.sleep(0.1)
        await decider.fail(pause_s)
        await publishing
    await check(members, decider)


async def test_a_server_that_leaves_does_not_wait_for_an_application_that_hangs(
    played: PlayedSupervisor, decider: Decider, members: list[Member]
) -> None:
    def is_told() -> bool:
        return any("503::backend_unavailable" in each.errors for each in members)

    with decider.always():
        decider.application.delay_s = 1.9
        for _ in range(20):
            restarting = asyncio.create_task(asyncio.to_thread(played.restart))
            while not restarting.done():
                await asyncio.gather(*(each.publish(1) for each in members))
            await restarting
            # Perhaps no question was open when the server left.
            if is_told():
                break
        decider.application.delay_s = 0.0
        assert is_told()
    await check(members, decider)


async def test_a_subscription_survives_a_restart_and_is_asked_about_again(
    played: PlayedSupervisor, decider: Decider
) -> None:
    with decider.always():
        jar = aiohttp.CookieJar(unsafe=True)
        shown = {"Cookie": "sessionid=of-ada"}
        async with aiohttp.ClientSession(headers=shown, cookie_jar=jar) as http:

            async def ask(**message: object) -> dict[str, object]:
                async with http.post(f"{played.url}/cometd", json=[message]) as response:
                    return next(
                        each
                        for each in await response.json()
                        if each["channel"] == message["channel"]
                    )

            kinds = {"supportedConnectionTypes": ["long-polling"]}
            ext = {"delivery": {"session": "ada/1"}}
            hello = await ask(channel="/meta/handshake", ext=ext, **kinds)
            who = {"clientId": hello["clientId"]}
            wanted = {"subscription": "/orders/ada"}
            assert (await ask(channel="/meta/subscribe", **who, **wanted))["successful"]
            await asyncio.to_thread(played.restart)
            before = decider.application.count("subscribe")
            async with asyncio.timeout(60):
                while decider.application.count("subscribe") == before:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            reply = await ask(channel="/meta/unsubscribe", **who, **wanted)
            assert reply["successful"], "the subscription was lost"
