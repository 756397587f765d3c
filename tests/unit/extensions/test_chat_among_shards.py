"""The chat with several workers: its people meet wherever their sessions are."""

import pytest

from holdfast.extensions.chat import AWAY, PRIVATE, ROOMS, UNKNOWN, Chat
from tests.unit.bayeux.harness import Client, Json
from tests.unit.bayeux.publish.addressing import named
from tests.unit.bayeux.publish.shards import World
from tests.unit.bayeux.services.test_far_presence import settled
from tests.unit.extensions.delivering import connect

LOBBY = ROOMS + "lobby"


@pytest.fixture
def world() -> World:
    world = World(2)
    for shard in world.shards:
        Chat(shard.server.for_extensions)
    settled(world)
    return world


def enter(world: World, name: str) -> Client:
    client = named(world, name)
    client.subscribe(LOBBY)
    settled(world)
    connect(client)
    client.server.turn()
    return client


def whisper(client: Client, to: str) -> None:
    client.publish("/service/chat/private", {"id": "1", "to": to, "text": "psst"})
    client.server.turn()


def heard(client: Client, channel: str) -> list[Json]:
    client.server.turn()
    asked = connect(client)
    client.server.turn()
    return [
        each["data"] for each in asked.elements if each["channel"] == channel and "data" in each
    ]


def test_members_of_a_room_see_each_other(world: World) -> None:
    enter(world, "ann/1")
    bob = enter(world, "bob/1")
    bob.publish("/service/presence", {"channel": LOBBY})
    [answer] = heard(bob, "/service/presence")
    assert [each["subject"] for each in answer["members"]] == ["ann", "bob"]


@pytest.mark.parametrize("to", ["ann", "dan"])
def test_a_private_message_reaches_a_person_at_any_worker(world: World, to: str) -> None:
    bob, other = enter(world, "bob/1"), enter(world, f"{to}/1")
    whisper(bob, to)
    world.read_all()
    [told] = heard(bob, PRIVATE)
    assert (told["receivers"], told["text"]) == (1, "psst")
    [private] = heard(other, PRIVATE)
    assert private == {"id": "1", "to": to, "text": "psst", "from": "bob"}


def test_a_person_that_is_nowhere_is_unknown(world: World) -> None:
    bob = enter(world, "bob/1")
    whisper(bob, "ann")
    world.read_all()
    assert [each["error"] for each in heard(bob, PRIVATE)] == [UNKNOWN]


def test_without_an_answer_the_person_cannot_be_reached(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = enter(world, "bob/1")
    whisper(bob, "ann")
    world.shards[0].give_up()
    assert [each["error"] for each in heard(bob, PRIVATE)] == [AWAY]
    monkeypatch.setattr(world.shards[0], "may_send", lambda _: False)
    whisper(bob, "ann")
    assert [each["error"] for each in heard(bob, PRIVATE)] == [AWAY]


def test_an_unreadable_question_or_answer_is_none(world: World) -> None:
    bob = enter(world, "bob/1")
    enter(world, "ann/1")
    for number in range(3):
        whisper(bob, "ann")
        log = world.shards[0].keeper.log
        asked, shard = log[-1]
        data = [b"?", asked.data.replace(PRIVATE.encode(), b"/service/none"), asked.data][number]
        log[-1] = (asked._replace(data=data), shard)
        world.shards[1].read(0, 1 << 30)
        if number == 2:
            answers = world.shards[1].keeper.log
            answers[-1] = (answers[-1][0]._replace(data=b"[]"), 0)
        world.read_all()
        assert [each["error"] for each in heard(bob, PRIVATE)] == [AWAY]
