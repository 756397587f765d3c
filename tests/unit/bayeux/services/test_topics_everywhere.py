"""Clients read and empty the histories of all shards by `/service/topics`."""

from typing import Any

import pytest

from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client, Json
from tests.unit.bayeux.publish.shards import World

# The homes of these are the second and the first of two shards.
NEWS, SPORT = "/home/a", "/home/b"
RULES = {"/home/**": ChannelSettings(history=1000, history_bytes=10_000_000)}
AWAY = "resource.cluster.notAvailable"


@pytest.fixture
def world() -> World:
    world = World(2, channels=RULES)
    for number in range(3):
        say(world, NEWS, number)
        say(world, SPORT, -number)
    return world


def say(world: World, channel: str, data: object) -> None:
    client = world.client(0)
    client.publish(channel, data)
    client.server.turn()
    world.read_all()


def ask(world: World, client: Client, **data: Any) -> Json:
    asked = client.publish("/service/topics", data)
    return answered(world, client, asked)


def answered(world: World, client: Client, asked: Asked) -> Json:
    client.server.turn()
    world.read_all()
    client.server.turn()
    events = [*asked.elements, *client.connect(advice={"timeout": 0}).elements]
    [answer] = [each for each in events if "data" in each]
    data: Json = answer["data"]
    return {**data, "successful": answer["successful"]}


def numbers(answer: Json) -> list[Any]:
    return [each["data"] for each in answer["messages"]]


@pytest.mark.parametrize("shard", [0, 1])
def test_any_shard_reads_the_histories_of_all(world: World, shard: int) -> None:
    client = world.client(shard)
    everything = {"history": {"numEntries": -1}}
    assert numbers(ask(world, client, get=NEWS, **everything)) == [2, 1, 0]
    found = ask(world, client, get="/home/*", **everything)
    assert (numbers(found), found["complete"]) == ([2, 1, 0, -2, -1, 0], True)
    found = ask(world, client, get="/home/*", limit=4, **everything)
    assert (numbers(found), found["complete"]) == ([2, 1, 0, -2], False)


def test_a_filter_and_a_count_hold_at_the_home(world: World) -> None:
    client = world.client(0)
    found = ask(world, client, get=NEWS, history={"numEntries": 3}, filter="data < 2")
    assert numbers(found) == [1, 0]
    assert numbers(ask(world, client, get=NEWS)) == [2]


def test_what_is_wrong_with_a_call_is_said_here(world: World) -> None:
    client = world.client(0)
    for data in ({"get": NEWS, "filter": "data <"}, {"get": NEWS, "limit": 0}):
        assert ask(world, client, **data)["code"] == "user.illegalArgument"
    wrong = {"erase": NEWS, "history": {"numEntries": 2}}
    assert ask(world, client, **wrong)["code"] == "user.illegalArgument"
    assert world.shards[0].sent.late == 0


def test_a_long_answer_is_cut(world: World) -> None:
    for _ in range(4):
        say(world, NEWS, "x" * 100_000)
    found = ask(world, world.client(0), get=NEWS, history={"numEntries": -1})
    assert (len(found["messages"]), found["complete"]) == (1, False)


@pytest.mark.parametrize("shard", [0, 1])
def test_any_shard_empties_the_histories_of_all(world: World, shard: int) -> None:
    client = world.client(shard)
    emptied = ask(world, client, erase="/home/*", history={"numEntries": -1})
    assert (emptied["emptied"], emptied["messages"]) == ([NEWS, SPORT], 6)
    assert numbers(ask(world, client, get="/home/*")) == []


def test_histories_here_need_no_call(world: World) -> None:
    client = world.client(0)
    before = len(world.shards[0].keeper.log)
    assert numbers(ask(world, client, get=SPORT)) == [-2]
    everything = {"numEntries": -1}
    assert ask(world, client, erase=SPORT, history=everything)["emptied"] == [SPORT]
    assert len(world.shards[0].keeper.log) == before


def test_without_an_answer_of_a_home_the_call_fails(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = world.client(0)
    asked = client.publish("/service/topics", {"get": "/home/*"})
    world.shards[0].give_up()
    found = answered(world, client, asked)
    assert (found["code"], found["successful"]) == (AWAY, False)
    monkeypatch.setattr(world.shards[0], "may_send", lambda _: False)
    assert ask(world, client, get=NEWS)["code"] == AWAY


def test_a_call_that_a_home_cannot_read_fails(world: World) -> None:
    client = world.client(0)
    asked = client.publish("/service/topics", {"get": NEWS})
    log = world.shards[0].keeper.log
    log[-1] = (log[-1][0]._replace(data=b"?"), 1)
    assert answered(world, client, asked)["code"] == AWAY
