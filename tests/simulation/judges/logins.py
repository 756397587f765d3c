"""Judges what comes to those who may not have it, and what is published by those who may not.

Whether each of their requests is refused, and with which error, the judge of answers sees.
"""

from typing import NamedTuple

from tests.simulation.judges.excuses import HARMLESS, Excuses
from tests.simulation.judges.facts import Facts
from tests.simulation.talker import Denied, Message
from tests.simulation.tokens import SQUARE

# How long behind its end a server sees that a login has ended, and what it sent is on its way.
_SEES_S = 3.0
# Faults that make servers see it no later.
_SEE_IT = (HARMLESS - {"set_clock"}) | {
    *("kill_server", "kill_server_in_call", "terminate_server", "crash_server_often"),
}
_FORBIDDEN = "forbidden"


class _Late(NamedTuple):
    """That something came to a session whose login had ended."""

    who: str
    ended_at: float
    at: float


class Logins:
    """Collects what comes to insiders and outsiders."""

    def __init__(self, facts: Facts) -> None:
        self.now = facts.now
        self._mark = facts.mark
        self._late: list[_Late] = []
        self._came = 0
        self._wrong: list[str] = []

    def refused(self, denied: Denied) -> None:
        """Note that somebody was refused."""
        self._mark(f"refused {str(denied).rpartition(':')[2]}")

    def renewed(self) -> None:
        """Note that a login goes on by a newer token."""
        self._mark("a login was renewed")

    def warned(self) -> None:
        """Note that a client was told that its login ends soon."""
        self._mark("a client was told that its login ends")

    def forbidden(self, key: str) -> Message:
        """Return the data of a message that nobody may publish."""
        return {_FORBIDDEN: key}

    def may_have(self, who: str, data: Message, ends_at: float) -> bool:
        """Note what came to somebody who has a right to it until then; returns whether it has."""
        self._came += 1
        now = self.now()
        if (key := data.get(_FORBIDDEN)) is not None:
            self._wrong.append(f"logins: {who} got {key} at {now:.3f}, published without a right")
            return False
        if now > ends_at + _SEES_S:
            self._late.append(_Late(who, ends_at, now))
        return True

    def seen(self, who: str, channel: str) -> None:
        """Note what came to somebody who may see one channel."""
        self._came += 1
        if channel != SQUARE:
            self._wrong.append(f"logins: {who} got a message of {channel} at {self.now():.3f}")

    def violations(self, excuses: Excuses) -> list[str]:
        """Return all that was not lawful."""
        excuses.judges("login", self._came)
        return [
            *self._wrong,
            *(
                f"logins: {each.who} got a message at {each.at:.3f}, logged in until "
                f"{each.ended_at:.3f}"
                for each in self._late
                if not excuses.excuse("login", each.ended_at, each.at, harmless=_SEE_IT)
            ),
        ]
