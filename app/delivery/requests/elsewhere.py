"""The port between requests and the other shards, whose sessions ask and answer them, too."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from holdfast.delivery.messages.storing import RequestFields
    from holdfast.delivery.queues.receivers import Receiver
    from holdfast.delivery.requests.request import Request


class ElsewherePort(Protocol):
    """What a shard has to do with the requests of others, and others with its own."""

    def expect(self, request: "Request[Any]", /) -> None:
        """Let the request wait until all other shards have said who may answer it."""
        ...

    def ask(self, request: "Request[Any]", /) -> None:
        """Ask the shards that have not said so, behind the request's message."""
        ...

    def is_far(self, key: str, /) -> bool:
        """Return whether another shard has the session."""
        ...

    def session_ended(self, key: str, /) -> None:
        """Tell other shards that this session answers no request."""
        ...

    def tick(self, now: float, /) -> None:
        """Forget old requests of others, and repeat letters that had no answer."""
        ...

    def fields(self) -> "RequestFields":
        """Return the stored fields of requests of others."""
        ...

    def passing_fields(self) -> "Iterator[tuple[str, RequestFields]]":
        """Yield the names and fields of those that the store does not have."""
        ...

    def reopen(self, fields: "RequestFields", now: float, /, *, are_kept: bool) -> "RequestFields":
        """Continue the requests of others. Returns the other fields, which are of own requests."""
        ...

    def rejoin(self, receivers: "Collection[Receiver]", /) -> None:
        """Attach restored messages to the requests of others."""
        ...
