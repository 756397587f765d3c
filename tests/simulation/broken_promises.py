"""Servers that break promises to clients that only judges of all clients look at."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from holdfast.bayeux.leaving import giving
from holdfast.bayeux.sessions.claims import Claims
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.cluster import frames, log
from holdfast.cluster.places import Place
from holdfast.cluster.trimming import Trimming
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.queues.in_flight import InFlight
from holdfast.delivery.requests.outstanding import Requests
from holdfast.sharding import passing
from holdfast.web.forwarding import parking
from tests.simulation.breaking import by_name, nothing, replace, rewrite

# How long the log keeps what is taken, so that a short absence is too long for it.
_KEPT_S = 0.5
# The size at which frames are split, which most are not.
_SMALL = 100


def places_are_not_compared(stack: ExitStack) -> None:
    """A shard takes what it has taken before, if its store has answered late."""
    rewrite(stack, "if found ~= ARGV[at + 1] then", "if false then")


def acks_of_former_clients_count(stack: ExitStack) -> None:
    """An ack settles batches that a former client of the session was handed."""

    def go_on(self: InFlight) -> list[Entry]:
        self.return_all()
        self.is_restored = False
        return list(self.returned.values())

    replace(stack, InFlight, "return_for_takeover", go_on)


def a_browser_may_have_any_number_of_names(stack: ExitStack) -> None:
    replace(stack, Claims, "_check_names", nothing)


def a_client_may_ask_without_end(stack: ExitStack) -> None:
    replace(stack, Requests, "outstanding_of", lambda *_: ())


def logs_are_trimmed_behind_the_fastest(stack: ExitStack) -> None:
    long_ago = Trimming._long_ago

    def of_the_fastest(self: Trimming, _: int, now: float) -> Place:
        self._keep_s = _KEPT_S
        return max((long_ago(self, each, now) for each in self._others), key=_total)

    replace(stack, Trimming, "_long_ago", of_the_fastest)


def _total(place: Place) -> int:
    return place.total


def restarts_forget_sessions_without_names(stack: ExitStack) -> None:
    in_order = giving._in_order

    def of_names(life: Any) -> Iterator[Any]:
        return (each for each in in_order(life) if each.terms is not None and each.terms.is_named)

    replace(stack, giving, "_in_order", of_names)


def sessions_of_absent_shards_are_unknown(stack: ExitStack) -> None:
    """A door says 402 where 503 is due."""

    class Confused:
        SERVER_BUSY = ErrorReply.SESSION_UNKNOWN

    replace(stack, parking, "ErrorReply", Confused)


def split_frames_lose_their_tails(stack: ExitStack) -> None:
    def without_tail(entries: Iterable[frames.LogEntry]) -> Iterator[list[frames.LogEntry]]:
        first, *more = [*frames.split(entries, _SMALL)] or [[]]
        yield from filter(None, (first, *more[:-1]))

    for module in (log, passing):
        replace(stack, module, "split", without_tail)


BUILDS_OF_PROMISES = by_name(
    places_are_not_compared,
    logs_are_trimmed_behind_the_fastest,
    restarts_forget_sessions_without_names,
    sessions_of_absent_shards_are_unknown,
    split_frames_lose_their_tails,
)
