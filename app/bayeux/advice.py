"""Advice to clients. It is always complete, because clients replace earlier advice with it."""

from typing import Any

from holdfast.bayeux.session import Session
from holdfast.settings import Settings


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
