"""The base classes of all extensions, built-in ones and operators' own."""

from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar

from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.session_hooks import SessionHooks
from holdfast.delivery.messages.batch import Batch


class SessionExtension(SessionHooks):
    """The part of an extension that belongs to one session. All hooks are optional."""

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        """Inspect a client's message, and possibly change it, before it takes effect.

        Return True to let it pass. Return False or raise `Refused` to refuse it.
        """
        return True

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        """Change a reply before it is sent; `asked` is the `ext` of its request.

        `batch` has the messages that travel with the reply to a connect or a handshake; it may be
        empty. It is None if the reply carries no messages. If the hook raises, or changes what the
        session may get, the batch counts as lost and is sent again later.
        """


class ServerExtension:
    """Negotiates at the handshake. All hooks are optional."""

    # Keys of `ext` used between clients and this extension. Receivers never see them.
    owns: ClassVar[frozenset[str]] = frozenset()

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | Awaitable[SessionExtension | None] | None:
        """Negotiate with a new client. The returned extension is installed in its session.

        Raise `Refused` to deny the handshake. This may be an `async def`: the handshake is answered
        when it returns.
        """
        return None

    def check(self, message: Json) -> None:
        """Raise `Refused` if the value of an owned key in the message's `ext` is invalid.

        Called for each message with such a key, before the message takes effect.
        """

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        """Negotiate again for a session that was restored from the store."""
        return None

    def event(self, event: Json) -> None:
        """Change a published message, once for all its receivers."""
