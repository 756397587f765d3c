"""Servers that replace one another, and clients that outlive them."""

from functools import partial
from typing import Any, Self

from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Asked, Client, Json, Server
from tests.unit.bayeux.slow_store import SlowStore
from tests.unit.extensions.delivering import redelivered


class RestartableServer(Server):
    """A server whose store survives it."""

    def __init__(self, *, after: "RestartableServer | None" = None, **options: Any) -> None:
        self.store: SlowStore = SlowStore() if after is None else after.store
        super().__init__(
            DeliveryWire,
            partial(Ack, announces_batch=False),
            keeper=self.store,
            after=after,
            **options,
        )
        self._options = options

    def reborn(self, **options: Any) -> Self:
        """The server that starts a moment after this one was killed."""
        self.now = round(self.now + 0.1, 1)
        new = type(self)(after=self, **{**self._options, **options})
        new.bayeux.life.topics.expect(dict(self.store.topics))
        self.store.reopen()
        for record, entries in self.store.load(partial(restore_without_session, new.bayeux.life)):
            restore(new.bayeux.life, record, entries, new.now)
        new.bayeux.life.topics.restore()
        new.turn()
        return new


def named(server: Server, *, ack: bool = True, name: str = "joe/1", **options: Any) -> Client:
    """A client of a named session that is connected and subscribed to /a."""
    client = server.guest()
    take(client, ack=ack, name=name, **options)
    connect(client, 0 if ack else None)
    client.subscribe("/a")
    server.turn()
    return client


def take(client: Client, *, ack: bool = True, name: str = "joe/1", **options: Any) -> Asked:
    ext: Json = {"delivery": {"session": name, **options}}
    if ack:
        ext["ack"] = True
    return client.handshake(ext=ext)


def again(client: Client, server: Server) -> Client:
    """The same client at another server."""
    other = Client(server, browser=client.browser)
    other.client_id = client.client_id
    return other


def connect(client: Client, ack: int | None, *verdicts: Json, **fields: Any) -> Asked:
    """A connect that does not wait, answered as soon as the store has answered."""
    delivery = {"verdicts": list(verdicts), "pending": fields.pop("pending", [])}
    ext: Json = {"delivery": delivery}
    if ack is not None:
        ext["ack"] = ack
    asked = client.connect(ext=ext, **{"advice": {"timeout": 0}, **fields})
    if fields.get("wire") is None:
        client.server.turn()
    return asked


def drain(client: Client, ack: int | None) -> tuple[list[object], list[int]]:
    """Settle all messages; return their data, and how often each was redelivered."""
    data: list[object] = []
    counts: list[int] = []
    answer = connect(client, ack)
    while answer.events:
        data += answer.data
        counts += redelivered(answer)
        if ack is None:
            answer = connect(client, None, *map(ok, seqs(answer)))
        else:
            answer = connect(client, batch(answer))
    return data, counts


def publish(server: Server, *numbers: object) -> None:
    for number in numbers:
        server.for_extensions.publish("/a", number)
    server.turn()


def batch(asked: Asked) -> int:
    """The batch of an answer."""
    number: int = asked.elements[-1]["ext"]["ack"]
    return number


def seqs(asked: Asked) -> list[int]:
    return [event["ext"]["delivery"]["seq"] for event in asked.events]


def no(seq: int, code: str = "user.update.holdback", **fields: Any) -> Json:
    return {"seq": seq, "errorCode": code, **fields}


def ok(seq: int) -> Json:
    return {"seq": seq, "state": "OK"}


def codes(server: RestartableServer) -> list[str]:
    return [letter.code for letter in server.store.letters]
