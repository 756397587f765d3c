"""Which pages may talk to this server: its own, and those that were named."""

import re
from enum import Enum
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_ANY = "*"
_PRINTABLE = re.compile(r"[!-~]+")


class Standing(Enum):
    """What an `Origin` is to us."""

    OWN = "own"
    ALLOWED = "allowed"
    FOREIGN = "foreign"


class Origins:
    """The allow list. Requests without an `Origin` do not come from pages and are let in."""

    def __init__(self, allowed: tuple[str, ...] = ()) -> None:
        self._any = _ANY in allowed
        normal = [_normal(origin) for origin in allowed if origin != _ANY]
        self._allowed = frozenset(origin for origin in normal if origin is not None)

    def standing(self, origin: str | None, host: str | None) -> Standing:
        """What the page of this origin is to the server that it reached as `host`."""
        if origin is None:
            return Standing.OWN
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
