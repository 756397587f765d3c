"""Heads of HTTP responses as bytes, rebuilt only when the date changes."""

from collections.abc import Mapping
from email.utils import formatdate
from functools import cache
from http import HTTPStatus

from holdfast.web.answering.endpoint import FIXED_HEADERS, JSON_TYPE, hsts_headers


class Heads:
    """Builds response heads up to the value of Content-Length, which comes last."""

    def __init__(self, hsts_s: int | None = None) -> None:
        self._fields = {"Content-Type": JSON_TYPE, **FIXED_HEADERS, **hsts_headers(hsts_s)}
        self._hsts_s = hsts_s
        self._common = ""
        # Heads of connections that end with their next response while others go on.
        self._last: Heads | None = None
        # Whether connections end with their next response.
        self.are_last = False
        self.ok = b""
        self.refresh()

    def refresh(self) -> None:
        """Update the date. Call once a second."""
        fields = {**self._fields, "Date": formatdate(usegmt=True)}
        self._common = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.ok = self.build(200, {})
        if self._last is not None:
            self._last.refresh()

    def of_last(self) -> "Heads":
        """Return the heads of connections that end with their next response."""
        if self._last is None:
            self._last = Heads(self._hsts_s)
            self._last.end_connections()
        return self._last

    def end_connections(self) -> None:
        """End connections with their next response, because the server is stopping."""
        self.are_last = True
        self._fields["Connection"] = "close"
        self.refresh()

    def build(self, status: int, headers: Mapping[str, str]) -> bytes:
        """Return a head with this status and these further headers."""
        further = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"{_status_line(status)}{self._common}{further}Content-Length: "
        return head.encode("latin-1")


def response(head: bytes, body: bytes) -> bytes:
    """Return a response as bytes: a head as `Heads` builds it, and the body."""
    return b"%b%d\r\n\r\n%b" % (head, len(body), body)


@cache
def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
