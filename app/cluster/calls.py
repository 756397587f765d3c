"""Calls: what one shard asks another one to do, and its answers, on their way by logs.

A call is an entry for one shard. The store of that shard moves it into its inbox in the step that
moves the place. The script that does what the call asks also removes it, and appends the answer, an
entry for the sender with the same id. So a call is done once, whichever process is killed. Calls do
not wait for each other.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from holdfast.cluster.frames import ANSWER, CALL, LogEntry
from holdfast.delivery.messages.shard_call import ShardCall

# How long a sender waits for an answer, and how many may wait.
PATIENCE_S: Final = 5.0
MOST_WAITING: Final = 100_000
# Flags of answers. The effect is stored, but only counts when replicas have it: now they do.
WAITS_FOR_REPLICAS: Final = 8
CONFIRMED: Final = 16
_NO_ANSWER: Final = b""


class _Sent(NamedTuple):
    until: float
    done: Callable[[bytes | None], None]
    # The answer, while it waits for replicas.
    answer: bytes = _NO_ANSWER


class SentCalls:
    """Calls of this shard that wait for answers.

    Args:
        pass_on: Adds an entry for a shard to the log.
    """

    def __init__(self, pass_on: Callable[[LogEntry, int], None]) -> None:
        self._pass_on = pass_on
        self._sent: dict[int, _Sent] = {}
        # Answers that came too late, or to an earlier process.
        self.late = 0

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def is_full(self) -> bool:
        """Whether no more calls may be sent now."""
        return len(self._sent) >= MOST_WAITING

    def send(
        self,
        call: LogEntry,
        shard: int,
        now: float,
        done: Callable[[bytes | None], None],
    ) -> None:
        """Send a call, whose id no other has.

        `done` hears the answer within some seconds, or None: it may be done, or be done later.
        """
        assert call.id not in self._sent
        self._sent[call.id] = _Sent(now + PATIENCE_S, done)
        self._pass_on(call, shard)

    def answered(self, entry: LogEntry) -> None:
        """Take an answer from a log."""
        sent = self._sent.get(entry.id)
        if sent is None:
            self.late += 1
            return
        if entry.flags & WAITS_FOR_REPLICAS:
            self._sent[entry.id] = sent._replace(answer=entry.data)
            return
        del self._sent[entry.id]
        answer = sent.answer if entry.flags & CONFIRMED else entry.data
        sent.done(answer or None)

    def tick(self, now: float) -> None:
        """End the wait for answers that did not come in time."""
        # Calls wait equally long, so the first ones are due first.
        late = []
        for id, sent in self._sent.items():
            if now < sent.until:
                break
            late.append(id)
        for sent in [self._sent.pop(id) for id in late]:
            sent.done(None)


class Received(NamedTuple):
    """A call of another shard, which the store has in its inbox."""

    # The shard that sent it.
    sender: int
    entry: LogEntry

    @property
    def name(self) -> str:
        """Its name in the inbox."""
        return f"{self.sender} {self.entry.id}"

    @property
    def for_core(self) -> ShardCall:
        """The call as the core gets it."""
        entry = self.entry
        return ShardCall(self.sender, entry.id, self.name, entry.channel, entry.data)


class Done(NamedTuple):
    """What the script that does what a call asks does besides: remove it, append the answer."""

    name: str
    answer: LogEntry
    shard: int


class UndoneCalls:
    """Calls of others that this shard has not done yet.

    Args:
        do: Begins to do a call.
    """

    def __init__(self, do: Callable[[Received], None]) -> None:
        self._do = do
        self._calls: dict[str, Received] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def calls(self) -> Iterator[Received]:
        """Yield the calls that are not done."""
        yield from self._calls.values()

    def take(self, sender: int, call: LogEntry) -> None:
        """Do a call that the store has."""
        received = Received(sender, call)
        if received.name in self._calls:
            # The store went back, and this process has told it the call again.
            return
        self._calls[received.name] = received
        self._do(received)

    def forget(self, name: str) -> None:
        """Take note that the store has the answer to a call."""
        self._calls.pop(name, None)


def done_with(call: ShardCall, answer: bytes, flags: int = 0) -> Done:
    """Return what the script does besides that does what a call asks: see `Effect`."""
    return Done(call.name, LogEntry(ANSWER, "", call.id, "", flags, answer), call.sender)


def confirmation_of(call: ShardCall) -> LogEntry:
    """Return what follows an answer that waits for replicas."""
    return LogEntry(ANSWER, "", call.id, "", CONFIRMED, _NO_ANSWER)


def call(what: str, id: int, data: bytes) -> LogEntry:
    """Return the entry of a call: `what` is its operation."""
    return LogEntry(CALL, what, id, "", 0, data)
