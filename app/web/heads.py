"""Heads of HTTP responses as bytes, made again only when their date changes."""

from email.utils import formatdate
from functools import cache
from http import HTTPStatus

from app.web.endpoint import FIXED_HEADERS, JSON_TYPE, hsts_headers


class Heads:
    """Everything of a response up to the value of Content-Length, which stands last."""

    def __init__(self, hsts_s: int | None = None) -> None:
        self._fields = {"Content-Type": JSON_TYPE, **FIXED_HEADERS, **hsts_headers(hsts_s)}
        self._common = ""
        self.ok = b""
        self.refresh()

    def refresh(self) -> None:
        """To be called once a second."""
        fields = {**self._fields, "Date": formatdate(usegmt=True)}
        self._common = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.ok = self.build(200, {})

    def build(self, status: int, headers: dict[str, str]) -> bytes:
        """A head with another status, or with further headers."""
        further = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"{_status_line(status)}{self._common}{further}Content-Length: "
        return head.encode("latin-1")


@cache
def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
