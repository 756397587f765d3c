"""What all servers of one deployment have in common. Its store keeps it."""

import secrets
from dataclasses import dataclass, field
from string import ascii_lowercase, digits
from typing import NamedTuple, Self

_LENGTH = 6
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Deployment:
    """The name with which ids of messages begin, and the secret key that ids are checked with."""

    name: str
    key: bytes = field(repr=False)
    # Whether the store must have this name. If not, it is only for an empty store.
    is_known: bool = True

    @classmethod
    def proposed(cls, name: str | None) -> Self:
        """Return a deployment for a store that has none: of this name, or of a random one.

        With a random name, no other deployment has the same ids, and neither had a lost store.
        """
        return cls(name or _random_name(), secrets.token_bytes(_KEY_BYTES), name is not None)


class Division(NamedTuple):
    """How a deployment is divided into shards, as JSON; empty if there is one."""

    # The map of shards, and which channels have a home.
    shards: bytes = b""
    homes: bytes = b""


UNDIVIDED = Division()


@dataclass(frozen=True, slots=True)
class Origin:
    """What the stores of all shards have in common."""

    deployment: Deployment
    # Begins the epochs of new stores; empty for a random one at each opening.
    seed: str = ""
    division: Division = UNDIVIDED
    # The generation of keys that the first shard has, for the others; None for the first one.
    generation: int | None = None
    # Whether the deployment has a list of hosts, as the first shard says to the others.
    has_hosts: bool = False


def _random_name() -> str:
    rest = (secrets.choice(ascii_lowercase + digits) for _ in range(_LENGTH - 1))
    return secrets.choice(ascii_lowercase) + "".join(rest)
