"""Numbers in place of random bytes, so that ids of clients can be told in advance."""

from collections.abc import Iterator


def numbered_bytes(numbers: Iterator[int], size: int) -> bytes:
    """Return so many bytes: one number after the next, each in the 18 bytes of an id."""
    return b"".join(map(_bytes_of, [next(numbers) for _ in range(size // 18)]))


def _bytes_of(number: int) -> bytes:
    # The last two bytes are not in the id, but, like all others, decide about its bucket.
    return number.to_bytes(16) + (number & 0xFFFF).to_bytes(2)
