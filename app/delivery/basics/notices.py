"""Logs notices about sessions and addresses at once, and limits how many there are."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.delivery.basics.ignoring import ignore

log = logging.getLogger(__name__)

WINDOW_S = 10.0
# How many sessions the log names in one window, for each kind of notice and each reason.
MOST = 20
# The page of all errors, in the sources.
ERRORS = "docs/reference/error-codes.md"


@dataclass(frozen=True, slots=True, eq=False)
class NoticeKind:
    """A kind of notice: its log level, and its text, which takes the reason.

    The error is the one that clients get, by its anchor on the page of errors.
    """

    level: int
    text: str
    error: str


NOTICE_KINDS: list[NoticeKind] = []


def _kind(level: int, text: str, error: str = "") -> NoticeKind:
    kind = NoticeKind(level, text, error)
    NOTICE_KINDS.append(kind)
    return kind


REFUSED = _kind(logging.INFO, "session %s refused a message: %s")
DELIVERY_FAILED = _kind(logging.INFO, "a delivery to session %s failed: %s")
HELD = _kind(logging.INFO, "session %s is held back by %s")
RESUMED = _kind(logging.INFO, "session %s is resumed by %s")
CHANNEL_HELD = _kind(logging.WARNING, "channel %s is held back: %s")
PROBE_FAILED = _kind(logging.WARNING, "channel %s was probed without success: %s")
CHANNEL_FREE = _kind(logging.WARNING, "channel %s flows again: %s")
DEAD_LETTER = _kind(logging.WARNING, "a message for session %s is a dead letter: %s")
LOST = _kind(logging.ERROR, "a dead letter of session %s was lost: %s")
NOT_KEPT = _kind(
    logging.WARNING, "a dead letter of session %s was discarded, there are too many: %s"
)
FULL = _kind(logging.WARNING, "the queue of session %s is full: %s")
SESSION_FAILED = _kind(logging.WARNING, "session %s was ended: %s")
ENDED = _kind(logging.INFO, "session %s was ended by %s")
CLOSED = _kind(logging.INFO, "the socket of session %s was closed with %s")
CUT = _kind(logging.INFO, "a connection of session %s was closed: %s")
DROPPED = _kind(logging.INFO, "a message of session %s was dropped by %s")
TURNED_AWAY = _kind(logging.WARNING, "a connection to the %s listener was closed: %s")
OVERSPENT = _kind(logging.WARNING, "%s is over its budget of %s", "429-budget_exceeded")
WRONG_TOKEN = _kind(logging.WARNING, "a wrong token came from %s to %s")
LOGIN_FAILED = _kind(logging.WARNING, "a login from %s failed: %s", "403-handshake_denied")
LOGIN_ENDED = _kind(logging.INFO, "the login of session %s ended: %s", "403-login_denied")
MISDIRECTED = _kind(logging.INFO, "a request for the host %s was refused: %s", "421-host_unknown")
FOREIGN = _kind(logging.INFO, "a request from the origin %s was refused: %s", "403-origin_denied")

ALERT_RAISED = _kind(logging.WARNING, "alert %s is raised: %s")
ALERT_CLEARED = _kind(logging.WARNING, "alert %s is cleared; it said: %s")

_OTHERS = "(others)"


class Notices:
    """Logs the first notice of a kind at once, and the number of repeats when the window ends.

    Call `beat` regularly; it ends the window.

    Args:
        listener: Hears each notice, also a repeat.
    """

    def __init__(self, listener: Callable[[NoticeKind, str, str], None] = ignore) -> None:
        # Where the page of all errors is.
        self.errors = ERRORS
        # Repeats since the last log line, by session and reason.
        self._logged: dict[NoticeKind, dict[tuple[str, str], int]] = {
            each: {} for each in NOTICE_KINDS
        }
        self._ends_at = 0.0
        self._listener = listener

    def report(self, kind: NoticeKind, session: str, reason: str, count: int = 1) -> None:
        """Report `count` notices of this kind about a session or an address."""
        self._listener(kind, session, reason)
        logged = self._logged[kind]
        case = (session, reason)
        if case in logged:
            logged[case] += count
        elif len(logged) < MOST:
            logged[case] = 0
            self._write(kind, session, reason, f", {count} at once" if count > 1 else "")
        else:
            case = (_OTHERS, "various")
            logged[case] = logged.get(case, 0) + count

    def beat(self, now: float) -> None:
        """Advance the clock."""
        if now >= self._ends_at:
            self._ends_at = now + WINDOW_S
            self.end_window()

    def end_window(self) -> None:
        """Log the repeats and start a new window."""
        for kind, logged in self._logged.items():
            for (session, reason), count in logged.items():
                if count:
                    self._write(kind, session, reason, f", {count} more")
            logged.clear()

    def _write(self, kind: NoticeKind, session: str, reason: str, times: str) -> None:
        see = f"; see {self.errors}#{kind.error}" if kind.error else ""
        log.log(kind.level, "%s%s%s", kind.text % (session, reason), see, times)
