"""The store's address and credentials, from a URL."""

import ssl
from dataclasses import dataclass
from typing import Any, Self

from redis.asyncio.connection import (
    SSLConnection,
    UnixDomainSocketConnection,
    parse_url,
)

_PORT = 6379
# The user of URLs that have only a password.
_DEFAULT_USER = "default"


@dataclass(frozen=True, slots=True)
class Address:
    """A Unix socket if `path` is set, else host and port."""

    host: str = "localhost"
    port: int = _PORT
    path: str | None = None
    database: int = 0
    username: str = _DEFAULT_USER
    password: str | None = None
    tls: ssl.SSLContext | None = None

    @classmethod
    def of(cls, url: str) -> Self:
        """Parse a URL as redis-py has it; of its options only `ssl_...` are used."""
        parts: dict[str, Any] = {**parse_url(url)}
        kind = parts.pop("connection_class", None)
        if kind is UnixDomainSocketConnection and "path" not in parts:
            raise ValueError("unix:// must be followed by a path")
        tls = SSLConnection(**parts).ssl_context.get() if kind is SSLConnection else None
        return cls(
            host=parts.get("host", "localhost"),
            port=parts.get("port", _PORT),
            path=parts.get("path"),
            database=parts.get("db", 0),
            username=parts.get("username", _DEFAULT_USER),
            password=parts.get("password"),
            tls=tls,
        )

    def __str__(self) -> str:
        """Return the address for logs, without credentials."""
        return self.path or f"{self.host}:{self.port}"
