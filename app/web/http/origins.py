"""The pages that may use this server: its own, and pages of allowed origins."""

import re
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.bayeux.wire.transports import SpeakerKind

if TYPE_CHECKING:
    from multidict import CIMultiDict, CIMultiDictProxy

    Headers = CIMultiDict[str] | CIMultiDictProxy[str]

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_ANY = "*"
# `Sec-Fetch-Site` of requests that a person made outside any page; older browsers omit it.
_NO_PAGE = ("none", None)
# Browsers send each of these headers once, so a repeated header counts as foreign.
_SEVERAL = "several"
# Browsers send this as `Origin` of pages that hide theirs.
_HIDDEN = "null"
_PRINTABLE = re.compile(r"[!-~]+")


class OriginTrust(Enum):
    """How the page that sent a request relates to this server."""

    OWN = "own"
    ALLOWED = "allowed"
    FOREIGN = "foreign"
    # No header names a page. For a POST or an upgrade, this means that there is no page.
    UNKNOWN = "unknown"


def speaker_kind_of(trust: OriginTrust) -> SpeakerKind:
    """Return who sent an accepted POST or upgrade. Browsers name the page's origin in these."""
    return SpeakerKind.PROGRAM if trust is OriginTrust.UNKNOWN else SpeakerKind.PAGE


class Origins:
    """The allow list of origins."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._any = _ANY in allowed
        normal = [_normal(origin) for origin in allowed if origin != _ANY]
        self._allowed = frozenset(origin for origin in normal if origin is not None)

    def trust_of(self, headers: "Headers") -> OriginTrust:
        """Judge the page that sent this request by all headers that its browser set."""
        origin, host = only_value(headers, "Origin"), headers.get("Host")
        if origin is not None:
            return self.trust(origin, host)
        # Scripts and images are loaded without `Origin`; old browsers post forms without it too.
        site, referer = only_value(headers, "Sec-Fetch-Site"), only_value(headers, "Referer")
        if site == "same-origin":
            return OriginTrust.OWN
        if referer:
            return self.trust(_origin_of(referer), host)
        return OriginTrust.UNKNOWN if site in _NO_PAGE else self.trust(_HIDDEN, host)

    def trust(self, origin: str, host: str | None) -> OriginTrust:
        """Judge a page's origin; `host` is the name by which it reached the server."""
        normal = _normal(origin)
        if normal is not None:
            if host is not None and normal[1] == _host(host, normal[0]):
                return OriginTrust.OWN
            if normal in self._allowed:
                return OriginTrust.ALLOWED
        return OriginTrust.ALLOWED if self._any else OriginTrust.FOREIGN

    def headers(self, origin: str | None, host: str | None) -> dict[str, str]:
        """Return the CORS headers of a response; only origins listed by name get credentials."""
        if origin is None or self.trust(origin, host) is not OriginTrust.ALLOWED:
            return {}
        if _normal(origin) in self._allowed:
            return {
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Allow-Credentials": "true",
            }
        return {"Access-Control-Allow-Origin": _ANY}

    def preflight_headers(self, origin: str | None, host: str | None) -> dict[str, str]:
        """Return the headers that answer a CORS preflight request."""
        headers = self.headers(origin, host)
        if headers:
            headers |= {
                "Access-Control-Allow-Methods": "POST, GET, OPTIONS",
                "Access-Control-Allow-Headers": "Content-Type",
                "Access-Control-Max-Age": "600",
            }
        return headers


def shown_origin(headers: "Headers") -> str:
    """Return the origin of the page that sent a request, if its browser shows it."""
    origin = only_value(headers, "Origin")
    if origin is None and (referer := only_value(headers, "Referer")):
        origin = _origin_of(referer)
    return origin or _HIDDEN


def only_value(headers: "Headers", name: str) -> str | None:
    """Return the value of a header; if it is repeated, a value that no origin or site equals."""
    lines = headers.getall(name, ())
    if len(lines) > 1:
        return _SEVERAL
    return lines[0] if lines else None


def _origin_of(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def _normal(origin: str) -> tuple[str, str] | None:
    """Scheme, host and port in normal form; None for `null` and for anything malformed."""
    if _PRINTABLE.fullmatch(origin) is None:
        # Browsers send only ASCII, and some other characters have lower-case forms in ASCII.
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
