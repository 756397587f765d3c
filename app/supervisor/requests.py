"""Requests for a restart: of `holdfast restart`, by the socket that the server has opened."""

import json
import os
import socket
from contextlib import suppress
from selectors import EVENT_READ, BaseSelector
from typing import Any

# Of clients that have not asked yet; the one that came first has to go.
_MOST_CLIENTS = 8
_LONGEST_REQUEST = 4096


class Request:
    """A request, and the client that is told how it goes; a signal has none."""

    def __init__(self, fields: dict[str, Any], client: socket.socket | None = None) -> None:
        self.fields = fields
        self._client = client

    def tell(self, **fields: object) -> None:
        """Send a line; a client that has gone, or reads nothing, misses it."""
        if self._client is not None:
            with suppress(OSError):
                self._client.send(json.dumps(fields).encode() + b"\n")

    def end(self, **fields: object) -> None:
        self.tell(**fields)
        if self._client is not None:
            self._client.close()


class ControlSocket:
    """Accepts clients; `request` is what one of them asked, until it is dealt with."""

    def __init__(self, selector: BaseSelector) -> None:
        self._selector = selector
        self._listening: socket.socket | None = None
        self._clients: list[socket.socket] = []
        self.request: Request | None = None

    def listen(self, descriptor: int | None) -> None:
        """Accept clients at this socket from now on, or nowhere."""
        if self._listening is not None:
            self._selector.unregister(self._listening)
            self._listening.close()
            self._listening = None
        if descriptor is not None:
            listening = self._listening = socket.socket(fileno=os.dup(descriptor))
            listening.setblocking(False)
            self._selector.register(listening, EVENT_READ, lambda: self._accept(listening))

    def ask(self, request: Request) -> None:
        if self.request is None:
            self.request = request
        else:
            request.end(failed="a restart is under way: wait until it has ended")

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            client, _ = listening.accept()
            client.setblocking(False)
            if len(self._clients) == _MOST_CLIENTS:
                self._let_go(self._clients[0]).close()
            self._clients.append(client)
            self._selector.register(client, EVENT_READ, lambda: self._read(client))

    def _read(self, client: socket.socket) -> None:
        self._let_go(client)
        try:
            fields = json.loads(client.recv(_LONGEST_REQUEST))
        except (OSError, ValueError):
            fields = None
        if isinstance(fields, dict):
            self.ask(Request(fields, client))
        else:
            client.close()

    def _let_go(self, client: socket.socket) -> socket.socket:
        self._selector.unregister(client)
        self._clients.remove(client)
        return client
