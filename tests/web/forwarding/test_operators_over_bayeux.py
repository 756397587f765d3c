"""Operators over Bayeux: at any worker, they hear events of all shards and command all of them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.compose.running_server import RunningServer
from holdfast.delivery.basics.channels import LISTENS_ROW
from tests.web.forwarding.operators import Operator, operator
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person
from tests.web.people import until as until_async

LIMIT_S = 60.0


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers(tmp_path, chat=False) as both:
        yield both


@pytest.fixture
async def ada(both: Workers, tmp_path: Path) -> AsyncIterator[Operator]:
    async with operator(both, tmp_path) as ada:
        yield ada


async def named(both: Workers) -> list[str]:
    """Begin a session of a subject in each shard; returns their keys."""
    keys = [f"{both.subject_of(shard)}/1" for shard in (0, 1)]
    for key in keys:
        await both.person(0).handshake(key)
    return keys


async def signed_in(both: Workers, ada: Operator, door: int, *, to: str = "") -> Person:
    """An operator's client of one worker, which listens to a system channel."""
    person = both.person(door)
    secret = ada.http.headers["Authorization"].removeprefix("Bearer ")
    assert (await person.handshake(token=secret))["successful"]
    if to:
        assert (await person.reply("/meta/subscribe", subscription=to))["successful"]
        others = [each for each in both.servers if each is not both.servers[door]]
        # The other shard hears of the listener in a log.
        await until_async(lambda: knows_of_listener(others[0], to.replace("*", "alert")))
    return person


async def knows_of_listener(server: RunningServer, channel: str) -> bool:
    others = server.bayeux.state.hub.others
    return others is not None and others.may_have_rows(LISTENS_ROW + channel)


@pytest.mark.parametrize("pattern", ["/sys/alert", "/sys/**"])
async def test_events_of_all_shards_reach_an_operator_of_any(
    both: Workers, ada: Operator, pattern: str
) -> None:
    watcher = await signed_in(both, ada, 1, to=pattern)
    for number in (0, 1):
        event = {"channel": "/sys/alert", "data": {"kind": "made up", "number": number}}
        both.servers[number].bayeux.state.system_events.publish(event)
    shards: dict[int, int] = {}
    ack = 0
    async with asyncio.timeout(LIMIT_S):
        while len(shards) < 2:
            *events, reply = await watcher.connect(timeout_ms=5000, ack=ack)
            shards |= {each["data"]["number"]: each["data"]["shard"] for each in events}
            ack = reply["ext"]["ack"]
    assert shards == {0: 0, 1: 1}


async def test_an_operator_hears_of_sessions_and_dead_letters_of_another_shard(
    both: Workers, ada: Operator
) -> None:
    watcher = await signed_in(both, ada, 1, to="/sys/*")
    bob = both.person(0)
    await bob.handshake()
    await bob.reply("/meta/subscribe", subscription="/news")
    await bob.reply("/news", data="no news")
    event, *_ = await bob.connect()
    refused = {"seq": event["ext"]["delivery"]["seq"], "errorCode": "user.update.error"}
    assert (await bob.reply("/service/delivery", data=[refused]))["successful"]
    await bob.reply("/meta/disconnect")
    heard: list[str] = []
    ack = 0
    # A dead letter is reported once the store has it, which may be behind the end of its session.
    async with asyncio.timeout(LIMIT_S):
        while len(heard) < 3:
            *events, reply = await watcher.connect(timeout_ms=5000, ack=ack)
            # Figures are of all shards, and say none.
            heard += [each["channel"] for each in events if each["data"].get("shard") == 0]
            ack = reply["ext"]["ack"]
    assert sorted(heard) == ["/sys/deadMessage", "/sys/login", "/sys/logout"]


async def test_other_shards_hear_that_nobody_listens_any_more(both: Workers, ada: Operator) -> None:
    watcher = await signed_in(both, ada, 1, to="/sys/alert")
    await watcher.reply("/meta/unsubscribe", subscription="/sys/alert")

    async def is_forgotten() -> bool:
        return not await knows_of_listener(both.servers[0], "/sys/alert")

    await until_async(is_forgotten)


async def test_a_command_over_bayeux_runs_where_its_session_is(
    both: Workers, ada: Operator
) -> None:
    command = Commander(await signed_in(both, ada, 0))
    for key in await named(both):
        home = both.home_of(key.partition("/")[0])
        done = await command(f"client/{key}/?dispatcherActive", value="false")
        assert done["successful"], done
        assert (done["data"]["value"], done["data"]["shard"]) == ("false", home)
        assert (await ada.get(f"/sessions/{key}"))["hold"]["who"].startswith("operator client/")
        asked = await command(f"client/{key}/?cbQueueNumMsgs")
        assert asked["data"] == {
            "command": f"/node/holdfast/client/{key}/?cbQueueNumMsgs",
            "value": "0",
            "shard": home,
        }
    entries = await ada.audited(1)
    assert {each["action"] for each in entries} == {"command"}


async def test_a_command_over_bayeux_about_nobody_is_refused(both: Workers, ada: Operator) -> None:
    command = Commander(await signed_in(both, ada, 0))
    for text in ("client/nobody/1/?connectionState", "client/nobody/?killClient"):
        done = await command(text)
        assert (done["successful"], done["data"]["code"]) == (False, "user.illegalArgument")


async def test_a_reader_gives_no_commands_that_change_something_elsewhere(
    both: Workers, tmp_path: Path
) -> None:
    [key] = [each for each in await named(both) if both.home_of(each.partition("/")[0])]
    reader = both.person(0)
    secret = (tmp_path / "data" / "reader-token").read_text().strip()
    await reader.handshake(token=secret)
    command = Commander(reader)
    done = await command(f"client/{key}/?killSession")
    assert done["data"]["code"] == "user.security.authorization.notAuthorized"
    assert (await command(f"client/{key}/?connectionState"))["successful"]


class Commander:
    """Gives commands over Bayeux, and waits for their answers."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self._ack = self._calls = 0

    async def __call__(self, text: str, **given: str) -> Json:
        """The answer, which may come behind the reply to the publish."""
        self._calls += 1
        id, data = str(self._calls), {"cmd": text, **given}
        found = await self._person.ask("/service/admin", data=data, id=id)
        while not (answers := [each for each in found if "data" in each and each["id"] == id]):
            found = await self._person.connect(timeout_ms=5000, ack=self._ack)
            self._ack = found[-1]["ext"]["ack"]
        return answers[0]
