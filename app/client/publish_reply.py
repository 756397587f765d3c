"""The server's reply to a publish."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from holdfast.client.wire import Json, part_of


@dataclass(frozen=True, slots=True)
class PublishReply:
    """The server's reply to a message that it accepted."""

    # The id by which the server and receivers know it; only for publishes with options.
    id: str | None
    # When it received the message, in nanoseconds since 1970; only for publishes with options.
    timestamp_ns: int | None
    # The outcome for each destination.
    destinations: Sequence[Json]
    # The whole reply.
    wire: Json = field(repr=False)

    @classmethod
    def of(cls, wire: Json) -> Self:
        """Take the reply as it came."""
        said = part_of(wire, "ext", "delivery")
        delivery: Json = said if isinstance(said, dict) else {}
        stamp = delivery.get("rcvTimestamp")
        return cls(
            id=delivery.get("id"),
            timestamp_ns=None if stamp is None else int(stamp),
            destinations=delivery.get("destinations") or (),
            wire=wire,
        )
