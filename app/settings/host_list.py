"""The list of hosts: which machines have the shards of a deployment, and where each listens."""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

# As many as anybody can name in one list; what hosts do grows with their number.
_MOST: Final = 64
_LONGEST: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_EXAMPLE: Final = "write it like a.example:8443, 192.0.2.7:8443 or [2001:db8::7]:8443"


@dataclass(frozen=True, slots=True)
class HostAddress:
    """One host of the list: its name, which its certificate has, and its port for other hosts."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class HostList:
    """The hosts of a deployment, in the order of the setting, which decides nothing."""

    hosts: tuple[HostAddress, ...]

    @classmethod
    def parse(cls, items: Sequence[str]) -> Self:
        """Read the setting. Raises `ValueError` with what is wrong, for the operator to read."""
        if not 1 <= len(items) <= _MOST:
            raise ValueError(f"name 1 to {_MOST} hosts, not {len(items)}")
        hosts = tuple(_address_of(item) for item in items)
        names = [host.name for host in hosts]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is named twice: each host needs a name of its own")
        return cls(hosts)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)

    def address(self, name: str) -> HostAddress:
        """Return where a host listens; its name is one of `names`."""
        return next(host for host in self.hosts if host.name == name)

    def own(self, text: str) -> str:
        """Return the name of this host. Raises `ValueError` if the list does not have it."""
        name = name_of(text)
        if name not in self.names:
            raise ValueError(f"{name} is not in hosts: {', '.join(self.names)}")
        return name


def _address_of(item: str) -> HostAddress:
    text, colon, port = item.strip().rpartition(":")
    if not colon or text.endswith(":") or (":" in text and not text.startswith("[")):
        raise ValueError(f"{item!r} has no port, or no brackets around its address: {_EXAMPLE}")
    if _PORT.fullmatch(port) is None or not 1 <= int(port) <= 65535:
        raise ValueError(f"{item!r} needs a port from 1 to 65535 behind the colon")
    return HostAddress(name_of(text), int(port))


def name_of(text: str) -> str:
    """Return the one way to write a name or an address."""
    name = text.strip().lower()
    if name.startswith("[") and name.endswith("]"):
        return _ip_of(name[1:-1], text, 6)
    if ":" in name:
        return _ip_of(name, text, 6)
    labels = name.split(".")
    if labels[-1].isdecimal():
        return _ip_of(name, text, 4)
    if len(name) > _LONGEST or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError(f"{text!r} is no name of a host: {_EXAMPLE}")
    return name


def _ip_of(name: str, text: str, version: int) -> str:
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        raise ValueError(f"{text!r} is no address: {_EXAMPLE}") from None
    if found.version != version or "%" in name:
        raise ValueError(f"{text!r} is no address of a host: {_EXAMPLE}")
    return str(found)
