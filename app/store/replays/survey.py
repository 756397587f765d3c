"""Selects the letters of a replay, in the order in which their messages were published."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import TYPE_CHECKING, NamedTuple, Protocol

from holdfast.delivery.letters.dead import DeadLetter, LetterState
from holdfast.delivery.messages.message import Message
from holdfast.store.letters.filter import letter_id
from holdfast.store.letters.search import LetterSearch
from holdfast.store.replays.job_records import Job, JobState, Sent, SkipReason, is_brought

if TYPE_CHECKING:
    from holdfast.store.replays.moving import FarSession

# How many channels and receivers are listed.
_LARGEST = 20
# How many numbers a position takes in an array.
_NUMBERS = 3


class ReplayPosition(NamedTuple):
    """The position of a letter in a replay."""

    message: int
    letter: int
    # Size of the event in bytes.
    size: int

    @property
    def id(self) -> str:
        """The id of the letter."""
        return letter_id(self.letter)

    @property
    def text(self) -> str:
        """The position as text, as a job stores it. It sorts like positions."""
        return f"{self.message:019d} {self.id}"


class Order:
    """Letters by the age of their messages, starting after a position.

    There may be as many as the quota allows; each takes three numbers here. Letters that died in
    order form a run. Runs are merged during the replay, so that no large sort blocks the server.
    """

    def __init__(self, behind: str = "") -> None:
        self._behind = behind
        self._runs: list[array[int]] = []
        self._last: ReplayPosition | None = None

    def add(self, letters: Iterable[DeadLetter]) -> None:
        """Add letters, few enough to be sorted at once."""
        places = sorted(ReplayPosition(each.message, int(each.id), each.size) for each in letters)
        for place in places:
            if place.text <= self._behind:
                continue
            if self._last is None or place < self._last:
                self._runs.append(array("Q"))
            self._runs[-1].extend(place)
            self._last = place

    def steps(self, most: int, most_bytes: int) -> Iterator[list[ReplayPosition]]:
        """Return all positions in steps, bounded in number and roughly in bytes."""
        step: list[ReplayPosition] = []
        size = 0
        for place in merge(*map(_places, self._runs)):
            step.append(place)
            size += place.size
            if len(step) == most or size > most_bytes:
                yield step
                step, size = [], 0
        if step:
            yield step


def _places(run: "array[int]") -> Iterator[ReplayPosition]:
    return (ReplayPosition(*run[at : at + _NUMBERS]) for at in range(0, len(run), _NUMBERS))


class Receivers(Protocol):
    """The sessions of this process."""

    def is_durable(self, receiver: str) -> bool | None:
        """Return whether the session is durable, or None if it does not exist."""
        ...

    def is_away(self, receiver: str) -> bool:
        """Return whether messages for this session wait until its client returns."""
        ...

    def deliver(self, receiver: str, message: Message, letter: int) -> None:
        """Queue the message of a dead letter. For a durable session, the store has it already."""
        ...

    def queued(self, sent: Sequence[Sent]) -> Sequence[Sent]:
        """Return the messages that are still in their queues, waiting or in flight."""
        ...


def unfit(
    job: Job, letter: DeadLetter, receivers: Receivers, far: "FarSession | None" = None
) -> SkipReason | None:
    """Return the reason to skip the letter, or None. `far` is the target if it is elsewhere."""
    if letter.state is not LetterState.NEW:
        return SkipReason.REPLAYED
    if letter.generation >= job.options.max_replays:
        return SkipReason.GENERATION
    if far is None and receivers.is_durable(job.options.to or letter.key) is None:
        return SkipReason.RECEIVER
    return None


async def survey(
    job: Job,
    search: LetterSearch,
    receivers: Receivers,
    far: "FarSession | None" = None,
    *,
    are_brought: bool = False,
) -> Order:
    """Examine all matching letters, without effects: count them and sort the rest.

    Args:
        far: In a plan, the session that gets all, if another shard has it.
        are_brought: Whether other shards may have brought letters, with any ids.
    """
    far_is_away = far is not None and far.is_away
    channels: Counter[str] = Counter()
    by_receiver: Counter[str] = Counter()
    away: Counter[str] = Counter()
    messages: set[int] = set()
    order = Order(job.reached)
    async for step, last in search.scan(job.which):
        # Only letters from before the job, and no letters of messages that it replays.
        meant = [each for each in step if each.id < job.until or is_brought(job, each)]
        order.add(meant)
        channels.update(letter.channel for letter in meant)
        by_receiver.update(letter.key for letter in meant)
        if job.state is JobState.PLANNED:
            for letter in meant:
                why = unfit(job, letter, receivers, far)
                if why is None and job.options.to is not None:
                    why = SkipReason.REPEATED if letter.message in messages else None
                    messages.add(letter.message)
                if why is not None:
                    job.skip(why)
                elif far_is_away or receivers.is_away(job.options.to or letter.key):
                    receiver = job.options.to or letter.key
                    away[receiver] += 1
        if last >= job.until and not are_brought:
            break
    if not job.total:
        # Letters that an earlier process sent may no longer match.
        job.total = channels.total()
        job.channels = dict(channels.most_common(_LARGEST))
        job.receivers = dict(by_receiver.most_common(_LARGEST))
        job.away = dict(away.most_common(_LARGEST))
    return order
