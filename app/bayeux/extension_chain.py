"""The order in which extensions see a message, and what happens when one fails.

One that exits, or is cancelled although nothing of the server's was, has failed like any other.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.extension import SessionExtension
from app.bayeux.hooks import check_outcome
from app.bayeux.sessions import Session
from app.bayeux.unfinished import Unfinished
from app.delivery.notices import DROPPED, Notices

_Hook = Callable[..., object]

log = logging.getLogger(__name__)


def run_incoming(
    session: Session, message: Json, now: float, begin: int = 0, *, notices: Notices
) -> None:
    """In order, and failing closed: a hook that drops or raises refuses the message."""
    extensions = session.extensions[begin:] if begin else session.extensions
    for extension in extensions:
        try:
            passes = _ask(extension, session, message, now)
        except Refused:
            raise
        except Unfinished as unfinished:
            unfinished.extension = session.extensions.index(extension)
            raise
        except BaseException:
            log.exception("incoming hook of %s failed", type(extension).__name__)
            if not extension.optional:
                raise Refused(BayeuxError.SERVER_FAULT) from None
            passes = True
        if not passes:
            notices.tell(DROPPED, session.key, type(extension).__name__)
            raise Refused(BayeuxError.MESSAGE_DELETED)


def _ask(extension: SessionExtension, session: Session, message: Json, now: float) -> bool:
    """Whether the extension lets the message pass: nothing but True says so."""
    # Called as what it may be: compiled code would take the annotation at its word.
    hook: _Hook = extension.incoming
    outcome = hook(session, message, now)
    if outcome is True or outcome is False:
        return outcome
    check_outcome("incoming", outcome)
    raise TypeError(f"incoming must return True or False, not {outcome!r}")


def run_outgoing(session: Session, reply: Json, asked: Mapping[str, Any], now: float) -> None:
    """In reversed order; a reply is owed anyway, so failures are only logged."""
    for extension in reversed(session.extensions):
        try:
            hook: _Hook = extension.outgoing
            outcome = hook(session, reply, asked, now)
            if outcome is not None:
                check_outcome("outgoing", outcome)
        except BaseException:
            log.exception("outgoing hook of %s failed", type(extension).__name__)
