"""The unit that is delivered: serialised once, shared by all its receivers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.delivery.publish_keys import Key

ORDINARY_PRIORITY = 5
_NS_PER_MS = 1_000_000


class Event:
    """What a transport writes; `frame` is room for one to keep its own form of the same bytes."""

    __slots__ = ("frame", "wire")

    def __init__(self, wire: bytes) -> None:
        self.wire = wire
        self.frame: bytes | None = None


class Message(Event):
    """One published message.

    `wire` is the complete event as JSON; no receiver ever causes it to be serialised again.
    `linger_s` makes it lazy: that long it may wait for company. `stem` is room for what dresses
    events up for single receivers; `told` and `told_in` are room for who keeps a journal.
    """

    __slots__ = (
        "channel",
        "expires_ms",
        "generation",
        "id",
        "is_direct",
        "is_durable",
        "is_late",
        "key",
        "leaves_no_letter",
        "life_ms",
        "linger_s",
        "priority",
        "properties",
        "sender",
        "stem",
        "told",
        "told_in",
    )

    def __init__(
        self,
        wire: bytes,
        *,
        id: int = 0,
        channel: str = "",
        sender: str = "",
        linger_s: float | None = None,
    ) -> None:
        self.wire = wire
        self.frame = None
        # When it was received, in nanoseconds; rising, and no other message of this node has it.
        self.id = id
        self.channel = channel
        # The absolute name of the session that published it; empty for the server's own.
        self.sender = sender
        self.linger_s = linger_s
        # Higher goes first, 0 to 9.
        self.priority = ORDINARY_PRIORITY
        self.life_ms: int | None = None
        # It leaves the queues where it waits when its life is over: then, in milliseconds since
        # 1970; never, if zero.
        self.expires_ms = 0
        self.is_durable = False
        # Given to one receiver, whatever that had subscribed to.
        self.is_direct = False
        # Others that came behind it may have passed it: among those that wait it takes its place.
        self.is_late = False
        # What the publisher wants receivers to know besides the data.
        self.properties: Mapping[str, Any] | None = None
        # How often it was replayed.
        self.generation = 0
        # Tells of another message, or of a moment: it never becomes a dead letter itself.
        self.leaves_no_letter = False
        self.stem: bytes | None = None
        self.told: Any = None
        self.told_in = 0
        # By which it is known again if its publisher sends it once more.
        self.key: Key | None = None

    @property
    def is_routed(self) -> bool:
        """Whether a subscription brought it."""
        return not (self.is_direct or self.generation)

    def limit_life(self, life_ms: int, *, is_forced: bool) -> None:
        """It is of use for so long; with force nobody gets it later who has not got it by then."""
        self.life_ms = life_ms
        self.expires_ms = self.id // _NS_PER_MS + life_ms if is_forced else 0
