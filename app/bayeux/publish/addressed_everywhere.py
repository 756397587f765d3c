"""Sends messages to destinations at several shards: several calls, one reply."""

from collections.abc import Mapping, Sequence
from functools import partial

from holdfast.bayeux.publish.addressed_here import (
    ADDRESSED,
    Addressed,
    AddressedHere,
    kept_with,
)
from holdfast.bayeux.publish.channel_order import ChannelOrder, Turn
from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.publish.joined_results import JoinedResults
from holdfast.bayeux.publish.point_to_point import Addressing
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.publish.requests import take_outcome
from holdfast.bayeux.publish.results import State
from holdfast.bayeux.publish.shards_of import shard_of
from holdfast.bayeux.state.calls import Answer, Asker
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.destinations import Destination
from holdfast.delivery.messages.crossing import Spared, spared_by
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.topics.counting import topic_of

# By the shard that has them, or None for this one, destinations in the order of the publish.
Groups = Mapping[int | None, Sequence[Destination]]


class AddressedEverywhere:
    """Sends addressed publishes of this shard's clients to the shards of their destinations."""

    def __init__(self, state: ServerState, here: AddressedHere, order: ChannelOrder) -> None:
        self.state = state
        self.here = here
        self.order = order

    def publish(
        self, publish: EventPublish, qos: Qos, groups: Groups, homes: HomesPort
    ) -> PersistOutcome | None:
        """Publish the event to destinations of which some are elsewhere.

        Returns the outcome, or None if the publish is told later.
        """
        if not all(shard is None or homes.may_send(shard) for shard in groups):
            return PersistOutcome.REFUSED
        sending = _Sending(self, publish, qos, groups)
        if qos.is_subscribable:
            self.state.hub.publish_order.expect(publish)
        self.order.take(Turn(publish.channel.name, sending.begin, sending.refuse))
        return None


class _Sending:
    """One such publish. Subscribers get it if any destination does, when all shards have said."""

    def __init__(
        self,
        parts: AddressedEverywhere,
        publish: EventPublish,
        qos: Qos,
        groups: Groups,
    ) -> None:
        self._parts, self._state = parts, parts.state
        self._publish, self._qos = publish, qos
        self._elsewhere = {shard: each for shard, each in groups.items() if shard is not None}
        self._own = groups.get(None, ())
        count = len(self._elsewhere if qos.is_subscribable else groups)
        self._joined = JoinedResults(publish, qos, count, parts.state.quotas)
        # Whether the journal of this shard has the message.
        self._is_published_here = False

    def begin(self, turn: Turn) -> bool:
        """Ask the shards, once the store has what was published before. Returns if it is over."""
        if self._state.hub.is_coming(turn.channel):
            self._state.when_kept(partial(self._begin_later, turn))
            return False
        return self._ask(turn)

    def _begin_later(self, turn: Turn, _: float) -> None:
        if self._ask(turn):
            self._parts.order.over(turn)

    def _ask(self, turn: Turn) -> bool:
        # With subscribers, the message is stored here, too, and the request with it.
        request = None if self._qos.is_subscribable else self._qos.request
        return self._parts.order.ask(request, self._send, turn)

    def _send(self, turn: Turn) -> bool:
        is_subscribable = self._qos.is_subscribable
        self._joined.complete = partial(self._finish, turn) if is_subscribable else self._tell
        for shard, destinations in self._elsewhere.items():
            asked = self._addressed(destinations).to_asking()
            answered = partial(self._joined.answered, destinations)
            self._state.calls.send(shard, ADDRESSED, asked, answered)
        if self._own and not is_subscribable:
            publish, addressed = self._publish, self._addressed(self._own)
            asker = Asker(self._answered_here)
            self._parts.here.publish(addressed, asker, now=publish.now, sender=publish.sender)
        return not is_subscribable

    def _answered_here(self, answer: Answer | None) -> None:
        self._is_published_here = answer is not None and answer["state"] == State.KEPT
        self._joined.answered(self._own, answer)

    def _tell(self) -> None:
        """Tell a publish without subscribers what became of it."""
        outcome = self._joined.outcome()
        is_accepted = outcome in (PersistOutcome.KEPT, PersistOutcome.UNKNOWN)
        if is_accepted and not self._is_published_here:
            # The journals of other shards only have its copies.
            self._state.journal.published(self._publish.message, 0)
            for record in self._publish.message.records or ():
                record.published(self._publish.message)
        request = self._qos.request
        if request is not None:
            take_outcome(self._state.requests, request, self._joined.receivers, outcome)
        self._publish.over(outcome)

    def _addressed(self, destinations: Sequence[Destination]) -> Addressed:
        publish = self._publish
        return Addressed(
            publish.message,
            destinations,
            publish.accounts,
            publish.persistent,
            topic_of(publish.message) is not None,
        )

    def refuse(self) -> None:
        """Tell the publish that it was not carried out."""
        self._expect_no_more()
        self._publish.over(PersistOutcome.REFUSED)

    def _expect_no_more(self) -> None:
        if self._qos.is_subscribable:
            self._state.hub.publish_order.expect_no_more(self._publish)

    def _finish(self, turn: Turn) -> None:
        try:
            self._publish_here()
        except Exception:
            # Those behind it must not wait forever, nor must the log of the other shard.
            self._state.log.exception("a publish to %s failed", turn.channel)
        self._expect_no_more()
        self._parts.order.over(turn, is_lost=self._joined.is_unknown)

    def _publish_here(self) -> None:
        """Publish to subscribers and to the destinations here: all other shards have answered."""
        publish, joined = self._publish, self._joined
        is_taken_elsewhere, spared = joined.is_taken, joined.receivers
        if self._own and not joined.is_unknown:
            self._address_here()
        outcome: PersistOutcome | None = joined.outcome()
        if outcome in (PersistOutcome.KEPT, PersistOutcome.REPEATED):
            publish.prepare()
            if spared:
                Spared([*spared_by(publish.message), *spared]).mark(publish.message)
            if is_taken_elsewhere:
                publish.doubt_refusals()
            outcome = self._state.hub.publish(publish)
        elif outcome is PersistOutcome.UNKNOWN and self._qos.request is not None:
            self._state.requests.crossed(self._qos.request)
        if outcome is not None:
            publish.over(outcome)

    def _address_here(self) -> None:
        publish, addressed = self._publish, self._addressed(self._own)
        addressing = self._parts.here.address(addressed, publish.sender, publish.now)
        if isinstance(addressing, Addressing):
            publish.addressed = addressing.receivers
            publish.then(addressing.release)
            self._joined.add(kept_with(addressing))
        else:
            self._joined.add(addressing)


def groups_of(destinations: Sequence[Destination], homes: HomesPort) -> Groups:
    """Return which shards have the destinations."""
    groups: dict[int | None, list[Destination]] = {}
    for each in destinations:
        shard = shard_of(each.subject, each.number, homes)
        groups.setdefault(shard, []).append(each)
    return groups
