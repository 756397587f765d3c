"""Judges whether each name of a session has one living client (S7)."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tests.simulation.judges.excuses import HARMLESS, Excuses
from tests.simulation.session import HANDSHAKE, Attempt
from tests.simulation.talker import Message

# Whoever is served has begun.
_HARMLESS = HARMLESS | {"the start"}
# For so long the store may not know yet who has a name.
_STORED_S = 1.0


@dataclass(slots=True)
class _Claim:
    """A client that has the name: since when, and the last time that it was served."""

    client_id: str
    since: float
    asked_at: float
    served_at: float


class _Two(NamedTuple):
    """That a client was served which another one had displaced."""

    name: str
    client_id: str
    at: float
    rival: str
    rival_since: float


class Names:
    """Collects who was served under each name.

    Args:
        now: Returns the true time.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._claims: dict[str, list[_Claim]] = defaultdict(list)
        self._twos: list[_Two] = []

    def answered(self, attempt: Attempt, reply: Message) -> None:
        """Note that a client was served."""
        if not attempt.name:
            return
        now, claims = self._now(), self._claims[attempt.name]
        if attempt.channel == HANDSHAKE:
            claims.append(_Claim(reply["clientId"], now, attempt.asked_at, now))
            return
        own = next((each for each in claims if each.client_id == attempt.client_id), None)
        if own is None:
            return
        for other in claims:
            # It had the name behind this one, and before this one was served again.
            if other is not own and own.since < other.asked_at < other.served_at < attempt.asked_at:
                two = _Two(attempt.name, own.client_id, now, other.client_id, other.since)
                self._twos.append(two)
        own.asked_at, own.served_at = attempt.asked_at, now

    def violations(self, excuses: Excuses) -> list[str]:
        """Return the names that two clients had."""
        for claims in self._claims.values():
            excuses.judges("name", len(claims))
        return [
            f"S7: {each.client_id} was served as {each.name} at {each.at:.3f}, behind {each.rival}"
            for each in self._twos
            if not excuses.excuse(
                "name",
                each.rival_since,
                each.rival_since + _STORED_S,
                harmless=_HARMLESS,
            )
        ]
