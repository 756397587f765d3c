"""What an operator does to a server without a network."""

from functools import partial
from typing import Any

from holdfast.bayeux.command_scope import CommandScope, Process
from holdfast.bayeux.commands import Result, run, understand
from holdfast.bayeux.replaying import Replaying
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Client, House


def house_of(**options: Any) -> House:
    return House(DeliveryWire, partial(Ack, announces_batch=False), **options)


def receiver(house: House, session: str | None = "joe/1", **options: Any) -> Client:
    """A session with an empty queue, subscribed to /a."""
    if session is not None:
        options["session"] = session
    client = house.client(ext={"ack": True, "delivery": options or True})
    connect(client)
    client.subscribe("/a")
    house.turn()
    return client


def connect(client: Client) -> list[Any]:
    batch = client.session.queue.batch
    asked = client.connect(advice={"timeout": 0}, ext={"ack": batch})
    # A reply with a redelivery is sent when the store knows of it.
    client.house.turn()
    return asked.data


def scope_of(house: House, **fields: Any) -> CommandScope:
    return CommandScope(
        house.bayeux.life, Process("1.2", 1_700_000_000_000), lambda: house.now, **fields
    )


def replaying_of(house: House) -> Replaying:
    state = house.bayeux.state
    return Replaying(
        state.hub,
        state.sessions,
        state.work,
        state.node,
        state.journal,
        state.notices,
        lambda: house.now,
    )


def ask(house: House, text: str, value: str | None = None) -> Result:
    return run(understand(text, value), scope_of(house), "operator")


def value_of(house: House, text: str) -> str:
    return ask(house, text).value


def publish(house: House, *numbers: object) -> None:
    for number in numbers:
        house.server.publish("/a", number)
    # What a named session gets is stored first.
    house.turn()


def letters(house: House) -> list[Any]:
    return [letter.envelope()["content"] for letter in house.keeper.letters]
