"""What a connection between two hosts begins with: the number of the shard it is for."""

from struct import Struct
from typing import Final

_PREAMBLE: Final = Struct(">H")
SIZE: Final = _PREAMBLE.size


def pack(shard: int) -> bytes:
    return _PREAMBLE.pack(shard)


def unpack(data: bytes) -> int:
    """Undo `pack`. Raises `ValueError`."""
    if len(data) != SIZE:
        raise ValueError(f"{len(data)} bytes instead of {SIZE}")
    (shard,) = _PREAMBLE.unpack(data)
    return int(shard)
