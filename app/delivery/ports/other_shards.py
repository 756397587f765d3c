"""The port to the other shards of a deployment, which have receivers of the same channels."""

from typing import Protocol

from holdfast.delivery.messages.message import Message


class OthersPort(Protocol):
    """The other shards, as publishes see them."""

    def has_durable(self, channel: str, /) -> bool:
        """Return whether any of them may have durable receivers of the channel."""
        ...

    def pass_on(self, message: Message, /) -> None:
        """Pass on a message that is not stored: it leaves at the end of the turn."""
        ...
