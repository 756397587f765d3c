"""Sends messages to destinations at several shards: several letters, one reply."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from holdfast.bayeux.limits.quotas import Quotas
from holdfast.bayeux.publish.addressed_here import AddressedHere
from holdfast.bayeux.publish.addressed_letter import (
    ADDRESSED,
    Addressed,
    Result,
    State,
    packed,
    result_of,
    unreadable,
)
from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.publish.point_to_point import accounts_of
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.state.session_registry import SHARDS
from holdfast.bayeux.wire.destinations import FAILED, Destination
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.reserved import not_supported
from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.queues.receivers import NOBODY

if TYPE_CHECKING:
    from holdfast.bayeux.session import Session

# By the shard that has them, or None for this one, destinations in the order of the publish.
Groups = Mapping[int | None, Sequence[Destination]]


class AddressedEverywhere:
    """Sends addressed publishes of this shard's clients to the shards of their destinations."""

    def __init__(self, state: ServerState, here: AddressedHere) -> None:
        self._state = state
        self._here = here

    def check(self, qos: Qos, homes: HomesPort) -> None:
        """Check that the publish can be carried out, now or later. Raises `Refused`."""
        groups = groups_of(qos.destinations, homes)
        if qos.is_subscribable and groups.keys() - {None}:
            # Its subscribers would have to wait until the other shards have answered.
            raise not_supported("ext.delivery.subscribable")

    def publish(
        self, publish: EventPublish, qos: Qos, groups: Groups, homes: HomesPort
    ) -> PersistOutcome | None:
        """Publish the event to destinations of which some are elsewhere.

        Returns the outcome, or None if the publish is told later.
        """
        if not all(shard is None or homes.may_send(shard) for shard in groups):
            return PersistOutcome.REFUSED
        accounts = accounts_of(publish.sender)
        asked = {
            shard: Addressed(publish.message, destinations, accounts, publish.persistent)
            for shard, destinations in groups.items()
        }
        joined = _Joined(publish, qos, len(groups), self._state.quotas)
        for shard, addressed in asked.items():
            if shard is not None:
                done = partial(joined.answered, addressed.destinations)
                homes.send(shard, ADDRESSED, packed(addressed), done)
        if None in asked:
            self._here.publish(asked[None], joined.known, now=publish.now, sender=publish.sender)
        return None


def groups_of(destinations: Sequence[Destination], homes: HomesPort) -> Groups:
    """Return which shards have the destinations."""
    groups: dict[int | None, list[Destination]] = {}
    for each in destinations:
        groups.setdefault(_home_of(each, homes), []).append(each)
    return groups


def _home_of(destination: Destination, homes: HomesPort) -> int | None:
    if destination.subject != NOBODY:
        return homes.home_of_subject(destination.subject)
    # Its number says which shard gave it.
    return homes.home_of_guest(-destination.number % SHARDS)


class _Joined:
    """What became of one publish at the shards of its destinations."""

    def __init__(self, publish: EventPublish, qos: Qos, count: int, quotas: Quotas) -> None:
        self._publish = publish
        self._qos = qos
        self._quotas = quotas
        # How many shards have not answered, and what the others said; None if that is unknown.
        self._left = count
        self._results: list[Result | None] = []

    def answered(self, destinations: Sequence[Destination], answer: bytes | None) -> None:
        """Take the answer of another shard, or that there is none."""
        if answer is None:
            self.known(None, False)
            return
        try:
            result = result_of(answer)
        except (ValueError, KeyError, TypeError):
            result = unreadable(destinations)
        self.known(result, False)

    def known(self, result: Result | None, _: bool) -> None:
        """Take the result of one shard."""
        self._left -= 1
        self._results.append(result)
        if not self._left:
            outcome = self._outcome([each for each in self._results if each is not None])
            if self._publish.done is not None:
                self._publish.done(outcome)

    def _outcome(self, results: Sequence[Result]) -> PersistOutcome:
        if len(results) < len(self._results):
            return PersistOutcome.UNKNOWN
        reports = {each["name"]: each for result in results for each in result.outcomes}
        names = [each.name for each in self._qos.destinations]
        self._qos.outcomes = outcomes = [reports[name] for name in names]
        failed = [each["name"] for each in outcomes if each["state"] == FAILED]
        taking = [each for each in results if each.is_taken]
        if failed and not taking:
            return self._refuse(_with(failed[0], results), outcomes)
        self._note_first(results)
        are_repeats = bool(taking) and all(each.state is State.REPEATED for each in taking)
        return PersistOutcome.REPEATED if are_repeats else PersistOutcome.KEPT

    def _refuse(self, first: Result, outcomes: Sequence[Mapping[str, Any]]) -> PersistOutcome:
        """Refuse the publish for the same reason as its first destination."""
        if first.state is State.OVER_QUOTA:
            # Only sessions have quotas.
            sender = cast("Session", self._publish.sender)
            self._qos.refused = self._quotas.too_much_waits(sender, first.error, outcomes)
        elif first.state is State.REFUSED:
            ext = {"delivery": {"destinations": outcomes}}
            self._qos.refused = Refused(ErrorReply[first.error], *first.args, ext=ext)
        return PersistOutcome.REFUSED

    def _note_first(self, results: Sequence[Result]) -> None:
        """Let the reply to a repeat name the first message."""
        key = publish_key_of(self._publish.message)
        firsts = [each.first for each in results if each.first]
        if key is not None and firsts:
            key.first = min(firsts)


def _with(name: str, results: Sequence[Result]) -> Result:
    """Return the result with a report about the destination of this name."""
    return next(each for each in results if any(name == its["name"] for its in each.outcomes))
