"""Where a worker answers the administrations of others."""

import socket

from aiohttp import web

from holdfast.web.front.http_faults import log_of_http

# Others ask again; what they asked before does not keep this process from ending.
_CLOSING_S = 1.0


class PrivateListener:
    """Serves the application at one socket, without the limits that clients have."""

    def __init__(self, application: web.Application) -> None:
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=log_of_http,
            handler_cancellation=True,
            auto_decompress=False,
            shutdown_timeout=_CLOSING_S,
        )

    async def open(self, listening: socket.socket) -> None:
        """Answer at this socket. Its file stays: another process may have made it its own."""
        await self._runner.setup()
        await web.SockSite(self._runner, listening).start()

    async def close(self) -> None:
        """Answer no more."""
        await self._runner.cleanup()
