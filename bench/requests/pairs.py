"""Pairs of a requester and a responder: four ways to get an answer to a number."""

from typing import Protocol

from bench.requests.connections import Connection, Post, Socket
from bench.requests.people import Person


class Pair(Protocol):
    """A requester and a responder. With many pairs, all take one step before the next."""

    def ask(self, number: int) -> None: ...

    def answer(self) -> None:
        """Answer, unless the server itself does."""

    def get(self) -> int:
        """Return the number in the answer."""

    def settle(self) -> None:
        """Wait for the remaining replies of the server."""

    def close(self) -> None: ...


class _Two:
    """Ann asks, and Bob answers."""

    _ann: Person
    _bob: Person

    def settle(self) -> None:
        self._ann.settle()
        self._bob.settle()

    def close(self) -> None:
        self._ann.close()
        self._bob.close()


class Asking(_Two):
    """A request of Holdfast; with `calls`, a remote call as cometd.js makes it."""

    def __init__(self, url: str, transport: str, number: int, *, calls: bool = False) -> None:
        channel = f"/data/power/{number}"
        self._target = f"/service{channel}" if calls else channel
        self._bob = Person(url, transport)
        self._bob.subscribe(channel)
        self._ann = Person(url, transport, **({} if calls else {"request": True}))

    def ask(self, number: int) -> None:
        if self._ann.ret:
            reply_to = f"{self._ann.ret}/{3_000_000 + number}"
            self._ann.say(self._target, number, replyTo=reply_to, timeout=10_000)
        else:
            self._ann.say(self._target, number)

    def answer(self) -> None:
        [request] = self._bob.hear()
        self._bob.say(request["ext"]["replyTo"], request["data"])

    def get(self) -> int:
        [reply] = self._ann.hear()
        number: int = reply["data"]
        return number


class Relayed(_Two):
    """A request to another client, as an application on CometD for Node passes it on."""

    def __init__(self, url: str, transport: str, number: int) -> None:
        self._to = number
        self._bob = Person(url, transport)
        self._bob.say("/service/answerer", number)
        self._bob.settle()
        self._ann = Person(url, transport)

    def ask(self, number: int) -> None:
        self._ann.say("/service/ask", {"to": self._to, "number": number})

    def answer(self) -> None:
        [request] = self._bob.hear()
        self._bob.say("/service/answer", request["data"])

    def get(self) -> int:
        [reply] = self._ann.hear()
        number: int = reply["data"]["number"]
        return number


class Served:
    """A request that a service of the server answers."""

    def __init__(self, url: str, transport: str, number: int) -> None:
        self._ann = Person(url, transport)

    def ask(self, number: int) -> None:
        self._ann.say("/service/echo", number)

    def answer(self) -> None:
        pass

    def get(self) -> int:
        [reply] = self._ann.hear()
        number: int = reply["data"]
        return number

    def settle(self) -> None:
        self._ann.settle()

    def close(self) -> None:
        self._ann.close()


class Echoed:
    """A message that a bare aiohttp server sends back."""

    def __init__(self, url: str, transport: str, number: int) -> None:
        is_socket = transport == "websocket"
        self._connection: Connection = Socket(f"{url}/socket") if is_socket else Post(f"{url}/post")

    def ask(self, number: int) -> None:
        self._connection.send([{"channel": "/data/power", "data": number}])

    def answer(self) -> None:
        pass

    def get(self) -> int:
        [message] = self._connection.receive()
        number: int = message["data"]
        return number

    def settle(self) -> None:
        pass

    def close(self) -> None:
        self._connection.close()
