"""Numbers in place of random bytes, so that ids of clients can be told in advance."""

from collections.abc import Iterator
from hashlib import shake_128

# The random bytes of an id.
_SIZE = 22


def numbered_bytes(numbers: Iterator[int], size: int) -> bytes:
    """Return so many bytes, made of one number after the next: one for each id."""
    return b"".join(map(_bytes_of, [next(numbers) for _ in range(size // _SIZE)]))


def _bytes_of(number: int) -> bytes:
    return shake_128(number.to_bytes(8)).digest(_SIZE)
