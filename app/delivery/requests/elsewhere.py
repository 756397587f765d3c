"""The port between requests and the other shards, whose sessions ask and answer them, too."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.requests.request import Request

    # By the key of a session, why it refused: a code and a text. None if it will not answer.
    Lost = Mapping[str, tuple[str, str] | None]


class RequestsElsewhere(Protocol):
    """What a shard has to do with the requests of others, and others with its own."""

    # Stands for requesters of other shards.
    stand_in: Any

    def expect(self, request: "Request[Any]", /) -> None:
        """Let the request wait until all other shards have said who may answer it."""
        ...

    def ask(self, request: "Request[Any]", /) -> None:
        """Ask the shards that have not said so, behind the request's message."""
        ...

    def is_far(self, key: str, /) -> bool:
        """Return whether another shard has the session."""
        ...

    def shard_of(self, address: str, /) -> int | None:
        """Return the shard of the session that gets replies there; None if it is this one."""
        ...

    def unsaved(self, message: "Message", /) -> "Request[Any] | None":
        """Return the request of others that a restored message is, although none was restored."""
        ...

    def changed(self, request: "Request[Any]", keys: "Collection[str]", lost: "Lost", /) -> None:
        """Tell the shard of a request which sessions here may answer it now, or will not."""
        ...

    def tick(self) -> None:
        """Repeat calls that had no answer."""
        ...
