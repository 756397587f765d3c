"""Where a shard takes what other processes forward to it."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast.web.forwarding.hello import Hello, greet
from holdfast.web.forwarding.request_home import Home
from holdfast.web.forwarding.shard_link import Link

log = logging.getLogger(__name__)


class LinkServer:
    """Listens for links at a Unix socket that only this user can open.

    Args:
        path: The socket, in a directory for links only.
        hello: Who this is.
        home: Makes what handles the exchanges of one link.
    """

    def __init__(self, path: Path, hello: Hello, home: Callable[[], Home]) -> None:
        self._path, self._hello, self._home = path, hello, home
        self._server: asyncio.AbstractServer | None = None
        self._links: set[Link] = set()

    async def open(self) -> None:
        """Listen. The socket of an earlier process at this place is replaced."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            self._path.unlink()
        loop = asyncio.get_running_loop()
        # No one can connect before the socket has its permissions: others cannot enter its
        # directory.
        self._server = await loop.create_unix_server(self._accept, str(self._path))
        self._path.chmod(0o600)

    def _accept(self) -> Link:
        link = self._home().link
        self._links.add(link)
        link.ended.add_done_callback(lambda _: self._links.discard(link))
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
