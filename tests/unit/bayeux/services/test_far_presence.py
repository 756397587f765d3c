"""All shards know who is on a channel, wherever the sessions are."""

from typing import Any

import pytest

from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Client, Json
from tests.unit.bayeux.publish.addressing import named
from tests.unit.bayeux.publish.shards import World

ROOM = "/room/a"
RULES = {"/room/*": ChannelSettings(presence=True)}


def settled(world: World, seconds: float = 0.3) -> None:
    """Let the shards tell each other."""
    for shard in world.shards:
        shard.server.advance(seconds)
    for _ in range(3):
        world.read_all()


@pytest.fixture
def world() -> World:
    world = World(2, channels=RULES)
    settled(world)
    return world


def enter(world: World, shard: int, room: str = ROOM) -> Client:
    client = world.client(shard)
    client.subscribe(room)
    client.server.turn()
    return client


def data_on(client: Client, channel: str) -> list[Json]:
    client.server.turn()
    asked = client.connect(advice={"timeout": 0})
    client.server.turn()
    return [each["data"] for each in asked.events if each["channel"] == channel]


def asked(client: Client, **options: Any) -> Json:
    asked = client.publish("/service/presence", {"channel": ROOM, **options})
    client.server.turn()
    # Other events travel with the reply, too.
    found: list[Json] = [each["data"] for each in asked.elements if "data" in each]
    [answer] = [each for each in found if "members" in each]
    return answer


def names(members: list[Json]) -> list[str]:
    return [each["session"] for each in members]


def test_members_at_all_shards_are_listed_in_the_order_of_joining(world: World) -> None:
    first = enter(world, 0)
    second = enter(world, 1)
    third = enter(world, 0)
    settled(world)
    order = [each.session.name for each in (first, second, third)]
    for client in (first, second):
        answer = asked(client)
        assert (answer["count"], names(answer["members"])) == (3, order)
        assert [each["state"] for each in answer["members"]] == ["here"] * 3


def test_a_list_continues_behind_members_of_any_shard(world: World) -> None:
    clients = [enter(world, number % 2) for number in range(5)]
    settled(world)
    found: list[str] = []
    after = None
    while True:
        page = asked(clients[0], limit=2, **({} if after is None else {"after": after}))
        found += names(page["members"])
        after = page["next"]
        if after is None:
            break
    assert found == [each.session.name for each in clients]


def test_watchers_hear_of_members_at_other_shards(world: World) -> None:
    watcher = world.client(0)
    watcher.subscribe("/sys/presence/room/*")
    member = enter(world, 1)
    settled(world)
    member.send({"channel": "/meta/unsubscribe", "subscription": ROOM})
    settled(world)
    joined, left = data_on(watcher, "/sys/presence/room/a")
    assert (joined["count"], names(joined["joined"])) == (1, [member.session.name])
    assert (left["count"], names(left["left"])) == (0, [member.session.name])


def test_watchers_hear_of_states_at_other_shards(world: World) -> None:
    watcher = world.client(0)
    watcher.subscribe("/sys/presence/room/*")
    member = named(world, "ann/1")
    member.subscribe(ROOM)
    settled(world)
    world.shards[1].server.advance(300)
    settled(world)
    states = [
        each["state"]
        for event in data_on(watcher, "/sys/presence/room/a")
        for each in event["joined"] + event["changed"]
    ]
    assert states == ["here", "absent"]


def test_a_shard_that_is_killed_tells_who_is_left_and_hears_who_is_elsewhere(world: World) -> None:
    stays, guest, other = named(world, "ann/1"), enter(world, 1), enter(world, 0)
    stays.subscribe(ROOM)
    settled(world)
    assert asked(other)["count"] == 3
    world.shards[1].kill()
    settled(world)
    assert names(asked(other)["members"])[-1:] != [guest.session.name]
    assert {*names(asked(other)["members"])} == {stays.session.name, other.session.name}
    assert asked(world.client(1))["count"] == 2


def test_watchers_hear_who_has_left_while_all_servers_were_replaced(world: World) -> None:
    watcher, member, stays = world.client(0), named(world, "ann/1"), enter(world, 1)
    watcher.subscribe("/sys/presence/room/*")
    member.subscribe(ROOM)
    settled(world)
    data_on(watcher, "/sys/presence/room/a")
    world.shards[0].restart()
    watcher.server = world.shards[0].server
    # The other one has not told everything again when its member leaves.
    world.shards[1].restart()
    member.server = stays.server = world.shards[1].server
    member.send({"channel": "/meta/unsubscribe", "subscription": ROOM})
    settled(world)
    settled(world)
    [event] = data_on(watcher, "/sys/presence/room/a")
    assert (event["count"], names(event["left"])) == (1, [member.session.name])
    assert not event["joined"]


def test_the_members_of_a_shard_that_is_lost_leave_and_come_back_with_it(world: World) -> None:
    # Named sessions last longer than that.
    watcher, member = named(world, "bob/1"), named(world, "ann/1")
    for each in (watcher, member):
        each.subscribe(ROOM)
    settled(world)
    world.shards[0].away.add(1)
    settled(world, 9.0)
    assert asked(world.client(0))["count"] == 2
    settled(world, 2.0)
    assert names(asked(world.client(0))["members"]) == [watcher.session.name]
    world.shards[0].away.clear()
    settled(world)
    settled(world)
    assert member.session.name in names(asked(world.client(0))["members"])


def test_without_presence_shards_tell_nothing() -> None:
    world = World(2)
    settled(world)
    assert [shard.keeper.log for shard in world.shards] == [[], []]


def test_shards_that_have_told_everything_are_still(world: World) -> None:
    enter(world, 1)
    settled(world)
    before = [len(shard.keeper.log) for shard in world.shards]
    for _ in range(5):
        settled(world, 1.0)
    assert [len(shard.keeper.log) for shard in world.shards] == before
