"""Judges the metrics of servers at rest against each other, and against what clients know (S9)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tests.simulation.judges.excuses import HARMLESS, LOSE_TAILS, Excuses
from tests.simulation.process import Process

_SAMPLE = re.compile(r"^(\w+?)(?:_total)?(?:\{(.*)\})? (\S+)$")
Page = Mapping[tuple[str, str], float]


@dataclass(slots=True)
class Served:
    """What clients know of messages: how many were accepted, and how many may have been."""

    accepted: int
    attempted: float
    # When the first one was published.
    since: float = 0.0
    # How many servers have published by themselves: alerts, and who logs in and out.
    own: int = 0


def read(text: str) -> Page:
    """Return the values on a page of metrics, by name and labels."""
    found = (_SAMPLE.match(line) for line in text.splitlines())
    return {(each[1], each[2] or ""): float(each[3]) for each in found if each is not None}


def pages_of(servers: Sequence[Process]) -> dict[int, tuple[Process, Page]]:
    """Read the metrics of the servers that serve now, by their places."""
    found: dict[int, tuple[Process, Page]] = {}

    def look(place: int, server: Process) -> None:
        if server.metrics is not None:
            found[place] = server, read(server.metrics())

    for place, server in enumerate(servers):
        # Its own clocks answer.
        server.call(partial(look, place, server))
    return found


class Counts:
    """Compares pages of metrics."""

    def __init__(
        self, pages: Mapping[int, tuple[Process, Page]], served: Served, excuses: Excuses
    ) -> None:
        self._pages = {place: page for place, (_, page) in pages.items()}
        self._served = served
        # Those that have counted everything.
        self._oldest = {
            place for place, (each, _) in pages.items() if each.began_at <= served.since
        }
        self._excuses = excuses

    def violations(self, now: float, *, count: int) -> list[str]:
        """Return what does not add up, if so many servers could serve clients."""
        are_all = 0 < count == len(self._oldest)
        return [
            *(each for place in self._pages for each in self._of(place)),
            *self._missing(now),
            *self._between(now),
            *(self._published(self._served) if are_all else ()),
        ]

    def _of(self, place: int) -> Iterator[str]:
        """Compare what one server says about its entries."""
        self._excuses.judges("page of metrics")
        page = self._pages[place]
        came = page["holdfast_entries_accepted", ""] + page["holdfast_entries_restored", ""]
        # Earlier releases borrow nothing.
        came += page.get(("holdfast_entries_borrowed", ""), 0)
        went = self._sum(place, "holdfast_entries_settled")
        there = page["holdfast_entries_waiting", ""] + page["holdfast_entries_in_flight", ""]
        if came != went + there:
            yield f"S9: server {place} had {came:g} entries, and knows of {went:g} and {there:g}"
        if page["holdfast_entries_unaccounted", ""]:
            yield f"S9: server {place} says that entries are unaccounted for"
        if failures := page["holdfast_work_failures", ""]:
            yield f"S9: server {place} says that {failures:g} pieces of work have failed"

    def _missing(self, now: float) -> Iterator[str]:
        """Say what was removed from a log before all had taken it; a failover may lose a tail."""
        for place in self._pages:
            self._excuses.judges("gap in a log")
            missing = self._sum(place, "holdfast_log_entries_missing")
            if missing and not self._excuses.excuse("gap in a log", 0.0, now, only=LOSE_TAILS):
                yield f"S9: server {place} says that {missing:g} entries of others are missing"

    def _between(self, now: float) -> Iterator[str]:
        """Compare what one server says that it has for others with what these say."""
        for sender in self._oldest:
            page = self._pages[sender]
            if ("holdfast_log_entries_appended", "") not in page:
                continue
            appended = page["holdfast_log_entries_appended", ""]
            for reader in self._oldest - {sender}:
                label = f'from="{sender}"'
                its = self._pages[reader]
                taken = its.get(("holdfast_log_entries_taken", label), 0.0)
                skipped = its.get(("holdfast_log_entries_skipped", label), 0.0)
                self._excuses.judges("log of a shard")
                if appended != taken + skipped and not self._is_excused(now):
                    yield (
                        f"S9: server {sender} has appended {appended:g} entries, server {reader} "
                        f"says that it has taken {taken:g} and skipped {skipped:g}"
                    )

    def _published(self, served: Served) -> Iterator[str]:
        """Compare what servers say that they have accepted with what clients were told."""
        self._excuses.judges("number of publishes")
        published = sum(self._sum(place, "holdfast_messages_published") for place in self._pages)
        if not served.accepted <= published <= served.attempted + served.own:
            yield (
                f"S9: servers say that they have accepted {published:g} messages, {served.own} of "
                f"their own at most, clients know of {served.accepted} of {served.attempted}"
            )

    def _is_excused(self, now: float) -> bool:
        return self._excuses.excuse("log of a shard", 0.0, now, harmless=HARMLESS | {"the start"})

    def _sum(self, place: int, name: str) -> float:
        return sum(value for (its, _), value in self._pages[place].items() if its == name)
