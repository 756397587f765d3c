"""Judges whether each accepted message comes to everybody who is there, and how soon.

The oracle demands durable messages of receivers with a name, whatever goes wrong. This judge looks
at all others, which may be lost with a server or a connection, and at the time that all take.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tests.simulation.judges.excuses import HARMLESS, Excuses
from tests.simulation.oracle import Publish

# A store that is full takes nothing, and messages that are not stored need none.
_LOSE_NOTHING = HARMLESS | {"fill_store"}
# Without a store of its own that is there, a server goes on with all that needs none.
_OF_OWN_STORES = frozenset(("freeze_store", "fill_disk"))
_DELAY_NOTHING = frozenset(("set_clock",))
# After so long a receiver that connects again and again has whatever was accepted.
_HANDED_S = 6.0
# How long a message takes at most to who waits for one, if nothing goes wrong.
_CALM_S = 1.0
_MOST_TOLD = 10


class _Coming(NamedTuple):
    """When a message came, and since when its receiver had been waiting."""

    at: float
    waited_since: float


class Deliveries:
    """Collects what receivers wait for, and what they get.

    Args:
        now: Returns the true time.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        # Whether each server has a store of its own.
        self.are_embedded = False
        # Since when a session has a subscription. One of a name is the same for ever.
        self._subscribed: dict[tuple[str, str], float] = {}
        self._waits_since: dict[str, float] = {}
        self._heard_at: dict[str, list[float]] = defaultdict(list)
        self._came: dict[tuple[str, str], _Coming] = {}

    def subscribed(self, session: str, channel: str) -> None:
        """Note that a session has a subscription from now on."""
        self._subscribed.setdefault((session, channel), self._now())

    def waits(self, session: str) -> None:
        """Note that a session is about to connect."""
        self._waits_since[session] = self._now()

    def hears(self, session: str) -> None:
        """Note that the connect was answered: the session lives."""
        self._heard_at[session].append(self._now())

    def received(self, session: str, key: str) -> None:
        """Note that a message has come."""
        now = self._now()
        coming = _Coming(now, self._waits_since.get(session, now))
        self._came.setdefault((session, key), coming)

    # What it means

    def violations(
        self, published: Mapping[str, Publish], named: frozenset[str], excuses: Excuses
    ) -> list[str]:
        """Return what did not come, and what came late.

        Args:
            named: The sessions that have a name.
        """
        found: list[str] = []
        for key, publish in published.items():
            if publish.id:
                for session in self._receivers(publish):
                    found += self._of(key, publish, session, session in named, excuses)
        return found[:_MOST_TOLD]

    def _receivers(self, publish: Publish) -> Iterator[str]:
        """Yield the sessions that had subscribed before the message was published."""
        for (session, channel), since in self._subscribed.items():
            if channel == publish.channel and since < publish.begun_at:
                yield session

    def _of(
        self, key: str, publish: Publish, session: str, is_named: bool, excuses: Excuses
    ) -> Iterator[str]:
        coming = self._came.get((session, key))
        if coming is not None:
            yield from self._late(key, publish, session, coming, excuses)
        elif not (is_named and publish.is_durable):
            yield from self._lost(key, publish, session, excuses)

    def _lost(self, key: str, publish: Publish, session: str, excuses: Excuses) -> Iterator[str]:
        heard_at = self._heard_at[session]
        place = bisect_left(heard_at, publish.accepted_at + _HANDED_S)
        if place == len(heard_at):
            return
        # It may have come too seldom to get all that waited for it, until then.
        until = heard_at[place]
        excuses.judges("message that did not come")
        harmless = HARMLESS if publish.is_durable else _LOSE_NOTHING
        if self.are_embedded and not publish.is_durable:
            harmless |= _OF_OWN_STORES
        if not excuses.excuse("message lost", publish.begun_at, until, harmless=harmless):
            yield f"lost: {session} lacks {key}, accepted at {publish.accepted_at:.3f}"

    def _late(
        self, key: str, publish: Publish, session: str, coming: _Coming, excuses: Excuses
    ) -> Iterator[str]:
        excuses.judges("message that came")
        since = max(publish.accepted_at, coming.waited_since)
        took_s = coming.at - since
        if took_s > _CALM_S and not excuses.excuse(
            "message late", since, coming.at, harmless=_DELAY_NOTHING
        ):
            yield f"late: {key} came to {session} at {coming.at:.3f}, {took_s:.3f} s late"
