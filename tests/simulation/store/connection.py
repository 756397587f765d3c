"""A client's connection to a server of the fake store."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from hiredis import Reader

from tests.simulation.store.replies import Reply, encoded

if TYPE_CHECKING:
    from tests.simulation.store.command import Words
    from tests.simulation.store.node import Node


class Blocked:
    """The reply of a command whose connection waits."""


BLOCKED = Blocked()


class Connection:
    """Takes bytes from a client and sends the replies, in order.

    Args:
        send: Called with the replies of what was received together.
        closed: Called when the server ends the connection.
    """

    def __init__(
        self, node: "Node", send: Callable[[bytes], None], closed: Callable[[], None]
    ) -> None:
        self.node = node
        self._send = send
        self._closed = closed
        self._reader = Reader()
        # What the server has not read yet, because it is frozen or this client waits.
        self._unread: list[bytes] = []
        self._is_waiting = False
        self.is_open = True
        self.protocol = 2
        self.id = 0
        # The machine of the client, where that is known.
        self.client = ""
        self.name = b""
        # The position behind the last write.
        self.wrote_to = 0
        # The commands of a transaction.
        self.queued: list[Words] | None = None
        self.is_spoiled = False
        # Whether the next command may be for keys that are on their way to this server.
        self.is_asking = False

    def receive(self, data: bytes) -> None:
        """Take bytes of the client."""
        if not self.is_open:
            return
        if self.node.is_frozen or self._is_waiting:
            self._unread.append(data)
            return
        self._reader.feed(data)
        self.go_on()

    def close(self) -> None:
        """The client has gone. Its last commands are carried out nevertheless, if they are read."""
        if self.is_open:
            self.is_open = False
            self.node.connections.remove(self)

    def cut(self) -> None:
        """End the connection from the server's side. Replies on their way may be lost."""
        if self.is_open:
            self.close()
            self._closed()

    def thaw(self) -> None:
        """Read what has come meanwhile."""
        unread, self._unread = self._unread, []
        for data in unread:
            self.receive(data)

    def go_on(self) -> None:
        """Carry out what was received completely."""
        replies: list[bytes] = []
        while self.is_open and not self._is_waiting and (words := self._reader.gets()) is not False:
            if words:
                reply = self.node.carry_out(self, words)
                if reply is BLOCKED:
                    self._is_waiting = True
                else:
                    replies.append(encoded(reply, self.protocol))
        if replies and self.is_open:
            self._send(b"".join(replies))

    def answer(self, reply: Reply) -> None:
        """End the wait of this client with a reply."""
        if self.is_open and self._is_waiting:
            self._is_waiting = False
            self._send(encoded(reply, self.protocol))
            self.go_on()
            self.thaw()
