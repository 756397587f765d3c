"""What each host says about itself where all hosts read it."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

log = logging.getLogger(__name__)

# A longer row is none of ours.
_MOST_BYTES: Final = 4096


class HostState(StrEnum):
    """Whether a host is to have shards."""

    SERVING = "serving"
    # It gives its shards to others, because it is about to be stopped.
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class HostRow:
    """What a host says about itself twice a second."""

    # Another process of the same name has another nonce.
    nonce: str
    # It rises, and so shows that the host lives.
    n: int
    state: HostState = HostState.SERVING
    # Equal for hosts that agree about which host is to have which shard.
    view: str = ""
    # Equal for hosts with the same configuration.
    digest: str = ""
    release: str = ""
    # Where operators and clients reach it.
    url: str = ""
    # Shards that it could not open a moment ago: it gets no offer of them.
    refuses: tuple[int, ...] = ()
    # The settings that must be equal for a host to get its first shard, as words.
    fixed: str = ""

    @property
    def sign(self) -> str:
        """What changes as long as the host lives."""
        return f"{self.nonce} {self.n}"


_TEXTS: Final = ("nonce", "view", "digest", "fixed", "release", "url")


def pack(row: HostRow) -> bytes:
    """Return the row as the store has it. Raises `ValueError` if it is too long."""
    data = orjson.dumps(row)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"the row of a host has {len(data)} bytes, of at most {_MOST_BYTES}")
    return data


def _unpack(data: bytes) -> HostRow:
    """Raises `ValueError` for what is no row."""
    found: Any = orjson.loads(data) if len(data) <= _MOST_BYTES else None
    if not isinstance(found, dict) or not isinstance(found.get("nonce"), str):
        raise ValueError("no row of a host")
    n = found.get("n")
    texts = {name: found[name] for name in _TEXTS if name in found}
    refuses = found.get("refuses", [])
    is_list = isinstance(refuses, list) and all(type(each) is int for each in refuses)
    is_text = all(isinstance(each, str) for each in texts.values())
    if type(n) is not int or not is_list or not is_text:
        raise ValueError("a field of a host's row has another type")
    # Later releases have fields that this one does not know.
    state = HostState(found.get("state", HostState.SERVING))
    return HostRow(n=n, state=state, refuses=tuple(refuses), **texts)


class HostRows:
    """Reads the rows of hosts.

    Args:
        names: The hosts of the list. Rows of others are ignored.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = {*names}
        # Those whose row is damaged, which was said.
        self._damaged: set[str] = set()

    def read(self, raw: Mapping[bytes, bytes]) -> dict[str, HostRow]:
        """Return the rows by host; a host whose row is damaged has none."""
        rows: dict[str, HostRow] = {}
        for key, data in raw.items():
            name = key.decode("utf-8", "replace")
            if name not in self._names:
                continue
            try:
                rows[name] = _unpack(data)
            except ValueError:
                self._say(name)
        self._damaged -= rows.keys()
        return rows

    def _say(self, name: str) -> None:
        if name not in self._damaged:
            self._damaged.add(name)
            log.warning("the row of host %s in the store is damaged, and ignored", name)
