"""What extensions may do, and the order in which they do it."""

import logging
from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.sessions import Session

log = logging.getLogger(__name__)


class SessionExtension:
    """What an extension does for one session. Every hook may be left out."""

    # Only an optional extension lets a message pass when its incoming hook raises.
    optional: ClassVar[bool] = False

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        """See a message of the client before anything is done with it; False drops it."""
        return True

    def outgoing(self, session: Session, reply: Json, asked: Mapping[str, Any], now: float) -> None:
        """Complete a reply that is about to be written; `asked` is the `ext` of its request.

        The messages that travel along are handed over afterwards.
        """


class ServerExtension:
    """Negotiates at handshake. Every hook may be left out."""

    # Keys of `ext` that are between clients and this extension: receivers never see them.
    owns: ClassVar[frozenset[str]] = frozenset()

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | Awaitable[SessionExtension | None] | None:
        """Agree with a new client; what is returned stays with its session.

        Raise `Refused` to deny the handshake. What takes time is an `async def`: the handshake is
        answered when it has returned.
        """
        return None

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        """Agree again with a session that the store kept while no server ran."""
        return None

    def event(self, event: Json) -> None:
        """Complete a published message, once for all its receivers."""


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
