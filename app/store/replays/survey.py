"""Selects the letters of a replay, and their order."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from holdfast.delivery.letters.dead_letters import DeadLetter, LetterState
from holdfast.delivery.messages.message import Message
from holdfast.store.letters.search import LetterSearch
from holdfast.store.replays.job_records import Job, JobState, Sent, SkipReason
from holdfast.store.replays.order import Order

# Channels and receivers to list.
_LARGEST = 20


class Receivers(Protocol):
    """The sessions of this process."""

    def is_durable(self, receiver: str) -> bool | None:
        """Return whether the session is durable; None if it does not exist."""
        ...

    def is_away(self, receiver: str) -> bool:
        """Return whether messages for this session wait until its client comes back."""
        ...

    def deliver(self, receiver: str, message: Message, letter: int) -> None:
        """Put the message of a dead letter into the session's queue. If the session is durable, the
        store has the entry already.
        """
        ...

    def queued(self, sent: Sequence[Sent]) -> Sequence[Sent]:
        """Return the messages that are still in their queues, waiting or in flight."""
        ...


def unfit(job: Job, letter: DeadLetter, receivers: Receivers) -> SkipReason | None:
    """Return the reason to skip the letter, or None."""
    if letter.state is not LetterState.NEW:
        return SkipReason.REPLAYED
    if letter.generation >= job.options.max_replays:
        return SkipReason.GENERATION
    if receivers.is_durable(job.options.to or letter.key) is None:
        return SkipReason.RECEIVER
    return None


async def survey(job: Job, search: LetterSearch, receivers: Receivers) -> Order:
    """Examine all matching letters without effects: count them and order what is left."""
    channels: Counter[str] = Counter()
    by_receiver: Counter[str] = Counter()
    away: Counter[str] = Counter()
    messages: set[int] = set()
    order = Order(job.reached)
    async for step, last in search.scan(job.which):
        # Only letters from before the job: not those of messages that it replays.
        meant = [letter for letter in step if letter.id < job.id]
        order.add(meant)
        channels.update(letter.channel for letter in meant)
        by_receiver.update(letter.key for letter in meant)
        if job.state is JobState.PLANNED:
            for letter in meant:
                why = unfit(job, letter, receivers)
                if why is None and job.options.to is not None:
                    why = SkipReason.REPEATED if letter.message in messages else None
                    messages.add(letter.message)
                if why is not None:
                    job.skip(why)
                elif receivers.is_away(receiver := job.options.to or letter.key):
                    away[receiver] += 1
        if last >= job.id:
            break
    if not job.total:
        # Letters that an earlier process sent may not match any more.
        job.total = channels.total()
        job.channels = dict(channels.most_common(_LARGEST))
        job.receivers = dict(by_receiver.most_common(_LARGEST))
        job.away = dict(away.most_common(_LARGEST))
    return order
