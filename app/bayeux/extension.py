"""What an extension may do: base classes of what comes from outside as well as of our own."""

from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar

from app.bayeux.codec import Json
from app.bayeux.sessions import Session


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

    def check(self, message: Json) -> None:
        """Raise `Refused` if what stands under an owned key of the message's `ext` is unreadable.

        Of each message that has such a key, before anything of the message has effect.
        """

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        """Agree again with a session that the store kept while no server ran."""
        return None

    def event(self, event: Json) -> None:
        """Complete a published message, once for all its receivers."""
