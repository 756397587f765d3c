"""The request that a message carries, as queues see it."""

from collections.abc import Iterable, Mapping
from typing import Protocol


class CarriedRequest(Protocol):
    """Learns who may answer the request, and who will not."""

    def kept_with(self, keys: Iterable[str], /) -> Mapping[str, bytes]:
        """Return what the store keeps of it in the same step as its message for these sessions."""
        ...

    def granted_to(self, keys: Iterable[str], /) -> None:
        """Let the sessions with these names answer, which have a copy or will get one."""
        ...

    def lost(self, key: str, code: str, text: str, /) -> None:
        """Note that this session has refused its copy, or will not get it, with this code."""
        ...

    def left(self, key: str, /) -> None:
        """Note that this session has ended without a verdict, or will not get its copy."""
        ...

    def with_time_left(self, wire: bytes, now_ms: int, /) -> bytes:
        """Return the event with the time that is left until its deadline."""
        ...
