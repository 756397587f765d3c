"""Which letters a replay is about, and which of them it leaves out."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from app.delivery.dead_letters import DeadLetter, State
from app.delivery.messages import Message
from app.store.letter_search import LetterSearch
from app.store.replay_jobs import Job, JobState, Sent, Skip

# Of channels and receivers.
_LARGEST = 20


class Receivers(Protocol):
    """The sessions of this process."""

    def is_durable(self, key: str) -> bool | None:
        """Whether the session is a durable one; None if there is none of this name."""
        ...

    def deliver(self, key: str, message: Message) -> None:
        """Put it into the session's queue; in the store it stands there already, if durable."""
        ...

    def waiting(self, sent: Sequence[Sent]) -> Sequence[Sent]:
        """Those that are in their queues still, waiting or handed over."""
        ...


def before(job: Job, letters: list[DeadLetter]) -> list[DeadLetter]:
    """Those that had died when the job began; what it kills itself is not meant."""
    return [letter for letter in letters if letter.id < job.id]


def unfit(job: Job, letter: DeadLetter, receivers: Receivers) -> Skip | None:
    """Why the letter is left out, if it is."""
    if letter.state is not State.NEW:
        return Skip.REPLAYED
    if letter.generation >= job.options.max_generation:
        return Skip.GENERATION
    if receivers.is_durable(job.options.target or letter.key) is None:
        return Skip.RECEIVER
    return None


async def survey(job: Job, search: LetterSearch, receivers: Receivers) -> None:
    """Count what the job is about to do, and do nothing."""
    channels: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    total = 0
    async for step, last in search.scan(job.which):
        for letter in before(job, step):
            total += 1
            channels[letter.channel] += 1
            keys[letter.key] += 1
            why = unfit(job, letter, receivers)
            if why is not None and job.state is JobState.PLANNED:
                job.skip(why)
        if last >= job.id:
            break
    job.total = total
    job.channels = dict(channels.most_common(_LARGEST))
    job.receivers = dict(keys.most_common(_LARGEST))
