"""Receipts: whether a transport in another process took an answer is known only later."""

from collections.abc import Callable

from holdfast.delivery.basics.ignoring import ignore

# Called with whether the transport took it, and with the time.
Told = Callable[[bool, float], None]


class Receipt:
    """Says once whether the transport took everything, or nothing."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told: Told = ignore

    def then(self, told: Told) -> None:
        """Call this when it is known."""
        self._told = told

    def arrive(self, *, is_taken: bool, now: float) -> None:
        """Say whether the transport took it. Only the first call counts."""
        told, self._told = self._told, ignore
        told(is_taken, now)


# What a transport answers: whether it took everything, or a receipt, which will say so.
Taken = bool | Receipt
