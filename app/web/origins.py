"""Which pages may talk to this server: its own, and those that were named."""

import re
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.bayeux.exchange import Source

if TYPE_CHECKING:
    from multidict import CIMultiDict, CIMultiDictProxy

    Headers = CIMultiDict[str] | CIMultiDictProxy[str]

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_ANY = "*"
# What browsers say of what a person asked for, from outside any page; older ones say nothing.
_NO_PAGE = ("none", None)
# No origin, no page and no site: browsers send each of these headers once.
_SEVERAL = "several"
_PRINTABLE = re.compile(r"[!-~]+")


class Standing(Enum):
    """What the page behind a request is to us."""

    OWN = "own"
    ALLOWED = "allowed"
    FOREIGN = "foreign"
    # Nothing says that there is a page: for a POST or an upgrade that means that there is none.
    UNKNOWN = "unknown"


def source_of(standing: Standing) -> Source:
    """Who sent a POST or an upgrade that was let in: browsers name the origin of the page."""
    return Source.PROGRAM if standing is Standing.UNKNOWN else Source.PAGE


class Origins:
    """The allow list."""

    def __init__(self, allowed: tuple[str, ...] = ()) -> None:
        self._any = _ANY in allowed
        normal = [_normal(origin) for origin in allowed if origin != _ANY]
        self._allowed = frozenset(origin for origin in normal if origin is not None)

    def standing_of(self, headers: "Headers") -> Standing:
        """What the page that sent this request is to us, by all that its browser says of it."""
        origin, host = said(headers, "Origin"), headers.get("Host")
        if origin is not None:
            return self.standing(origin, host)
        # Scripts and images are loaded without an `Origin`; old browsers send forms so, too.
        site, referer = said(headers, "Sec-Fetch-Site"), said(headers, "Referer")
        if site == "same-origin":
            return Standing.OWN
        if referer:
            return self.standing("/".join(referer.split("/", 3)[:3]), host)
        return Standing.UNKNOWN if site in _NO_PAGE else self.standing("null", host)

    def standing(self, origin: str, host: str | None) -> Standing:
        """What the page of this origin is to the server that it reached as `host`."""
        normal = _normal(origin)
        if normal is not None:
            if host is not None and normal[1] == _host(host, normal[0]):
                return Standing.OWN
            if normal in self._allowed:
                return Standing.ALLOWED
        return Standing.ALLOWED if self._any else Standing.FOREIGN

    def headers(self, origin: str | None, host: str | None) -> dict[str, str]:
        """The CORS headers of an answer; credentials only for origins named one by one."""
        if origin is None or self.standing(origin, host) is not Standing.ALLOWED:
            return {}
        if _normal(origin) in self._allowed:
            return {
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Allow-Credentials": "true",
            }
        return {"Access-Control-Allow-Origin": _ANY}

    def preflight_headers(self, origin: str | None, host: str | None) -> dict[str, str]:
        """The answer to a page that asks before it sends."""
        headers = self.headers(origin, host)
        if headers:
            headers |= {
                "Access-Control-Allow-Methods": "POST, GET, OPTIONS",
                "Access-Control-Allow-Headers": "Content-Type",
                "Access-Control-Max-Age": "600",
            }
        return headers


def said(headers: "Headers", name: str) -> str | None:
    """What a request says in this header; who says several things says nothing that counts."""
    lines = headers.getall(name, ())
    if len(lines) > 1:
        return _SEVERAL
    return lines[0] if lines else None


def _normal(origin: str) -> tuple[str, str] | None:
    """Scheme and host with port, so that spelling does not matter; None for `null` and nonsense."""
    if _PRINTABLE.fullmatch(origin) is None:
        # Browsers never send others, and some of those have small forms that are ASCII.
        return None
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.netloc or "@" in parts.netloc:
        return None
    if parts.path or parts.query or parts.fragment:
        return None
    return parts.scheme, _host(parts.netloc, parts.scheme)


def _host(netloc: str, scheme: str) -> str:
    netloc = netloc.lower()
    default = f":{_DEFAULT_PORTS[scheme]}"
    return netloc.removesuffix(default)
