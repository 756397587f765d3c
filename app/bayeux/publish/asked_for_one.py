"""Requests of other shards for one reply, to which no session of theirs can reply."""

from collections.abc import Sequence
from functools import partial

from holdfast.bayeux.publish.addressed_here import only_to
from holdfast.bayeux.publish.answering_others import AnsweringOthers
from holdfast.bayeux.publish.request_calls import ASKED_ONE, NOBODY_ANSWERS, Responders
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.calls import Answer, Asker, Asking
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestStep
from holdfast.delivery.requests.of_others import far_request_in
from holdfast.delivery.routing.selections import Candidate


class AskedForOne:
    """Gives such a request to one session here."""

    def __init__(self, state: ServerState, answering: AnsweringOthers) -> None:
        self._state = state
        self._answering = answering
        state.calls.handle(ASKED_ONE, self._carry_out)

    def _carry_out(self, asking: Asking, asker: Asker, now: float) -> None:
        """Give the message to one receiver, if there is any."""
        [message] = asking["enclosed"]
        persistent, asked = asking["persistent"], far_request_in(message)
        chosen = () if asked is None or self._is_over(message) else self._choose(message)
        if asked is None or not chosen:
            asker.answer(NOBODY_ANSWERS._asdict())
            return
        is_kept = persistent is not False and any(each.is_durable for each in chosen)
        self._answering.arrived(message, is_kept=is_kept)
        answer = Responders([each.key for each in chosen], {})._asdict()
        asker.answer_with(message, answer)
        known = partial(self._known, asker, message, address=asked.address, answer=answer)
        publish = only_to(self._state, message, chosen, persistent)
        publish.step = RequestStep(NO_FIELDS, known)
        outcome = self._state.hub.publish(publish)
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
        self,
        asker: Asker,
        message: Message,
        outcome: PersistOutcome,
        *,
        address: str,
        answer: Answer,
    ) -> None:
        if outcome is PersistOutcome.KEPT and message.is_durable:
            asker.answer_kept(message, answer)
            self._answering.has_told(message)
        else:
            self._answering.tell(asker, address)
