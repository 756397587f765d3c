"""The address of a server."""

from ssl import SSLContext

import aiohttp
from yarl import URL

_PATH = "/cometd"
_SCHEMES = ("http", "https", "unix")


class Address:
    """The URL of a server, which may be behind a Unix socket."""

    def __init__(self, text: str) -> None:
        """Take a URL, without a path `/cometd`, or `unix:/path/of/socket`."""
        url = URL(text)
        if url.scheme not in _SCHEMES:
            raise ValueError(f"{text!r}: write a URL such as http://127.0.0.1:8080")
        self._unix_path = url.path if url.scheme == "unix" else None
        if self._unix_path is not None:
            url = URL("http://localhost")
        self.url = str(url.with_path(_PATH) if url.path in ("", "/") else url)

    def connector(self, ssl: SSLContext | None) -> aiohttp.BaseConnector:
        """Return a connector to the server."""
        if self._unix_path is not None:
            return aiohttp.UnixConnector(self._unix_path)
        return aiohttp.TCPConnector(ssl=ssl or True)
