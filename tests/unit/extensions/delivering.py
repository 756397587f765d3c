"""Clients that give verdicts, and a server that listens to them."""

from functools import partial
from typing import Any

from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Asked, Client, House, Json

HOLDBACK = "user.update.holdback"


def house_of(**options: Any) -> House:
    return House(DeliveryWire, partial(Ack, announces_batch=False), **options)


def receiver(house: House, *, ack: bool = True, **options: Any) -> Client:
    """A client with verdicts and, by default, with acks."""
    ext: Json = {"delivery": options or True}
    if ack:
        ext["ack"] = True
    client = house.client(ext=ext)
    connect(client)
    client.subscribe("/a")
    house.turn()
    return client


def connect(client: Client, *verdicts: Any, **fields: Any) -> Asked:
    """A connect that does not wait; by default, it acks the last batch."""
    ext: Json = {"delivery": {"verdicts": list(verdicts), **fields.pop("delivery", {})}}
    ack = fields.pop("ack", client.session.queue.batch)
    if ack is not None:
        ext["ack"] = ack
    fields.setdefault("advice", {"timeout": 0})
    return client.connect(ext=ext, **fields)


def publish(house: House, *numbers: object, channel: str = "/a") -> None:
    for number in numbers:
        house.server.publish(channel, number)


def ok(event: Json) -> Json:
    return {"seq": event["ext"]["delivery"]["seq"], "state": "OK"}


def no(event: Json, code: str, message: str = "", **fields: Any) -> Json:
    seq = event["ext"]["delivery"]["seq"]
    return {"seq": seq, "errorCode": code, "message": message, **fields}


def codes(house: House) -> list[str]:
    return [letter.code for letter in house.keeper.letters]


def data_of(house: House) -> list[Any]:
    return [letter.envelope()["content"] for letter in house.keeper.letters]


def redelivered(asked: Asked) -> list[int]:
    return [event["ext"]["delivery"].get("redelivered", 0) for event in asked.events]
