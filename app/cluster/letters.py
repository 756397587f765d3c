"""Letters: what one shard asks another one to do, and its answers.

A letter is an entry for one shard. That shard's store moves it into the inbox in the step that
moves the place; the script that does what the letter asks also removes it and appends the answer,
an entry for the sender with the same id. So a letter is done once, whichever process is killed.
Letters do not wait for each other.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final, NamedTuple

from holdfast.cluster.frames import ANSWER, LETTER, Entry
from holdfast.delivery.messages.shard_letter import ShardLetter

# How long a sender waits for an answer, and how many may wait.
PATIENCE_S: Final = 5.0
MOST_WAITING: Final = 100_000
# A flag, none of a message: the letter is done however late. Others are refused after a time.
FOR_GOOD: Final = 4
# Flags of answers. The effect is stored, but only counts when replicas have it: now they do.
WAITS_FOR_REPLICAS: Final = 8
CONFIRMED: Final = 16
_NO_ANSWER: Final = b""


class Outcome(Enum):
    """What became of a letter, as far as its sender knows."""

    ANSWERED = "answered"
    # The shard refused it, because it came too late. It was not done.
    EXPIRED = "expired"
    # No answer came in time: it may be done, or be done later.
    UNKNOWN = "unknown"


class LetterResult(NamedTuple):
    """The outcome of a letter, and the answer if there is one."""

    outcome: Outcome
    answer: bytes = b""


class _Sent(NamedTuple):
    shard: int
    until: float
    done: Callable[[LetterResult], None]
    # The answer, while it waits for replicas.
    answer: bytes = _NO_ANSWER


class SentLetters:
    """Letters of this shard that wait for answers.

    Args:
        pass_on: Adds an entry for a shard to the log.
    """

    def __init__(self, pass_on: Callable[[Entry, int], None]) -> None:
        self._pass_on = pass_on
        self._sent: dict[int, _Sent] = {}
        # Answers that came too late, or to an earlier process.
        self.late = 0

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def is_full(self) -> bool:
        """Whether no more letters may be sent now."""
        return len(self._sent) >= MOST_WAITING

    def send(
        self,
        letter: Entry,
        shard: int,
        now: float,
        done: Callable[[LetterResult], None],
    ) -> None:
        """Send a letter, whose id no other has. `done` hears the result within some seconds."""
        self._sent[letter.id] = _Sent(shard, now + PATIENCE_S, done)
        self._pass_on(letter, shard)

    def answered(self, entry: Entry) -> None:
        """Take an answer from a log."""
        sent = self._sent.get(entry.id)
        if sent is None:
            self.late += 1
            return
        if entry.flags & WAITS_FOR_REPLICAS:
            self._sent[entry.id] = sent._replace(answer=entry.data)
            return
        del self._sent[entry.id]
        if entry.flags & CONFIRMED:
            outcome = Outcome.ANSWERED if sent.answer else Outcome.UNKNOWN
            sent.done(LetterResult(outcome, sent.answer))
            return
        is_refused = entry.data == _NO_ANSWER
        outcome = Outcome.EXPIRED if is_refused else Outcome.ANSWERED
        sent.done(LetterResult(outcome, entry.data))

    def tick(self, now: float) -> None:
        """End the wait for answers that did not come in time."""
        # Letters wait equally long, so the first ones are due first.
        late = []
        for id, sent in self._sent.items():
            if now < sent.until:
                break
            late.append(id)
        for sent in [self._sent.pop(id) for id in late]:
            sent.done(LetterResult(Outcome.UNKNOWN))


class Received(NamedTuple):
    """A letter in the inbox."""

    # The shard that sent it.
    sender: int
    entry: Entry

    @property
    def name(self) -> str:
        """Its name in the inbox."""
        return f"{self.sender} {self.entry.id}"

    @property
    def for_core(self) -> ShardLetter:
        """The letter as the core gets it."""
        entry = self.entry
        return ShardLetter(self.sender, entry.id, self.name, entry.channel, entry.data)


class Done(NamedTuple):
    """What the script that does a letter does besides: remove it, and append the answer."""

    name: str
    answer: Entry
    shard: int


class Inbox:
    """Letters that this shard has not done yet.

    Args:
        do: Begins to do a letter, and calls `done` later.
        refuse: Removes a letter that came too late, and appends the answer.
    """

    def __init__(self, do: Callable[[Received], None], refuse: Callable[[Done], None]) -> None:
        self._do = do
        self._refuse = refuse
        self._letters: dict[str, Received] = {}

    def __len__(self) -> int:
        return len(self._letters)

    def letters(self) -> Iterator[Received]:
        """Yield the letters that are not done."""
        yield from self._letters.values()

    def take(self, sender: int, letter: Entry, now_ms: int) -> None:
        """Do a letter that the store has in its inbox, or refuse it.

        The publisher of the entry is the time until which it may be done, in ms since 1970.
        """
        received = Received(sender, letter)
        if received.name in self._letters:
            # The store went back, and this process has told it the letter again.
            return
        self._letters[received.name] = received
        if letter.flags & FOR_GOOD or now_ms <= int(letter.publisher or 0):
            self._do(received)
        else:
            self._refuse(self.done(received, _NO_ANSWER))

    def done(self, received: Received, answer: bytes) -> Done:
        """Return what the script does that does the letter. It may be called once for each."""
        del self._letters[received.name]
        return done_with(received.for_core, answer)

    def forget(self, name: str) -> None:
        """Take note that the store has the answer to a letter."""
        self._letters.pop(name, None)


def done_with(letter: ShardLetter, answer: bytes, flags: int = 0) -> Done:
    """Return what the script does besides that does a letter: see `Effect`."""
    return Done(letter.name, Entry(ANSWER, "", letter.id, "", flags, answer), letter.sender)


def confirmation_of(letter: ShardLetter) -> Entry:
    """Return what follows an answer that waits for replicas."""
    return Entry(ANSWER, "", letter.id, "", CONFIRMED, _NO_ANSWER)


def letter(
    what: str, id: int, data: bytes, *, until_ms: int = 0, is_for_good: bool = False
) -> Entry:
    """Return a letter that asks for something, by its name.

    Unless it is for good, it is refused after a time, in ms since 1970.
    """
    return Entry(LETTER, what, id, str(until_ms), FOR_GOOD if is_for_good else 0, data)
