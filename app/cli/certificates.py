"""Lets the certificates of authorities be read when a connection needs them.

aiohttp makes its defaults for TLS to other servers as it is imported, and reads them for each of
these contexts. That takes a tenth of the start of a server, and few connect to others by TLS.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_READ = "set_default_verify_paths"


@contextmanager
def certificates_read_late() -> Iterator[None]:
    """Let contexts that are made here read the certificates with their first connection."""

    def read_late(context: ssl.SSLContext) -> None:
        context.__class__ = _Unread

    setattr(ssl.SSLContext, _READ, read_late)
    try:
        yield
    finally:
        delattr(ssl.SSLContext, _READ)


class _Unread(ssl.SSLContext):
    """Becomes an ordinary context with its first connection."""

    # asyncio and uvloop begin every connection by this.
    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:  # noqa: ANN401 - as its base
        self.__class__ = ssl.SSLContext  # type: ignore[assignment]
        if self.verify_mode is not ssl.CERT_NONE:
            self.set_default_verify_paths()
        return self.wrap_bio(*args, **options)
