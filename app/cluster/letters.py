"""Letters: what one shard asks another one to do, and its answers.

A letter is an entry for one shard. That shard's store moves it into the inbox in the step that
moves the place; the script that does what the letter asks also removes it and appends the answer,
an entry for the sender with the same id. So a letter is done once, whichever process is killed.
Letters do not wait for each other.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from holdfast.cluster.frames import ANSWER, LETTER, Entry
from holdfast.delivery.messages.shard_letter import ShardLetter

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
        done: Callable[[bytes | None], None],
    ) -> None:
        """Send a letter, whose id no other has.

        `done` hears the answer within some seconds, or None: it may be done, or be done later.
        """
        assert letter.id not in self._sent
        self._sent[letter.id] = _Sent(now + PATIENCE_S, done)
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
        answer = sent.answer if entry.flags & CONFIRMED else entry.data
        sent.done(answer or None)

    def tick(self, now: float) -> None:
        """End the wait for answers that did not come in time."""
        # Letters wait equally long, so the first ones are due first.
        late = []
        for id, sent in self._sent.items():
            if now < sent.until:
                break
            late.append(id)
        for sent in [self._sent.pop(id) for id in late]:
            sent.done(None)


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
        do: Begins to do a letter.
    """

    def __init__(self, do: Callable[[Received], None]) -> None:
        self._do = do
        self._letters: dict[str, Received] = {}

    def __len__(self) -> int:
        return len(self._letters)

    def letters(self) -> Iterator[Received]:
        """Yield the letters that are not done."""
        yield from self._letters.values()

    def take(self, sender: int, letter: Entry) -> None:
        """Do a letter that the store has in its inbox."""
        received = Received(sender, letter)
        if received.name in self._letters:
            # The store went back, and this process has told it the letter again.
            return
        self._letters[received.name] = received
        self._do(received)

    def forget(self, name: str) -> None:
        """Take note that the store has the answer to a letter."""
        self._letters.pop(name, None)


def done_with(letter: ShardLetter, answer: bytes, flags: int = 0) -> Done:
    """Return what the script does besides that does a letter: see `Effect`."""
    return Done(letter.name, Entry(ANSWER, "", letter.id, "", flags, answer), letter.sender)


def confirmation_of(letter: ShardLetter) -> Entry:
    """Return what follows an answer that waits for replicas."""
    return Entry(ANSWER, "", letter.id, "", CONFIRMED, _NO_ANSWER)


def letter(what: str, id: int, data: bytes) -> Entry:
    """Return a letter that asks for something, by its name."""
    return Entry(LETTER, what, id, "", 0, data)
