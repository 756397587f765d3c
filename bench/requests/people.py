"""The sessions of requesters and responders."""

import selectors

from bench.requests.connections import Connection, Message, Post, Socket

_HANDSHAKE = {"channel": "/meta/handshake", "version": "1.0"}


class Person:
    """A session: it has one connection with WebSocket, and two with long-polling."""

    def __init__(self, url: str, transport: str, **ext: object) -> None:
        is_socket = transport == "websocket"
        self._talk: Connection = Socket(url) if is_socket else Post(url)
        hello = {**_HANDSHAKE, "supportedConnectionTypes": [transport], "ext": ext}
        self._talk.send([hello])
        [reply] = self._talk.receive()
        self._own = {"clientId": reply["clientId"], "id": "1"}
        self.ret = reply.get("ext", {}).get("ret", "")
        cookie = self._talk.cookie if isinstance(self._talk, Post) else ""
        self._listen = self._talk if is_socket else Post(url, cookie)
        self._selector = selectors.DefaultSelector()
        for connection in {self._talk, self._listen}:
            self._selector.register(connection, selectors.EVENT_READ, connection)
        self._connect = {"channel": "/meta/connect", "connectionType": transport, **self._own}
        self._listen.send([{**self._connect, "advice": {"timeout": 0}}])
        self._listen.receive()
        self._listen.send([self._connect])
        # The number of messages that have no reply yet.
        self._unanswered = 0

    def say(self, channel: str, data: object, **ext: object) -> None:
        """Send a message without waiting for its reply."""
        message = {"channel": channel, "data": data, **self._own}
        self._talk.send([{**message, "ext": ext} if ext else message])
        self._unanswered += 1

    def subscribe(self, channel: str) -> None:
        self._talk.send([{"channel": "/meta/subscribe", "subscription": channel, **self._own}])
        self._unanswered += 1
        self.settle()

    def settle(self) -> None:
        """Wait for the replies to all messages; no event may arrive meanwhile."""
        while self._unanswered:
            if self._hear():
                raise RuntimeError("an unexpected event arrived")

    def hear(self) -> list[Message]:
        """Wait for events."""
        while not (events := self._hear()):
            pass
        return events

    def _hear(self) -> list[Message]:
        messages: list[Message] = []
        for key, _ in self._selector.select():
            connection: Connection = key.data
            messages += connection.receive()
            while connection.has_more():
                messages += connection.receive()
        for each in messages:
            if each["channel"] == "/meta/connect":
                self._listen.send([self._connect])
            elif "data" not in each:
                self._unanswered -= 1
        return [each for each in messages if "data" in each]

    def close(self) -> None:
        for connection in {self._talk, self._listen}:
            connection.close()
