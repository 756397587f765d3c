"""By which names this server answers: others belong to somebody who had them lead here.

Whoever owns a name can have it lead to this machine after a browser has loaded their page from it
(DNS rebinding). For the browser that page is then one of ours, and so is what it asks for. An
address needs no name, and `localhost` is nobody's.
"""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

_ANY = "*"
# A name has 253 characters at most; more is a port, or nonsense.
_LONGEST = 260
# Hosts that were judged lately; a client says the same one each time.
_REMEMBERED = 1024


class Hosts:
    """The names in `Host` that are served.

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
        """Whether a request with this `Host` is for us; browsers always send one."""
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
    """The name in a host, perhaps with a port, or in an origin; none, if that is an address."""
    name = _without_port(place.rpartition("//")[2])
    return None if name is None or _is_address(name) else _plain(name)


def _plain(name: str) -> str:
    """Spelling does not matter, nor does the dot that says that a name is complete."""
    return name.lower().removesuffix(".")


def _without_port(host: str) -> str | None:
    """The name or the address; none, if what follows it is no port."""
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
