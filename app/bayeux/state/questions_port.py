"""The port to what asks the backend about channels."""

from typing import Protocol

from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import Undecided


class QuestionsPort(Protocol):
    """Asks the backend what sessions may do."""

    def holds(self, exchange: Exchange, undecided: Undecided, message: Json) -> bool:
        """Have the backend asked about a message, and hold up its request until the answer.

        Returns False if the request has waited for too long.
        """
        ...

    def ask_again(self, session: Session, pattern: str) -> None:
        """Have the backend asked about a subscription, which stays until the answer."""
        ...
