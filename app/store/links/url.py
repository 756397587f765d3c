"""The URL of a store: a server, a Redis Cluster, or Sentinels that know where the server is."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Self
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from holdfast.store.links.address import DEFAULT_USER, Address

_SENTINEL_PORT = 26379


class Kind(Enum):
    """What the hosts of the URL are."""

    SERVER = ""
    CLUSTER = "cluster"
    SENTINEL = "sentinel"


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """How to reach a store; no host needs to be the server that has it now."""

    kind: Kind
    # The hosts of the URL.
    doors: tuple[Address, ...]
    # The database and credentials of all servers that may have the store; its host is the first.
    server: Address
    # The name under which Sentinels know the store.
    service: str = ""

    @classmethod
    def of(cls, url: str) -> Self:
        """Parse the URL. Raises `ValueError` or, for TLS files, `OSError`."""
        parts = urlsplit(url)
        scheme, _, name = parts.scheme.partition("+")
        if not name:
            address = Address.of(url)
            return cls(Kind.SERVER, (address,), address)
        if name not in (Kind.CLUSTER.value, Kind.SENTINEL.value) or scheme == "unix":
            raise ValueError("must begin with redis, rediss, and perhaps +cluster or +sentinel")
        return cls._of_many(Kind(name), parts._replace(scheme=scheme))

    @classmethod
    def _of_many(cls, kind: Kind, parts: SplitResult) -> Self:
        service = ""
        if kind is Kind.SENTINEL:
            service, _, database = parts.path.strip("/").partition("/")
            if not service or (database and not database.isdecimal()):
                raise ValueError("must be like redis+sentinel://HOST:26379/SERVICE/0")
            parts = parts._replace(path=f"/{database}")
        credentials, at, hosts = parts.netloc.rpartition("@")
        names = hosts.split(",")
        server = Address.of(urlunsplit(parts._replace(netloc=f"{credentials}{at}{names[0]}")))
        door = server if kind is Kind.CLUSTER else _sentinel(server, parts.query)
        doors = tuple(_at(door, name) for name in names)
        return cls(kind, doors, server, unquote(service))


def _sentinel(server: Address, query: str) -> Address:
    """Return the address of a Sentinel, which has its own credentials."""
    options = dict(parse_qsl(query))
    return replace(
        server,
        port=_SENTINEL_PORT,
        database=0,
        username=options.get("sentinel_username", DEFAULT_USER),
        password=options.get("sentinel_password"),
    )


def _at(door: Address, name: str) -> Address:
    """Return the address with the host, and the port if there is one, of HOST:PORT."""
    parts = urlsplit(f"//{name}")
    if not parts.hostname:
        raise ValueError("a host is missing")
    return door.at(parts.hostname, parts.port or door.port)
