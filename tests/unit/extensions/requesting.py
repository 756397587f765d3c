"""Clients that ask and answer."""

from typing import Any

from holdfast.extensions.request import Request
from tests.unit.bayeux.harness import Asked, Client, Json, Server, Socket, server_of

POWER = "/data/power"


def requesting(**options: Any) -> Server:
    """A server whose clients may ask for replies."""
    return server_of(Request, **options)


class Person(Client):
    """A client on a socket, so that events come at once; those that came can be looked at."""

    ret = ""

    @classmethod
    def come(cls, server: Server, ext: Json | None = None, **fields: Any) -> "Person":
        person = cls(server, socket=Socket(), **fields)
        person.shake(ext)
        return person

    def shake(self, ext: Json | None) -> Json:
        asked = self.handshake(ext=ext)
        # A session that the store keeps is answered later.
        elements = self.hear() if asked.is_held else asked.elements
        reply = dict(elements[0])
        self.client_id = reply.get("clientId")
        self.ret = reply.get("ext", {}).get("ret", "")
        self.connect()
        self.server.turn()
        self.hear()
        return reply

    def address(self, serial: int = 1) -> str:
        return f"{self.ret}/{4_000_000 + serial}"

    def ask(self, data: Any = "?", serial: int = 1, channel: str = POWER, **ext: Any) -> Json:
        """Send a request; return the reply to the publish."""
        ext = {"replyTo": self.address(serial), **ext}
        asked = self.publish(channel, data, ext=ext)
        self.server.turn()
        return self._reply(asked)

    def reply(self, event: Json, data: Any = "!", **ext: Any) -> Json:
        """Reply to a request; return the reply to the publish."""
        return self.say(event["ext"]["replyTo"], data, **ext)

    def say(self, channel: str, data: Any = "!", **ext: Any) -> Json:
        fields = {"ext": ext} if ext else {}
        asked = self.publish(channel, data, **fields)
        self.server.turn()
        return self._reply(asked)

    def _reply(self, asked: Asked) -> Json:
        assert self.socket is not None
        if asked.is_held:
            (reply,) = [each for each in self.socket.take() if "successful" in each]
            return dict(reply)
        (reply,) = asked.replies
        frames = self.socket.frames
        self.socket.frames = [[each for each in frame if each != reply] for frame in frames]
        return reply

    def heard(self) -> list[Json]:
        """The events that came since the last call."""
        self.server.turn()
        return [each for each in self.hear() if "data" in each]

    def last(self) -> Json:
        """The only event that came."""
        (event,) = self.heard()
        return event


def requester(server: Server, **fields: Any) -> Person:
    return Person.come(server, {"request": True}, **fields)


def responder(server: Server, channel: str = POWER, **fields: Any) -> Person:
    person = Person.come(server, **fields)
    person.subscribe(channel)
    person.hear()
    return person


def figures(server: Server) -> dict[str, int]:
    """How requests ended and what became of replies, as far as anything did."""
    requests = server.bayeux.state.requests
    counted: dict[str, int] = {each.value: count for each, count in requests.ended.items()}
    counted |= {each.value: count for each, count in requests.refused.items()}
    return counted
