"""Where a shard takes what other processes forward to it."""

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.web.forwarding.hello import Hello, greet
from holdfast.web.forwarding.request_home import Home
from holdfast.web.forwarding.shard_link import Link

log = logging.getLogger(__name__)

# Newer versions of Python would remove the file, at which the next process listens.
_KEEPS_FILE: Mapping[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}


class LinkServer:
    """Accepts links of other doors, each of which gets a home of its exchanges.

    Args:
        hello: Who this is.
        home: Makes what handles the exchanges of one link.
    """

    def __init__(self, hello: Hello, home: Callable[[], Home]) -> None:
        self._hello, self._home = hello, home
        self._listening: socket.socket | None = None
        self._server: asyncio.AbstractServer | None = None
        # In the order in which they came, so that the same happens in each run.
        self._homes: dict[Home, None] = {}

    async def open(self, listening: socket.socket) -> None:
        """Accept links on a Unix socket that only this user can connect to."""
        self._listening = listening
        await self.accept()

    async def accept(self) -> None:
        """Accept links, again after `stop_accepting`."""
        if self._listening is not None and self._server is None:
            copy, loop = self._listening.dup(), asyncio.get_running_loop()
            self._server = await loop.create_unix_server(
                lambda: self.begin_link().as_protocol(), sock=copy, **_KEEPS_FILE
            )

    def stop_accepting(self) -> None:
        """Accept no more: who connects waits for the process that accepts next."""
        if self._server is not None:
            self._server.close()
            self._server = None

    @property
    def is_quiet(self) -> bool:
        """Whether all doors have said that nothing more comes."""
        return all(home.is_quiet for home in self._homes)

    @property
    def is_quiet_here(self) -> bool:
        """Whether all doors of this host have said so."""
        return all(home.is_quiet or home.is_abroad for home in self._homes)

    @property
    def is_settled(self) -> bool:
        """Whether everything that doors have forwarded over HTTP is answered."""
        return all(home.is_settled for home in self._homes)

    def pause(self) -> None:
        """Ask all doors for no more exchanges."""
        for home in self._homes:
            home.pause()

    def resume(self) -> None:
        """Take exchanges again."""
        for home in self._homes:
            home.resume()

    @property
    def is_held(self) -> bool:
        """Whether no messages come."""
        return all(home.is_held for home in self._homes)

    def hold(self) -> None:
        """Let no more messages come."""
        for home in self._homes:
            if home.passage is not None:
                home.passage.hold()

    def open_passages(self) -> None:
        """Let messages come again, after `hold`."""
        for home in self._homes:
            if home.passage is not None:
                home.passage.open()

    def begin_link(self, *, is_abroad: bool = False) -> Link:
        """Return the end of a new link, for a connection that is being made.

        Args:
            is_abroad: Whether the door is on another host.
        """
        home = self._home()
        home.is_abroad = is_abroad
        self._homes[home] = None
        home.link.ended.add_done_callback(lambda _: self._homes.pop(home, None))
        shards: list[int] = []

        def check(peer: Hello) -> str | None:
            shards.append(peer.shard)
            return self._hello.fault_of(peer)

        def greeted(fault: str | None) -> None:
            if fault is not None:
                log.error("a link of another process is refused: %s", fault)
            else:
                home.begin(shards[0])

        greet(home.link, self._hello, check, greeted)
        return home.link

    def close(self) -> None:
        """Listen no longer, and close all links."""
        self.stop_accepting()
        if self._listening is not None:
            self._listening.close()
        for home in [*self._homes]:
            home.link.close()
