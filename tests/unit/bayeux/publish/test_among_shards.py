"""A shard refuses what another one holds, and accepts what it did alone."""

from holdfast.delivery.guard.holds import ChannelHold
from tests.unit.bayeux.harness import Client
from tests.unit.bayeux.publish.shards import World


def held_error(client: Client) -> str:
    asked = client.publish("/news", 1, ext={"delivery": {"refuseHeld": True}})
    client.server.turn()
    return str(asked.reply.get("error", ""))


def test_a_channel_that_another_shard_holds_is_held() -> None:
    world = World(2)
    client, far = world.client(0), world.shards[1].server.bayeux.life.channel_holds
    for _ in range(2):
        assert held_error(client) == ""
        far.hold("/news", "", "operator/ann")
        far.hold("/news", "again", "operator/ann")
        assert held_error(client) == "503:communication.user.holdback,/news:channel_held_back"
        far.release("/news", "operator", "operator/ann")
        far.release("/news", "operator", "operator/ann")
    assert held_error(client) == ""


def test_a_channel_held_by_the_process_before_is_held() -> None:
    world = World(2)
    held = ChannelHold(1, "stock-taking", "operator/ann")
    assert world.shards[1].server.bayeux.state.guard.restore("/news", held, 0.0)
    assert "channel_held_back" in held_error(world.client(0))


def test_nothing_is_accepted_that_may_be_held_by_a_shard_that_has_not_said() -> None:
    world = World(2)
    world.shards[0].away = {1}
    assert "shard_unavailable" in held_error(world.client(0))


def test_without_requests_messages_to_unknown_services_are_ignored_as_ever() -> None:
    asked = World(2).client(0).publish("/service/add", [1, 2])
    assert asked.reply["successful"]
