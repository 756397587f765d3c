"""What a hot standby serves while another server has the store: probes, and `try again`."""

from aiohttp import web

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.addresses import Address
from holdfast.web.endpoint import JSON_TYPE, error_body, retry_headers

# When a client should try again: the other server may end at any time.
_RETRY_S = 1.0


class StandbyDoor:
    """Listens where the server will, until that can."""

    def __init__(self, address: Address) -> None:
        self._address = address
        application = web.Application()
        application.router.add_get("/healthz", _healthz)
        application.router.add_get("/readyz", _readyz)
        application.router.add_route("*", "/{path:.*}", _refuse)
        self._runner = web.AppRunner(application, access_log=None)

    async def open(self) -> None:
        """Listen; raises `OSError`."""
        await self._runner.setup()
        for each in self._address.listen(128):
            await web.SockSite(self._runner, each, ssl_context=self._address.tls).start()

    async def close(self) -> None:
        """Make room for the server."""
        await self._runner.cleanup()


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _readyz(_: web.Request) -> web.Response:
    return web.Response(status=503, text="standby: another server has the store\n")


async def _refuse(_: web.Request) -> web.Response:
    return web.Response(
        status=503,
        body=error_body(RequestRefused(ErrorReply.SERVER_BUSY)),
        headers={"Content-Type": JSON_TYPE, **retry_headers(_RETRY_S)},
    )
