"""Where readers of histories are answered: at the homes of the channels."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.bayeux.server import Bayeux
from holdfast.web.streams.event_answers import EventAnswer, EventQuestion, EventsHere
from holdfast.web.streams.history_answers import Answer, Question, StreamsHere
from holdfast.web.streams.readers_here import ReadersHere


class KnowsHomes(Protocol):
    """What a door knows of the homes of channels."""

    def homes_of(self, pattern: str, /) -> Sequence[int | None]:
        """Return the shards that may order channels of the pattern; None stands for this one."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks the home of a channel, by its number. Both raise `RequestRefused` if it is away."""

    history: Callable[[int, Question], Awaitable[Answer]]
    events: Callable[[int, EventQuestion], Awaitable[EventAnswer]]
    homes: KnowsHomes | None
    # This shard.
    number: int
    # What differs if any channel has another home; empty if there is one shard.
    division: str = ""

    def homes_of(self, channels: Iterable[str]) -> dict[int, list[str]]:
        """Return, by home, which of the channels and patterns it has, or may have."""
        found: dict[int, list[str]] = {}
        for channel in channels:
            for home in (None,) if self.homes is None else self.homes.homes_of(channel):
                found.setdefault(self.number if home is None else home, []).append(channel)
        return dict(sorted(found.items()))


def asking_here(bayeux: Bayeux, next_turn: Callable[[], Awaitable[None]]) -> Asking:
    """Return what asks the only shard, which is this one."""
    readers = ReadersHere(bayeux, next_turn)
    histories, events = StreamsHere(bayeux, readers), EventsHere(bayeux, readers)
    return Asking(
        lambda _, question: histories.answer(question),
        lambda _, question: events.answer(question),
        None,
        0,
    )
