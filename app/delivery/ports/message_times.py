"""How long messages take from their receipt to receivers, and until these acknowledge them."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

from holdfast.delivery.basics.times import NS_PER_S, WAITS_S, Histogram

if TYPE_CHECKING:
    from holdfast.delivery.messages.batch import Batch
    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.queues.receivers import Receiver

# How long the difference between the two clocks is used, and for how many receivers of one message
# the time of the first.
_APART_S: Final = 1.0
_RECEIVERS: Final = 1000


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
        # The turn to which the latest message went and its id, in which histogram it counts, and
        # how many more receivers got it.
        self._turn, self._id, self._histogram, self._more = -1.0, 0, self._plain, 0
        # How far the clock of messages is ahead of the clock of turns, as measured at this time.
        self._ahead_ns, self._measured_at = 0, -inf

    @property
    def hand_overs(self) -> Mapping[str, Histogram]:
        """From receipt to the first hand-over."""
        self._end_more()
        return {"plain": self._plain, "acking": self._acking, "durable": self._durable}

    @property
    def acks(self) -> Mapping[str, Histogram]:
        """From receipt to the acknowledgement."""
        self._end_more()
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
        if (
            len(messages) == 1
            and messages[0].id == self._id
            and turn == self._turn
            and histogram is self._histogram
            and self._more < _RECEIVERS
        ):
            # Nearly all of the work of a message for thousands of receivers.
            self._more += 1
            return
        self._end_more()
        time = self._time_of(turn)
        self._turn, self._histogram = turn, histogram
        for message in messages:
            self._id = id = message.id
            # Copies from histories and replays were received long ago, and did not wait.
            if message.is_initial or message.generation:
                self._id = 0
            else:
                # The clock of another machine may be ahead.
                histogram.add(time - id if time > id else 0, id)

    def _end_more(self) -> None:
        if self._more:
            self._histogram.add_again(self._more)
            self._more = 0

    def _time_of(self, turn: float) -> int:
        """Return the time of a turn by the clock of messages, which is read now and then."""
        turn_ns = int(turn * NS_PER_S)
        if not self._measured_at <= turn < self._measured_at + _APART_S:
            self._ahead_ns, self._measured_at = self._read_ns() - turn_ns, turn
        return turn_ns + self._ahead_ns
