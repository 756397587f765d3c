"""Advice to clients. It is always complete, because clients replace earlier advice with it."""

from typing import Any

from holdfast.bayeux.session import Session
from holdfast.delivery.basics.feature_records import record_of, with_record, without_record
from holdfast.settings import Settings


class ToldTimeout:
    """The record of a session whose client knows a shorter timeout, from the process before."""

    __slots__ = ("timeout_s",)

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s


def remember_told_timeout(session: Session, timeout_s: float) -> None:
    """Remember the timeout that the client knows, until it is told the one of the session."""
    session.records = with_record(session.records, ToldTimeout(timeout_s))


def forget_told_timeout(session: Session) -> None:
    """Take note that the client is told the timeout of the session."""
    session.records = without_record(session.records, ToldTimeout)


def told_timeout_s(session: Session) -> float:
    """Return the timeout that the client knows. It gives up connects that are held much longer."""
    told = record_of(session.records, ToldTimeout)
    return session.timeout_s if told is None else told.timeout_s


def milliseconds(seconds: float) -> int:
    """Convert seconds to milliseconds."""
    return round(seconds * 1000)


def session_advice(session: Session, options: Settings) -> dict[str, Any]:
    """Return advice for a client with a session."""
    return _advice(
        options, "retry", interval_s=session.rest_interval_s, timeout_s=session.timeout_s
    )


def reconnect_advice(options: Settings, reconnect: str, interval_s: float = 0.0) -> dict[str, Any]:
    """Return advice for a client without a session."""
    return _advice(options, reconnect, interval_s=interval_s, timeout_s=options.timeout_s)


def multiple_clients_advice(options: Settings) -> dict[str, Any]:
    """Return advice for a client whose browser has too many sessions: to poll, or to stop."""
    interval_s = options.multi_session_interval / 1000
    reconnect = "retry" if interval_s > 0 else "none"
    advice = _advice(
        options, reconnect, interval_s=max(interval_s, 0.0), timeout_s=options.timeout_s
    )
    advice["multiple-clients"] = True
    return advice


def _advice(
    options: Settings, reconnect: str, *, interval_s: float, timeout_s: float
) -> dict[str, Any]:
    advice: dict[str, Any] = {
        "reconnect": reconnect,
        "interval": milliseconds(interval_s),
        "timeout": milliseconds(timeout_s),
    }
    if options.handshake_reconnect:
        advice["maxInterval"] = milliseconds(options.max_interval_s)
    return advice
