"""Clients at the homes of their subjects, who address messages to each other."""

from typing import Any

from holdfast.bayeux.wire.caller import UNKNOWN, Caller
from tests.unit.bayeux.harness import Asked, Client, Json
from tests.unit.bayeux.publish.shards import World
from tests.unit.extensions.delivering import connect


def named(world: World, name: str, caller: Caller = UNKNOWN) -> Client:
    """A client with this session, at its home."""
    server = world.shards[world.home_of(name)].server
    client = server.guest(caller=caller)
    client.handshake(ext={"ack": True, "delivery": {"session": name}})
    server.turn()
    return client


def heard(client: Client) -> list[Any]:
    """All that waits for a client; everything is acked."""
    found: list[Any] = []
    while True:
        asked = connect(client)
        client.server.turn()
        if not asked.data:
            return found
        found += asked.data


def address(client: Client, data: object, *destinations: Any, **delivery: Any) -> Asked:
    fields = {"ext": {"delivery": delivery}} if delivery else {}
    content = {"destinations": list(destinations), "content": data}
    asked = client.publish("/service/ptp", content, **fields)
    client.server.turn()
    return asked


def delay(writer: Client, to: str, **delivery: Any) -> Asked:
    qos = {"delay": 1000, "destinations": [to], "subscribable": False, **delivery}
    asked = writer.publish("/news", "hello", ext={"delivery": qos})
    writer.server.turn()
    return asked


def forced(name: str) -> Json:
    return {"name": name, "forceQueuing": True}


def to_all(client: Client, data: object, *destinations: Any, **delivery: Any) -> Asked:
    """Publish to the subscribers of a channel, and to destinations."""
    qos = {"destinations": list(destinations), **delivery}
    asked = client.publish("/news", data, ext={"delivery": qos})
    client.server.turn()
    return asked


def subscribed(world: World, name: str, channel: str = "/news") -> Client:
    client = named(world, name)
    client.subscribe(channel)
    client.server.turn()
    return client


def reported(reply: Json) -> list[tuple[str, str]]:
    found = reply["ext"]["delivery"]["destinations"]
    return [(each["name"], each.get("errorCode", each["state"])) for each in found]
