"""Which letters a replay is about, in which order, and which of them it leaves out."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from app.delivery.dead_letters import DeadLetter, State
from app.delivery.messages import Message
from app.store.letter_search import LetterSearch
from app.store.replay_jobs import Job, JobState, Sent, Skip
from app.store.replay_order import Order

# Of channels and receivers.
_LARGEST = 20


class Receivers(Protocol):
    """The sessions of this process."""

    def is_durable(self, key: str) -> bool | None:
        """Whether the session is a durable one; None if there is none of this name."""
        ...

    def deliver(self, key: str, message: Message, letter: int) -> None:
        """Put what was this dead letter into the session's queue; in the store it stands there
        already, if durable.
        """
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


async def survey(job: Job, search: LetterSearch, receivers: Receivers) -> Order:
    """Look at all that the job is about, and do nothing: how much there is, and what is left."""
    channels: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    messages: set[int] = set()
    order = Order(job.reached)
    async for step, last in search.scan(job.which):
        meant = before(job, step)
        order.add(meant)
        channels.update(letter.channel for letter in meant)
        keys.update(letter.key for letter in meant)
        if job.state is JobState.PLANNED:
            for letter in meant:
                why = unfit(job, letter, receivers)
                if why is None and job.options.target is not None:
                    why = Skip.REPEATED if letter.message in messages else None
                    messages.add(letter.message)
                if why is not None:
                    job.skip(why)
        if last >= job.id:
            break
    if not job.total:
        # What a process before this one has sent may not be meant any more.
        job.total = channels.total()
        job.channels = dict(channels.most_common(_LARGEST))
        job.receivers = dict(keys.most_common(_LARGEST))
    return order
