"""Writes down what became of attempts, for the dead letter that a message may become."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from app.delivery.attempts import MAX_TEXT, Attempt, Trail, clipped, extended
from app.delivery.entries import Entry
from app.delivery.error_codes import ErrorCode
from app.delivery.receivers import Receiver

R = TypeVar("R", bound=Receiver)


class History(Generic[R]):
    """Notes on entries that are, or were until now, in hands of their receivers."""

    def __init__(self, node: str, now_ms: Callable[[], int], transport: Callable[[R], str]) -> None:
        self._node = node
        self._now_ms = now_ms
        self._transport = transport

    def note_failure(
        self, receiver: R, entries: Iterable[Entry], now: float, code: ErrorCode, text: str
    ) -> None:
        """The last attempts to deliver these failed."""
        self.note(receiver, entries, now, code.text, code=code.text, text=text)

    def note(
        self,
        receiver: R,
        entries: Iterable[Entry],
        now: float,
        outcome: str,
        *,
        code: str = "",
        text: str = "",
    ) -> None:
        """The last attempts to deliver these came to this; what is alike is written once."""
        known: dict[tuple[int, int, float], tuple[Trail, Trail]] = {}
        text = clipped(text, MAX_TEXT)
        for entry in entries:
            before = entry.trail
            like = (id(before), entry.attempts, entry.handed_at)
            if like not in known:
                latency = round((now - entry.handed_at) * 1000) if entry.handed_at else None
                attempt = Attempt(
                    n=entry.attempts,
                    time=self._now_ms() - (latency or 0),
                    node=self._node,
                    transport=self._transport(receiver),
                    outcome=outcome,
                    latency=latency,
                    code=code,
                    text=text,
                )
                known[like] = (before, extended(before, attempt))
            entry.trail = known[like][1]
