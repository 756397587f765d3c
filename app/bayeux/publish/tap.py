"""What arrives from other shards while subscribes read the histories of these."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence

from holdfast.bayeux.session import Session
from holdfast.delivery.basics.channels import lookups
from holdfast.delivery.messages.crossing import spared_by
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.histories import Arrival


class Arrived:
    """A message of another shard, and its receivers here."""

    __slots__ = ("has_durable", "is_durable", "keys", "latecomers", "message", "receivers")

    def __init__(
        self,
        message: Message,
        receivers: Sequence[Session],
        keys: Sequence[str],
        *,
        is_durable: bool,
        has_durable: bool,
    ) -> None:
        self.message = message
        # Those that have not got it.
        self.receivers = receivers
        # Whether some were durable in the beginning.
        self.has_durable = has_durable
        # The durable ones: the store must have the message for these before it is shown.
        self.keys = keys
        # Whether it is stored for durable receivers, and those that subscribed before it is shown.
        self.is_durable = is_durable
        self.latecomers: Sequence[str] = ()

    def include(self, session: Session) -> None:
        """Add a new subscriber to the receivers."""
        message = self.message
        if session in self.receivers or (message.records and session.key in spared_by(message)):
            return
        self.receivers = (*self.receivers, session)
        if self.is_durable and session.is_durable:
            self.latecomers = (*self.latecomers, session.key)


class Tap:
    """Records messages that arrive on some channels, whether or not they have receivers."""

    def __init__(self) -> None:
        self._patterns: Counter[str] = Counter()
        # The arrival of the next message.
        self.arrival = Arrival()
        # By id, the messages whose receivers were chosen, and which are not shown yet.
        self._coming: dict[int, Arrived] = {}

    def begin(self, patterns: Iterable[str]) -> Arrival:
        """Record messages of these channels until `end`. Returns where they begin."""
        self._patterns.update([*patterns])
        return self.arrival

    def end(self, patterns: Iterable[str]) -> None:
        """Record them no longer."""
        for each in patterns:
            self._patterns[each] -= 1
            if not self._patterns[each]:
                del self._patterns[each]
        if not self._patterns:
            self._coming.clear()

    def wants(self, channel: str) -> bool:
        """Return whether messages of the channel are recorded."""
        patterns = self._patterns
        return bool(patterns) and any(each in patterns for each in lookups(channel))

    def comes(self, arrived: Arrived) -> None:
        """Take note of a message that will be shown. It may come again, if it was not stored."""
        self._coming[arrived.message.id] = arrived

    def latecomers(self, id: int) -> list[Session]:
        """Return who has subscribed since a message came, and needs no store to get it."""
        coming = self._coming.get(id)
        receivers = () if coming is None else coming.receivers
        return [each for each in receivers if not each.is_durable]

    def shown(self, arrived: Arrived) -> None:
        """Record a message that is shown."""
        self._coming.pop(arrived.message.id, None)
        message = arrived.message.initial()
        # Also if no receiver here was durable.
        message.is_durable = arrived.is_durable
        arrival, self.arrival = self.arrival, Arrival()
        arrival.message, arrival.next = message, self.arrival

    def coming(self, patterns: Container[str]) -> list[Arrived]:
        """Return the messages of these channels that are not shown yet."""
        return [
            arrived
            for arrived in self._coming.values()
            if any(each in patterns for each in lookups(arrived.message.channel))
        ]
