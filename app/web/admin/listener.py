"""An address of its own for operators, where the main one is reached from elsewhere."""

import logging
import ssl

from aiohttp import web

_log = logging.getLogger("app.web.http")


class AdminListener:
    """Serves an application by aiohttp's own means: operators are few."""

    def __init__(
        self, application: web.Application, host: str, port: int, tls: ssl.SSLContext | None
    ) -> None:
        # The console's connect is held for long, and given up when its page is left.
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=_log,
            handler_cancellation=True,
            # Compressed bodies are refused, and what is refused is not worth inflating.
            auto_decompress=False,
        )
        self._host = host
        self._port = port
        self._tls = tls

    async def open(self) -> str:
        """Listen; returns the URL."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, ssl_context=self._tls)
        await site.start()
        port = self._runner.addresses[0][1]
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{port}"

    async def close(self) -> None:
        await self._runner.cleanup()
