"""Joins what became of one publish at several shards."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.bayeux.limits.quotas import Quotas
from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.publish.results import Result, State, unreadable
from holdfast.bayeux.state.calls import Answer, said_by
from holdfast.bayeux.wire.destinations import FAILED, Destination
from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.storing import PersistOutcome


class JoinedResults:
    """What became of one publish at the shards of its destinations."""

    def __init__(self, publish: EventPublish, qos: Qos, count: int, quotas: Quotas) -> None:
        self._publish = publish
        self._qos = qos
        self._quotas = quotas
        # How many shards have not answered, and what the others said.
        self._left = count
        self._results: list[Result] = []
        # Whether one did not answer in time.
        self.is_unknown = False
        # Called when all have answered; who asks them sets it before.
        self.complete: Callable[[], None]

    @property
    def is_taken(self) -> bool:
        """Whether any destination takes the message."""
        return any(each.is_taken for each in self._results)

    @property
    def receivers(self) -> Sequence[str]:
        """The keys of the sessions that get it."""
        return [key for each in self._results for key in each.receivers]

    def answered(self, destinations: Sequence[Destination], answer: Answer | None) -> None:
        """Take the answer of one shard, or that there is none."""
        self._left -= 1
        if answer is None:
            self.is_unknown = True
        else:
            result = said_by(Result, answer)
            names = [each.name for each in destinations]
            if result is None or [each["name"] for each in result.outcomes] != names:
                result = unreadable(destinations)
            self.add(result)
        if not self._left:
            self.complete()

    def add(self, result: Result) -> None:
        """Take a result without waiting for it."""
        self._results.append(result)

    def outcome(self) -> PersistOutcome:
        """Return what the publish is told, and let its reply report about all destinations."""
        if self.is_unknown:
            return PersistOutcome.UNKNOWN
        results = self._results
        reports = {each["name"]: each for result in results for each in result.outcomes}
        names = [each.name for each in self._qos.destinations]
        self._qos.outcomes = outcomes = [reports[name] for name in names]
        failed = [each["name"] for each in outcomes if each["state"] == FAILED]
        if failed and not self.is_taken:
            return self._refuse(_with(failed[0], results), outcomes)
        self._note_first(results)
        taking = [each for each in results if each.is_taken]
        are_repeats = bool(taking) and all(each.state == State.REPEATED for each in taking)
        return PersistOutcome.REPEATED if are_repeats else PersistOutcome.KEPT

    def _refuse(self, first: Result, outcomes: Sequence[Mapping[str, Any]]) -> PersistOutcome:
        """Refuse the publish for the same reason as its first destination."""
        if first.state == State.OVER_QUOTA:
            too_much = self._quotas.too_much_waits(self._publish.sender, first.error, outcomes)
            self._publish.refused = too_much
        elif first.state == State.REFUSED:
            self._publish.refused = first._replace(outcomes=outcomes).refused
        return PersistOutcome.REFUSED

    def _note_first(self, results: Sequence[Result]) -> None:
        """Let the reply to a repeat name the first message."""
        key = publish_key_of(self._publish.message)
        firsts = [each.id for each in results if each.id]
        if key is not None and firsts:
            key.first = min(firsts)


def _with(name: str, results: Sequence[Result]) -> Result:
    """Return the result with a report about the destination of this name."""
    return next(each for each in results if any(name == its["name"] for its in each.outcomes))
