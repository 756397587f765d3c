"""Where a shard takes what other processes forward to it."""

import asyncio
import logging
import socket
from collections.abc import Callable

from holdfast.web.forwarding.hello import Hello, greet
from holdfast.web.forwarding.request_home import Home
from holdfast.web.forwarding.shard_link import Link

log = logging.getLogger(__name__)


class LinkServer:
    """Accepts links of other doors, each of which gets a home of its exchanges.

    Args:
        hello: Who this is.
        home: Makes what handles the exchanges of one link.
    """

    def __init__(self, hello: Hello, home: Callable[[], Home]) -> None:
        self._hello, self._home = hello, home
        self._server: asyncio.AbstractServer | None = None
        # In order, so that a run can be repeated exactly.
        self._links: dict[Link, None] = {}

    async def open(self, listening: socket.socket) -> None:
        """Accept links on a Unix socket that only this user can connect to."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._accept, sock=listening)

    def _accept(self) -> Link:
        link = self._home().link
        self._links[link] = None
        link.ended.add_done_callback(lambda _: self._links.pop(link, None))
        greet(link, self._hello, self._hello.fault_of, _log_fault)
        return link

    def close(self) -> None:
        """Listen no longer, and close all links."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for link in [*self._links]:
            link.close()


def _log_fault(fault: str | None) -> None:
    if fault is not None:
        log.error("a link of another process is refused: %s", fault)
