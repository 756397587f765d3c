"""Requests of other shards for one reply, to which no session of theirs can reply."""

from collections.abc import Sequence
from functools import partial

from holdfast.bayeux.publish.addressed_letter import addressed_in
from holdfast.bayeux.publish.answering_others import AnsweringOthers
from holdfast.bayeux.publish.request_letters import NOBODY_ANSWERS, Responders
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.shard_letter import Effect, ShardLetter
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestStep
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.requests.of_others import asked_elsewhere
from holdfast.delivery.routing.publishes import Publish
from holdfast.delivery.routing.selections import Candidate


class AskedForOne:
    """Gives such a request to one session here."""

    def __init__(self, state: ServerState, homes: HomesPort, answering: AnsweringOthers) -> None:
        self._state = state
        self._homes = homes
        self._answering = answering

    def carry_out(self, letter: ShardLetter, now: float) -> None:
        """Give the message of a letter to one receiver, if there is any."""
        addressed = addressed_in(letter.data)
        state, message = self._state, addressed.message
        asked, channel = asked_elsewhere(message), state.channels.named(message.channel)
        chosen = () if asked is None or self._is_over(message) else self._choose(message)
        if asked is None or not chosen:
            self._homes.answer(letter, NOBODY_ANSWERS.to_json())
            return
        is_kept = addressed.persistent is not False and any(each.is_durable for each in chosen)
        self._answering.enter(message, asked, is_kept=is_kept)
        Effect(letter, Responders([each.key for each in chosen], {}).to_json()).mark(message)
        if message.linger_s is None:
            message.linger_s = state.rules.of(channel).lazy_timeout_s
        publish: Publish[Session] = Publish(channel)
        publish.message, publish.persistent = message, addressed.persistent
        publish.addressed, publish.is_subscribable = chosen, False
        known = partial(self._known, letter, message, asked.address)
        publish.step = RequestStep(NO_FIELDS, known)
        outcome = state.hub.publish(publish)
        if outcome is not None:
            known(outcome)

    def _is_over(self, message: Message) -> bool:
        return 0 < message.expires_ms <= self._state.node.now_ms()

    def _choose(self, message: Message) -> Sequence[Session]:
        state = self._state
        channel = state.channels.named(message.channel)
        receivers: Sequence[Session] = state.routes.receivers(channel)
        if receivers and state.routes.selecting:
            receivers = state.routes.selecting_receivers(channel, Candidate.of(message))
        return state.work.choose(receivers, message)

    def _known(
        self, letter: ShardLetter, message: Message, address: str, outcome: PersistOutcome
    ) -> None:
        if outcome is PersistOutcome.KEPT and message.is_durable:
            self._homes.has_answered(message)
            self._answering.has_told(address)
        else:
            self._answering.tell(letter, address)
