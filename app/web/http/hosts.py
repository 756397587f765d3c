"""The host names that this server answers to.

The owner of a name can point it at this machine after a browser has loaded a page from it (DNS
rebinding). The browser then treats that page, and its requests, as this server's. Addresses need no
name, and `localhost` has no owner.
"""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

_ANY = "*"
# A name has at most 253 characters; the rest is for a port.
_LONGEST = 260
# Size of the cache of verdicts on hosts.
_REMEMBERED = 1024


class Hosts:
    """The accepted values of `Host`.

    Args:
        names: Names; `*.example.org` is every name below that one, `*` every name.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        given = [_plain(name) for name in names]
        self._any = _ANY in given
        self._names = frozenset(["localhost", *given])
        self._parents = (".localhost", *[name[1:] for name in given if name[:2] == "*."])
        self._is_known = lru_cache(maxsize=_REMEMBERED)(self._look_up)

    def are_ours(self, host: str | None) -> bool:
        """Return whether a request with this `Host` is for us. Browsers always send one."""
        if self._any or host is None:
            return True
        return len(host) <= _LONGEST and self._is_known(host)

    def _look_up(self, host: str) -> bool:
        name = _without_port(host)
        if name is None:
            return False
        name = _plain(name)
        return name in self._names or name.endswith(self._parents) or _is_address(name)


def name_of(place: str) -> str | None:
    """Return the name in a host (with or without port) or origin; None if it is an address."""
    name = _without_port(place.rpartition("//")[2])
    return None if name is None or _is_address(name) else _plain(name)


def _plain(name: str) -> str:
    """Normalise case and the final dot of a fully qualified name."""
    return name.lower().removesuffix(".")


def _without_port(host: str) -> str | None:
    """Return the name or address; None if what follows it is not a port."""
    if host.startswith("["):
        name, bracket, rest = host.partition("]")
        is_sound = bool(bracket) and (not rest or (rest[0] == ":" and _is_port(rest[1:])))
        return name + bracket if is_sound else None
    name, colon, port = host.partition(":")
    return name if not colon or _is_port(port) else None


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdecimal())


def _is_address(name: str) -> bool:
    try:
        if name.startswith("["):
            ipaddress.IPv6Address(name[1:-1])
        else:
            ipaddress.IPv4Address(name)
    except ValueError:
        return False
    return True
