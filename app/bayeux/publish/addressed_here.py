"""Gives messages to their destinations in this shard, one of several."""

from collections.abc import Callable, Sequence
from functools import partial

from holdfast.bayeux.publish.addressed_letter import Addressed, Result, State, not_stored
from holdfast.bayeux.publish.point_to_point import Addressing, PointToPoint, SenderOverQuota
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.errors import Refused
from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.shard_letter import Effect, ShardLetter
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestStep
from holdfast.delivery.routing.publishes import Publish
from holdfast.delivery.topics.counting import count_for

# Gets the result, or None if the store has not answered in time; and whether the store has given it
# to the shard that asked.
Done = Callable[[Result | None, bool], None]


class AddressedHere:
    """Carries out addressed publishes, of clients here or of other shards."""

    def __init__(self, state: ServerState, ptp: PointToPoint) -> None:
        self._state = state
        self._ptp = ptp

    def publish(
        self,
        addressed: Addressed,
        done: Done,
        *,
        now: float,
        sender: Session | None = None,
        letter: ShardLetter | None = None,
    ) -> None:
        """Give the message to its destinations, then call `done`.

        Args:
            sender: The session that publishes, if it is here.
            letter: The letter that asks for it, if another shard does. Where the message is
                stored, the same call answers it.
        """
        addressing = self.address(addressed, sender, now)
        if isinstance(addressing, Result):
            done(addressing, False)
            return
        kept = kept_with(addressing)
        if letter is not None:
            Effect(letter, kept.to_json()).mark(addressed.message)
            if self._state.requests.elsewhere is not None:
                is_kept = addressed.persistent is not False
                self._state.requests.elsewhere.arrived(addressed.message, is_kept=is_kept)
            topic = self._state.topics.far(addressed.message.channel)
            if addressed.is_counted and topic is not None:
                count_for(topic, addressed.message)
        known = partial(self._known, addressed, kept, done)
        self._publish(addressed, addressing, known, is_patient=letter is not None)

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
            return Result(State.OVER_QUOTA, over.outcomes, error=over.kind)
        except Refused as refused:
            return _refusal(refused)
        if addressed.persistent is not False and not addressing.make_durable(self._state.store):
            addressing.release(PersistOutcome.REFUSED)
            return not_stored(addressed.destinations)
        return addressing

    def _publish(
        self,
        addressed: Addressed,
        addressing: Addressing,
        known: Callable[[PersistOutcome], None],
        *,
        is_patient: bool,
    ) -> None:
        state, message = self._state, addressed.message
        channel = state.channels.named(message.channel)
        if message.linger_s is None:
            message.linger_s = state.rules.of(channel).lazy_timeout_s
        publish: Publish[Session] = Publish(channel)
        publish.message, publish.persistent = message, addressed.persistent
        publish.addressed, publish.is_subscribable = addressing.receivers, False
        if is_patient:
            # It is not called before the outcome is certain.
            publish.step = RequestStep(NO_FIELDS, known)
        else:
            publish.then(known)
        publish.then(addressing.release)
        outcome = state.hub.publish(publish)
        if outcome is not None:
            addressing.release(outcome)
            known(outcome)

    def _known(
        self, addressed: Addressed, kept: Result, done: Done, outcome: PersistOutcome
    ) -> None:
        key = publish_key_of(addressed.message)
        match outcome:
            case PersistOutcome.KEPT:
                if self._state.requests.elsewhere is not None:
                    self._state.requests.elsewhere.has_told(addressed.message)
                done(kept, addressed.message.is_durable or key is not None)
            case PersistOutcome.REPEATED:
                first = 0 if key is None else key.first
                done(kept._replace(state=State.REPEATED, first=first), False)
            case PersistOutcome.REFUSED:
                done(not_stored(addressed.destinations), False)
            case PersistOutcome.UNKNOWN:
                done(None, False)


def kept_with(addressing: Addressing) -> Result:
    """Return the result if the message is stored, or need not be."""
    receivers = [each.key for each in addressing.receivers]
    is_taken = bool(addressing.keys)
    return Result(State.KEPT, addressing.outcomes, is_taken=is_taken, receivers=receivers)


def _refusal(refused: Refused) -> Result:
    outcomes: Sequence[dict[str, str]] = (refused.ext or {})["delivery"]["destinations"]
    return Result(State.REFUSED, outcomes, error=refused.error.name, args=refused.arguments)
