"""Clients that give verdicts, and a server that listens to them."""

from typing import Any

from tests.unit.bayeux.harness import Asked, Client, Json, Server

HOLDBACK = "user.update.holdback"


def receiver(server: Server, *, ack: bool = True, **options: Any) -> Client:
    """A client with verdicts and, by default, with acks."""
    ext: Json = {"delivery": options or True}
    if ack:
        ext["ack"] = True
    client = server.client(ext=ext)
    connect(client)
    client.subscribe("/a")
    server.turn()
    return client


def connect(client: Client, *verdicts: Any, **fields: Any) -> Asked:
    """A connect that does not wait; by default, it acks the last batch."""
    ext: Json = {"delivery": {"verdicts": list(verdicts), **fields.pop("delivery", {})}}
    ack = fields.pop("ack", client.session.queue.batch)
    if ack is not None:
        ext["ack"] = ack
    fields.setdefault("advice", {"timeout": 0})
    return client.connect(ext=ext, **fields)


def publish(server: Server, *numbers: object, channel: str = "/a") -> None:
    for number in numbers:
        server.for_extensions.publish(channel, number)


def ok(event: Json) -> Json:
    return {"seq": event["ext"]["delivery"]["seq"], "state": "OK"}


def no(event: Json, code: str, message: str = "", **fields: Any) -> Json:
    seq = event["ext"]["delivery"]["seq"]
    return {"seq": seq, "errorCode": code, "message": message, **fields}


def codes(server: Server) -> list[str]:
    return [letter.code for letter in server.keeper.letters]


def redelivered(asked: Asked) -> list[int]:
    return [event["ext"]["delivery"].get("redelivered", 0) for event in asked.events]
