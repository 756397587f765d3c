"""The order in which extensions see a message, and how their failures are handled.

An extension that raises SystemExit or CancelledError has failed like one that raises any other
exception.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.hooks import check_outcome
from holdfast.bayeux.wire.session_hooks import SessionHooks
from holdfast.delivery.basics.notices import DROPPED, Notices
from holdfast.delivery.messages.batch import Batch

_Hook = Callable[..., object]

log = logging.getLogger(__name__)


def run_incoming(session: Session, message: Json, now: float, *, notices: Notices) -> None:
    """Run the hooks in order. A hook that drops the message or raises refuses it."""
    for extension in session.extensions:
        try:
            passes = _ask(extension, session, message, now)
        except Refused:
            raise
        except BaseException:
            log.exception("incoming hook of %s failed", type(extension).__name__)
            if not extension.optional:
                raise Refused(ErrorReply.SERVER_FAULT) from None
            passes = True
        if not passes:
            notices.report(DROPPED, session.key, type(extension).__name__)
            raise Refused(ErrorReply.MESSAGE_DELETED)


def _ask(extension: SessionHooks, session: Session, message: Json, now: float) -> bool:
    """Return whether the extension lets the message pass, which takes exactly True."""
    # Typed as an unknown callable, because compiled code trusts the hook's annotations.
    hook: _Hook = extension.incoming
    outcome = hook(session, message, now)
    if outcome is True or outcome is False:
        return outcome
    check_outcome("incoming", outcome)
    raise TypeError(f"incoming must return True or False, not {outcome!r}")


def run_outgoing(
    session: Session, reply: Json, asked: Mapping[str, Any], now: float, *, batch: Batch | None
) -> bool:
    """Run the hooks in reverse order. Returns whether the batch may travel with the reply.

    The reply itself is sent even if a hook fails.
    """
    passes = True
    for extension in reversed(session.extensions):
        try:
            hook: _Hook = extension.outgoing
            outcome = hook(session, reply, asked, now, batch=batch)
            if outcome is not None:
                check_outcome("outgoing", outcome)
        except BaseException:
            log.exception("outgoing hook of %s failed", type(extension).__name__)
            passes = passes and extension.optional
    return passes
