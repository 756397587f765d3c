"""An address of its own for the administration, where the main one is reached from elsewhere."""

import logging
import ssl

from aiohttp import web

_log = logging.getLogger("app.web.http")


class AdminListener:
    """Serves the administration and nothing else."""

    def __init__(
        self, admin: web.Application, host: str, port: int, tls: ssl.SSLContext | None
    ) -> None:
        application = web.Application()
        application.add_subapp("/admin", admin)
        self._runner = web.AppRunner(application, access_log=None, logger=_log)
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
