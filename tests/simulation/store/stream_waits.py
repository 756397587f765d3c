"""Clients that wait for entries of streams."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.store.connection import BLOCKED, Connection
from tests.simulation.store.replies import NO_LIST, Reply

if TYPE_CHECKING:
    from tests.simulation.store.node import Node


@dataclass(eq=False, slots=True)
class _Wait:
    """What a client waits for."""

    connection: Connection
    read: Callable[[], Reply]


class StreamWaits:
    """Answers clients as soon as there is something to read, or when their time is over."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._waits: list[_Wait] = []
        self._overdue: list[_Wait] = []

    def wait(self, connection: Connection, read: Callable[[], Reply], timeout_ms: int) -> Reply:
        """Let the client wait until it can read something."""
        wait = _Wait(connection, read)
        self._waits.append(wait)
        if timeout_ms:
            self._node.later(timeout_ms / 1000, partial(self._end, wait))
        return BLOCKED

    def look(self) -> None:
        """Answer those who can read something now."""
        for wait in [*self._waits]:
            reply = wait.read()
            if reply is not NO_LIST:
                self._answer(wait, reply)

    def go_on(self) -> None:
        """Do what was due while the server was frozen."""
        overdue, self._overdue = self._overdue, []
        for wait in overdue:
            self._end(wait)

    def forget_clients(self) -> None:
        self._waits.clear()

    def unblock_clients(self, reply: Reply) -> None:
        """Tell those that wait that this is no primary any more."""
        for wait in [*self._waits]:
            self._answer(wait, reply)

    def _end(self, wait: _Wait) -> None:
        if self._node.is_frozen:
            self._overdue.append(wait)
        elif wait in self._waits:
            self._answer(wait, wait.read())

    def _answer(self, wait: _Wait, reply: Reply) -> None:
        self._waits.remove(wait)
        wait.connection.answer(reply)
