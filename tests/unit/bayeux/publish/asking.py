"""Clients at several shards, or at one, who ask each other."""

from typing import Any

from holdfast.extensions.request import Request
from tests.unit.bayeux.harness import Json, Socket
from tests.unit.bayeux.publish.shards import World
from tests.unit.extensions.requesting import Person

POWER = "/data/power"
TIMEOUT = f"408:{POWER}:timeout"
NO_RESPONDERS = f"404:{POWER}:no_responders"


def asking(number: int, **options: Any) -> World:
    """Shards whose clients may ask for replies."""
    return World(number, Request, **options)


def comes(world: World, name: str, **ext: Any) -> Person:
    """The client of a named session, at its home."""
    server = world.shards[world.home_of(name)].server
    delivery = {"session": name}
    person = Person.come(server, {"request": True, "ack": True, "delivery": delivery, **ext})
    person.connect(ext={"ack": 0})
    return person


def guest(world: World, shard: int) -> Person:
    return Person.come(world.shards[shard].server, {"request": True})


def listening(world: World, name: str, channel: str = POWER) -> Person:
    person = comes(world, name)
    person.subscribe(channel)
    person.server.turn()
    person.hear()
    return person


def comes_back(world: World, name: str, before: Person) -> Person:
    """The next client of the session after a kill, which keeps the reply channel."""
    server = world.shards[world.home_of(name)].server
    person = Person(server, socket=Socket(), browser=before.browser)
    person.shake({"delivery": {"session": name}, "ack": True, "request": before.ret})
    person.connect(ext={"ack": 0})
    return person


def said(event: Json) -> Any:
    """The reply, or the error."""
    return event.get("error", event["data"])
