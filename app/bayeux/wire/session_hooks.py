"""The hooks of extensions that sessions call."""

from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.messages.batch import Batch


class SessionHooks:
    """The part of an extension that belongs to one session. See `SessionExtension`."""

    # If an incoming hook raises, the message is refused unless the extension is optional.
    optional: ClassVar[bool] = False

    def incoming(self, session: Any, message: Json, now: float) -> bool:  # noqa: ANN401
        return True

    def outgoing(
        self,
        session: Any,  # noqa: ANN401 - sessions know these hooks, so these do not know sessions
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None: ...
