"""The order in which extensions see a message, and what happens when one fails."""

import logging
from collections.abc import Mapping
from typing import Any

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.sessions import Session

log = logging.getLogger(__name__)


def run_incoming(session: Session, message: Json, now: float) -> None:
    """In order, and failing closed: a hook that drops or raises refuses the message."""
    for extension in session.extensions:
        try:
            passes = extension.incoming(session, message, now)
        except Refused:
            raise
        except Exception:
            log.exception("incoming hook of %s failed", type(extension).__name__)
            passes = extension.optional
        if not passes:
            log.info("message dropped by %s, session %d", type(extension).__name__, session.number)
            raise Refused(BayeuxError.MESSAGE_DELETED)


def run_outgoing(session: Session, reply: Json, asked: Mapping[str, Any], now: float) -> None:
    """In reversed order; a reply is owed anyway, so failures are only logged."""
    for extension in reversed(session.extensions):
        try:
            extension.outgoing(session, reply, asked, now)
        except Exception:
            log.exception("outgoing hook of %s failed", type(extension).__name__)
