"""How long messages take from their receipt to receivers, and until these acknowledge them."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.delivery.basics.times import WAITS_S, Histogram

if TYPE_CHECKING:
    from holdfast.delivery.messages.batch import Batch
    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.queues.receivers import Receiver

# One turn of the event loop has one time, and may hand messages over to thousands of receivers: the
# clock is read again for so many of them.
_RECEIVERS: Final = 16


class MessageTimes:
    """The times of messages, by kind of receiver.

    `plain` receivers acknowledge nothing; `acking` ones do, and `durable` ones are stored, too.

    Args:
        read_ns: Reads the clock that gives messages their ids, which are nanoseconds.
    """

    def __init__(self, read_ns: Callable[[], int]) -> None:
        self._read_ns = read_ns
        self._plain, self._acking, self._durable = (Histogram(WAITS_S) for _ in range(3))
        self._acking_acks, self._durable_acks = Histogram(WAITS_S), Histogram(WAITS_S)
        # The time, for which turn it was read, and for how many more receivers it is used.
        self._time, self._turn, self._left = 0, -1.0, 0

    @property
    def hand_overs(self) -> Mapping[str, Histogram]:
        """From receipt to the first hand-over."""
        return {"plain": self._plain, "acking": self._acking, "durable": self._durable}

    @property
    def acks(self) -> Mapping[str, Histogram]:
        """From receipt to the acknowledgement."""
        return {"acking": self._acking_acks, "durable": self._durable_acks}

    def handed_over(self, receiver: "Receiver", batch: "Batch", turn: float) -> None:
        """Count the messages that are handed over for the first time."""
        entries, messages = batch.entries, batch.messages
        if entries is not None:
            messages = [entry.message for entry in entries if entry.attempts == 1]
        self._count(self._durable if receiver.is_durable else self._acking, messages, turn)

    def written(self, messages: "Sequence[Message]", turn: float) -> None:
        """Count messages that a plain receiver got."""
        self._count(self._plain, messages, turn)

    def acked(self, receiver: "Receiver", messages: "Sequence[Message]", turn: float) -> None:
        """Count messages that a receiver has acknowledged."""
        acks = self._durable_acks if receiver.is_durable else self._acking_acks
        self._count(acks, messages, turn)

    def _count(self, histogram: Histogram, messages: "Sequence[Message]", turn: float) -> None:
        self._left -= 1
        if turn != self._turn or self._left < 0:
            self._time, self._turn, self._left = self._read_ns(), turn, _RECEIVERS
        time = self._time
        for message in messages:
            # Copies from histories and replays were received long ago, and waited for nobody.
            if not (message.is_initial or message.generation):
                id = message.id
                # The clock of another machine may be ahead.
                histogram.add(time - id if time > id else 0, id)
