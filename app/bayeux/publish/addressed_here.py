"""Gives messages to their destinations in this shard, one of several."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from holdfast.bayeux.publish.answering_others import AnsweringOthers
from holdfast.bayeux.publish.point_to_point import Addressing, PointToPoint, SenderOverQuota
from holdfast.bayeux.publish.results import Result, State, not_stored, refusal
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.calls import Asker, Asking
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.destinations import Destination
from holdfast.bayeux.wire.errors import Refused
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestStep
from holdfast.delivery.routing.publishes import Publish
from holdfast.delivery.topics.counting import count_for

# What the operation is called.
ADDRESSED: Final = "addressed"


class Addressed(NamedTuple):
    """A message to some destinations that one shard has."""

    message: Message
    destinations: Sequence[Destination]
    # Who pays if it has to wait: the accounts of the sender.
    accounts: Sequence[str]
    persistent: bool | None
    # Whether the topic of the channel counts the queues that get it.
    is_counted: bool = False

    def to_asking(self) -> Asking:
        """Return what another shard is asked."""
        return {
            "enclosed": [self.message],
            "to": rows_of(self.destinations),
            "accounts": self.accounts,
            "persistent": self.persistent,
            "counted": self.is_counted,
        }


def rows_of(destinations: Sequence[Destination]) -> Sequence[Sequence[Any]]:
    """Return what names the destinations to another shard."""
    return [[to.subject, to.number, to.forces_queuing, to.is_optional] for to in destinations]


def destinations_in(rows: Sequence[Sequence[Any]]) -> tuple[Destination, ...]:
    """Undo `rows_of`."""
    return tuple([Destination(*each) for each in rows])


class AddressedHere:
    """Carries out addressed publishes, of clients here or of other shards."""

    def __init__(self, state: ServerState, ptp: PointToPoint, requests: AnsweringOthers) -> None:
        self._state, self._ptp = state, ptp
        self._requests = requests
        state.calls.handle(ADDRESSED, self._carry_out)

    def _carry_out(self, asked: Asking, asker: Asker, now: float) -> None:
        [message] = asked["enclosed"]
        to = destinations_in(asked["to"])
        about = Addressed(message, to, asked["accounts"], asked["persistent"], asked["counted"])
        self.publish(about, asker, now=now)

    def publish(
        self, addressed: Addressed, asker: Asker, *, now: float, sender: Session | None = None
    ) -> None:
        """Give the message to its destinations, then answer.

        Args:
            sender: The session that publishes, if it is here.
        """
        addressing = self.address(addressed, sender, now)
        if isinstance(addressing, Result):
            asker.answer(addressing.to_answer())
            return
        kept, message = kept_with(addressing), addressed.message
        asker.answer_with(message, kept.to_answer())
        if asker.shard is not None:
            self._requests.arrived(message, is_kept=addressed.persistent is not False)
            topic = self._state.topics.far(message.channel)
            if addressed.is_counted and topic is not None:
                count_for(topic, message)
        known = partial(self._known, addressed, kept, asker)
        publish = only_to(self._state, message, addressing.receivers, addressed.persistent)
        if asker.shard is not None:
            # It is not called before the outcome is certain.
            publish.step = RequestStep(NO_FIELDS, known)
        else:
            publish.then(known)
        publish.then(addressing.release)
        outcome = self._state.hub.publish(publish)
        if outcome is not None:
            addressing.release(outcome)
            known(outcome)

    def address(
        self, addressed: Addressed, sender: Session | None, now: float
    ) -> Addressing | Result:
        """Address the message, and reserve room for it. Returns a result if that is impossible."""
        try:
            addressing = self._ptp.address(
                addressed.message,
                addressed.destinations,
                sender=sender,
                now=now,
                accounts=addressed.accounts,
            )
        except SenderOverQuota as over:
            return Result(State.OVER_QUOTA, error=over.kind, outcomes=over.outcomes)
        except Refused as refused:
            return refusal(refused)
        if addressed.persistent is not False and not addressing.make_durable(self._state.store):
            addressing.release(PersistOutcome.REFUSED)
            return not_stored(addressed.destinations)
        return addressing

    def _known(
        self, addressed: Addressed, kept: Result, asker: Asker, outcome: PersistOutcome
    ) -> None:
        message = addressed.message
        if outcome is PersistOutcome.UNKNOWN:
            asker.doubt()
        elif outcome is PersistOutcome.REFUSED:
            asker.answer(not_stored(addressed.destinations).to_answer())
        elif outcome is PersistOutcome.REPEATED:
            asker.answer(kept.after(outcome, message).to_answer())
        else:
            self._requests.has_told(message)
            asker.answer_kept(message, kept.to_answer())


def only_to(
    state: ServerState, message: Message, receivers: Sequence[Session], persistent: bool | None
) -> Publish[Session]:
    """Return a publish that goes to these receivers, and to no subscriber."""
    channel = state.channels.named(message.channel)
    if message.linger_s is None:
        message.linger_s = state.rules.of(channel).lazy_timeout_s
    publish: Publish[Session] = Publish(channel)
    publish.message, publish.persistent = message, persistent
    publish.addressed, publish.is_subscribable = receivers, False
    return publish


def kept_with(addressing: Addressing) -> Result:
    """Return the result if the message is stored, or need not be."""
    receivers = [each.key for each in addressing.receivers]
    is_taken = bool(addressing.keys)
    return Result(State.KEPT, outcomes=addressing.outcomes, is_taken=is_taken, receivers=receivers)
