"""What befalls sessions, or comes from strangers, in the log: at once, but not without bound."""

import logging
from dataclasses import dataclass

log = logging.getLogger(__name__)

WINDOW_S = 10.0
# Sessions that are named in one window, for each kind of incident and each reason apart.
MOST = 20


@dataclass(frozen=True, slots=True, eq=False)
class Incident:
    """What can befall a session: in the log it has this level and text, with the reason."""

    level: int
    text: str


REFUSED = Incident(logging.INFO, "session %s refused a message: %s")
FAILED = Incident(logging.INFO, "a delivery to session %s failed: %s")
HELD = Incident(logging.INFO, "session %s is held back by %s")
RESUMED = Incident(logging.INFO, "session %s is resumed by %s")
CHANNEL_HELD = Incident(logging.WARNING, "channel %s is held back: %s")
CHANNEL_TRIED = Incident(logging.WARNING, "channel %s was tried again in vain: %s")
CHANNEL_FREE = Incident(logging.WARNING, "channel %s flows again: %s")
DEAD = Incident(logging.WARNING, "a message for session %s is a dead letter: %s")
LOST = Incident(logging.ERROR, "a dead letter of session %s was lost: %s")
NOT_KEPT = Incident(
    logging.WARNING, "a dead letter of session %s was not kept, there are too many: %s"
)
FULL = Incident(logging.WARNING, "session %s gets no more messages, its queue is full: %s")
GIVEN_UP = Incident(logging.WARNING, "session %s was given up: %s")
ENDED = Incident(logging.INFO, "session %s was ended by %s")
CLOSED = Incident(logging.INFO, "the socket of session %s was closed with %s")
CUT = Incident(logging.INFO, "a connection of session %s was closed: %s")
DROPPED = Incident(logging.INFO, "a message of session %s was dropped by %s")
TURNED_AWAY = Incident(logging.WARNING, "a connection to the %s listener was closed: %s")
OVERSPENT = Incident(logging.WARNING, "%s is over its budget of %s")
WRONG_TOKEN = Incident(logging.WARNING, "a wrong token came from %s to %s")
MISDIRECTED = Incident(logging.INFO, "a request for the host %s was refused: %s")

INCIDENTS = (
    REFUSED,
    FAILED,
    HELD,
    RESUMED,
    CHANNEL_HELD,
    CHANNEL_TRIED,
    CHANNEL_FREE,
    DEAD,
    LOST,
    NOT_KEPT,
    FULL,
    GIVEN_UP,
    ENDED,
    CLOSED,
    CUT,
    DROPPED,
    TURNED_AWAY,
    OVERSPENT,
    WRONG_TOKEN,
    MISDIRECTED,
)
_OTHERS = "(others)"


class Notices:
    """Tells the first incident of a kind at once, and how many followed when the window ends.

    The window ends by `beat`, which is called again and again with the time: nothing else here
    depends on it.
    """

    def __init__(self) -> None:
        # By session and reason, how often it happened since it was told.
        self._told: dict[Incident, dict[tuple[str, str], int]] = {each: {} for each in INCIDENTS}
        self._ends_at = 0.0

    def tell(self, incident: Incident, session: str, reason: str, count: int = 1) -> None:
        """It happened so many times to the session of this key, or from this address."""
        told = self._told[incident]
        case = (session, reason)
        if case in told:
            told[case] += count
        elif len(told) < MOST:
            told[case] = 0
            _write(incident, session, reason, f", {count} at once" if count > 1 else "")
        else:
            case = (_OTHERS, "various")
            told[case] = told.get(case, 0) + count

    def beat(self, now: float) -> None:
        """Time has passed."""
        if now >= self._ends_at:
            self._ends_at = now + WINDOW_S
            self.end_window()

    def end_window(self) -> None:
        """Tell how often it happened again, and begin anew."""
        for incident, told in self._told.items():
            for (session, reason), count in told.items():
                if count:
                    _write(incident, session, reason, f", {count} more")
            told.clear()


def _write(incident: Incident, session: str, reason: str, times: str) -> None:
    log.log(incident.level, "%s%s", incident.text % (session, reason), times)
