"""The HTTP session of a client, which leaves no connections behind."""

from collections.abc import Mapping

import aiohttp


class _Response(aiohttp.ClientResponse):
    """A response that ends its connection at once when it is closed.

    With TLS, aiohttp leaves the connection to asyncio until the server has answered the end of the
    TLS session, for up to 30 s; a program whose event loop ends before that has an unclosed
    transport. Responses are closed after the last frame of a socket and when a request is given up:
    nothing more is to come.
    """

    def close(self) -> None:
        transport = None if self.connection is None else self.connection.transport
        # First: older releases of Python 3.11 cannot abort a transport that was closed twice.
        if transport is not None:
            transport.abort()
        super().close()


def http_session(
    connector: aiohttp.BaseConnector, headers: Mapping[str, str] | None, *, owns_connector: bool
) -> aiohttp.ClientSession:
    """Return the session in which a client sends all its requests."""
    return aiohttp.ClientSession(
        connector=connector,
        connector_owner=owns_connector,
        headers=headers,
        # A session of the server belongs to its cookie, also on a server without a name.
        cookie_jar=aiohttp.CookieJar(unsafe=True),
        response_class=_Response,
    )
