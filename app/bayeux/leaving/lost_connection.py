"""The connection that carried a session's last reply and ended before the process did."""

from collections.abc import Sequence

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.messages.message import Event


class LostConnection:
    """Stands for a carrier of the former process: it is unknown whether the reply arrived."""

    def __init__(self, connection_type: ConnectionType) -> None:
        self.connection_type = connection_type

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> bool:
        return False

    def is_draining(self) -> bool:
        return False

    def has_unread(self) -> bool:
        return False

    def is_lost(self) -> bool:
        return True
