"""Shards with a work queue, and sessions of any shard that take its work."""

from typing import Any

from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client, Json
from tests.unit.bayeux.publish.shards import World
from tests.unit.extensions.delivering import connect

# Its home is the second of two shards, and the second of three.
JOBS = "/home/a"
RULES: dict[str, Any] = {"channels": {"/home/**": ChannelSettings(work_queue=True)}}


def working(number: int = 2, **options: Any) -> World:
    """Shards that know each other."""
    world = World(number, **{**RULES, **options})
    settled(world)
    return world


def settled(world: World, seconds: float = 0.3) -> None:
    """Let some time pass, and everybody hear everything."""
    for _ in range(round(seconds * 10)):
        for shard in world.shards:
            shard.server.advance(0.1)
        world.read_all()


def taker(world: World, name: str, *, channel: str = JOBS, **options: Any) -> Client:
    """A named session with acks and verdicts, at its home, that takes work."""
    server = world.shards[world.home_of(name)].server
    client = server.guest()
    client.handshake(ext={"ack": True, "delivery": {"session": name, **options}})
    server.turn()
    connect(client)
    client.subscribe(channel)
    server.turn()
    world.read_all()
    return client


def put(world: World, shard: int, *jobs: object, **qos: Any) -> list[Json]:
    """Publish work at a shard; the replies."""
    boss = world.client(shard)
    replies = []
    for job in jobs:
        asked = boss.publish(JOBS, job, **({"ext": {"delivery": qos}} if qos else {}))
        boss.server.turn()
        world.read_all()
        boss.server.turn()
        replies.append(asked.reply)
    boss.disconnect()
    boss.server.turn()
    world.read_all()
    return replies


def fetch(world: World, client: Client, *verdicts: Any, **fields: Any) -> Asked:
    """What the client gets at once; the last batch is acked."""
    asked = connect(client, *verdicts, **fields)
    client.server.turn()
    world.read_all()
    client.server.turn()
    return asked


def waiting(world: World, shard: int = 1) -> list[int]:
    """The jobs that no session has."""
    queue = world.shards[shard].server.bayeux.state.work.of(JOBS)
    messages = () if queue is None else queue.queue.new
    return [int(message.wire.rpartition(b":")[2][:-1]) for message in messages]


def is_done(world: World) -> bool:
    """Whether no shard has work any more, in memory or in its store."""
    places = [shard.server.bayeux.state.work for shard in world.shards]
    stored = [queue for shard in world.shards for queue in shard.keeper.queues.values()]
    return not any(each.queues() for each in places) and not any(stored)


def balances(world: World) -> bool:
    return all(shard.server.balances() for shard in world.shards)


def outcomes(world: World) -> dict[str, int]:
    """How many entries of all shards were acked, and how many accepted but not moved."""
    counters = [shard.server.bayeux.state.counters for shard in world.shards]
    return {
        "acked": sum(each.acked for each in counters),
        "dead": sum(each.dead for each in counters),
    }
