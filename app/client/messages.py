"""Messages as the client receives them."""

from typing import Any, NamedTuple

from holdfast.client.wire import Json, part_of

# The media type of data whose message states none.
JSON = "application/json"


class Reply(NamedTuple):
    """The return value of a responder whose data are not plain JSON."""

    data: Any
    mime: str


class Message:
    """A message that was published to a channel, as one receiver gets it.

    The properties below `data` are those that Holdfast adds for receivers with verdicts; with
    other servers they have their defaults.
    """

    __slots__ = (
        *("_delivery", "channel", "data", "has_begun", "id", "is_returned", "left"),
        *("refusal", "seq", "wire"),
    )

    def __init__(self, wire: Json) -> None:
        self.wire = wire
        self.channel: str = wire["channel"]
        self.data: Any = wire.get("data")
        ext = wire.get("ext")
        delivery = ext.get("delivery") if isinstance(ext, dict) else None
        self._delivery: Json = delivery if isinstance(delivery, dict) else {}
        # The id of the message, the same each time that it is delivered.
        self.id: str | None = self._delivery.get("id")
        # The number of the last hand-over, as long as the server would understand it.
        self.seq: int | None = self._delivery.get("seq")
        # The subscriptions that have yet to finish with it, and the first refusal of one.
        self.left = 0
        self.refusal: Exception | None = None
        # Whether a subscription has begun to process it, and whether none is to begin, because it
        # comes again behind one that was refused for now.
        self.has_begun = self.is_returned = False

    def __repr__(self) -> str:
        return f"<Message {self.id or ''} on {self.channel}>"

    @property
    def sender(self) -> str | None:
        """The session that published it."""
        return self._delivery.get("sender")

    @property
    def subscription(self) -> str | None:
        """The channel or pattern that matched."""
        return self._delivery.get("subscription")

    @property
    def priority(self) -> int:
        """The rank from 0 to 9; 5 is usual."""
        return int(self._delivery.get("priority", 5))

    @property
    def properties(self) -> Json:
        """The names and values that the publisher added."""
        return self._delivery.get("properties") or {}

    @property
    def redelivered(self) -> int:
        """How often it was handed over before."""
        return int(self._delivery.get("redelivered", 0))

    @property
    def generation(self) -> int:
        """How often an operator has replayed it."""
        return int(self._delivery.get("generation", 0))

    @property
    def is_initial(self) -> bool:
        """Whether it comes from the history of its channel."""
        return self._delivery.get("initial") is True

    @property
    def timestamp_ns(self) -> int | None:
        """When the server received it, in nanoseconds since 1970."""
        stamp = self._delivery.get("rcvTimestamp")
        return None if stamp is None else int(stamp)

    @property
    def reply_to(self) -> str | None:
        """The channel for the reply, if this is a request."""
        channel = part_of(self.wire, "ext", "replyTo")
        return channel if isinstance(channel, str) else None

    @property
    def mime(self) -> str:
        """The media type of the data."""
        mime = part_of(self.wire, "ext", "mime")
        return mime if isinstance(mime, str) else JSON

    @property
    def remaining_life_s(self) -> float | None:
        """For how long it is worth processing; None without a limit."""
        left = part_of(self._delivery, "expiration", "remainingLife")
        return None if left is None else left / 1000
