"""Requests of this shard's sessions, which sessions of other shards may answer."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

from holdfast.bayeux.publish.addressed_letter import Addressed, packed
from holdfast.bayeux.publish.repeated_letters import RepeatedLetters
from holdfast.bayeux.publish.request_letters import (
    ASKED,
    ASKED_ONE,
    NOBODY_ANSWERS,
    Responders,
    Verdict,
    reply_in,
    responders_in,
    said_in,
)
from holdfast.bayeux.publish.requests import RequestHandler
from holdfast.bayeux.publish.shards_of import shard_of_session
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.shard_letter import Effect, ShardLetter
from holdfast.delivery.messages.storing import PersistOutcome, RequestStep
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.requests.request import ReplyFault, Request
from holdfast.delivery.shared_queues.work_queues import key_of_queue

_DONE = b"{}"


class AskingOthers:
    """Hears who may answer such a request and what they say, and lets one reply count."""

    def __init__(self, state: ServerState, homes: HomesPort, handler: RequestHandler) -> None:
        self._state = state
        self._requests = state.requests
        self._homes = homes
        self._handler = handler
        self._letters = RepeatedLetters(homes)
        self._turns = count()

    # Asking

    def ask(self, request: Request[Session]) -> None:
        """Ask all shards that have not said who may answer."""
        for shard in request.unheard:
            self._ask(request, shard)

    def _ask(self, request: Request[Session], shard: int) -> None:
        letter = to_json({"address": request.address})
        heard = partial(self._heard, request, shard)
        self._letters.send(request, shard, ASKED, letter, answered=heard)

    def ask_one(self, request: Request[Session], message: Message, persistent: bool | None) -> None:
        """Ask one session of another shard, when those before it on the channel are on their way.

        The shards are tried one after the other.
        """
        self._begin_one(_ForOne(request, message, persistent))

    def _begin_one(self, asked: "_ForOne") -> None:
        request = asked.request
        if self._state.hub.is_coming(asked.message.channel):
            self._state.when_kept(partial(self._begin_one_later, asked))
            return
        turn, others = next(self._turns), self._homes.others
        start = turn % len(others)
        request.unheard = (*others[start:], *others[:start])
        self._ask_next(asked)

    def _begin_one_later(self, asked: "_ForOne", _: float) -> None:
        self._begin_one(asked)

    def _ask_next(self, asked: "_ForOne") -> None:
        request = asked.request
        if request.end is not None or not request.unheard:
            return
        shard, *_ = request.unheard
        heard = partial(self._heard_of_one, asked, shard)
        if not self._homes.may_send(shard):
            heard(None)
            return
        letter = packed(Addressed(asked.message, (), (), asked.persistent))
        self._homes.send(shard, ASKED_ONE, letter, heard)

    def _heard_of_one(self, asked: "_ForOne", shard: int, answer: bytes | None) -> None:
        request = asked.request
        if self._is_over(request):
            return
        if answer is None:
            # Whether anybody was asked is in the answer to the next letter.
            letter = to_json({"address": request.address})
            again = partial(self._heard_of_one, asked, shard)
            self._letters.send(request, shard, ASKED, letter, answered=again)
            return
        found = _read(answer)
        if found.keys or found.lost:
            request.unheard = ()
            self._take(request, shard, found)
            return
        _hears(request, shard)
        if request.unheard:
            self._ask_next(asked)
        else:
            self._requests.grant(request, ())

    def ask_again(self, shard: int) -> None:
        """Ask a shard about all requests: another process serves it now."""
        for request in self._requests.by_message().values():
            self._ask(request, shard)

    def go_on(self) -> None:
        """Ask about the requests of an earlier process."""
        for request in self._requests.by_message().values():
            self.ask(request)

    def tick(self) -> None:
        """Repeat what had no answer."""
        self._letters.tick()

    # What other shards say

    def _heard(self, request: Request[Session], shard: int, answer: bytes) -> None:
        _hears(request, shard)
        self._take(request, shard, _read(answer))

    def _take(self, request: Request[Session], shard: int, found: Responders) -> None:
        """Take over who may answer, and who will not."""
        if self._is_over(request):
            return
        self._requests.grant(request, [*found.keys, *found.lost])
        self._lose(request, found.lost)
        # Sessions that an earlier process of the shard had.
        gone = {
            key
            for key in request.responders
            if key not in found.keys and shard_of_session(key, self._homes) == shard
        }
        if request.is_work:
            # Other sessions do what these had, as long as the queue has it.
            gone &= {key_of_queue(request.channel)}
        self._lose(request, dict.fromkeys(sorted(gone)))

    def _is_over(self, request: Request[Session]) -> bool:
        """Return whether the request has ended, or its deadline has passed and will soon end it.

        A shard that is there again after the deadline would say that no one answers.
        """
        return request.end is not None or self._state.node.now_ms() >= request.deadline_ms

    def _lose(self, request: Request[Session], lost: Mapping[str, Sequence[str] | None]) -> None:
        if lost and request.is_work:
            # Its home need not say any more that it has it.
            request.unheard = ()
        for key, refusal in lost.items():
            code_and_text = None if refusal is None else (refusal[0], refusal[1])
            self._requests.lose(request, key, code_and_text)

    def say(self, letter: ShardLetter) -> None:
        """Do a letter that says what has changed at the shard of its receivers."""
        said = said_in(letter.data)
        request = self._requests.at(said.address)
        if request is not None and not self._is_over(request):
            keys, lost = said.responders
            self._requests.grant(request, [*keys, *lost])
            self._lose(request, lost)
        self._homes.answer(letter, _DONE)

    # Replies

    def reply(self, letter: ShardLetter) -> None:
        """Do a letter with a reply: deliver it, if it counts."""
        reply = reply_in(letter.data)
        request, fault = self._requests.accept_from(reply.address, reply.key)
        event = {**reply.event}
        if request is not None and fault is ReplyFault.LATE:
            self._handler.bury(request, event, None, reply.sender)
        if fault is not None or request is None:
            verdict = Verdict((fault or ReplyFault.DENIED).value)
            self._homes.answer(letter, verdict.to_json())
            return
        wire = self._handler.wire(request, event, None)
        message = self._state.request_events.message(request, wire, reply.sender)
        Effect(letter, Verdict().to_json()).mark(message)
        fields = self._requests.fields_of_reply(request, reply.key)
        known = partial(self._known, _Coming(letter, request, reply.key, message))
        step = RequestStep(fields, known)
        channel = self._state.channels.named(reply.address)
        try:
            outcome = self._state.request_events.deliver(
                request, channel, message=message, step=step
            )
        except BaseException:
            self._requests.unanswered(request, reply.key)
            raise
        if outcome is not None:
            known(outcome)

    def _known(self, coming: "_Coming", outcome: PersistOutcome) -> None:
        letter, request, key, message = coming
        if outcome is PersistOutcome.REFUSED:
            self._requests.unanswered(request, key)
            self._homes.answer(letter, Verdict(is_refused=True).to_json())
            return
        self._requests.answered(request, key)
        if message.is_durable:
            # The call that has stored it has answered the letter.
            self._homes.has_answered(message)
        else:
            self._homes.answer(letter, Verdict().to_json())


class _Coming(NamedTuple):
    """A reply that is being delivered: its letter, whose it is, and its message."""

    letter: ShardLetter
    request: Request[Session]
    key: str
    message: Message


class _ForOne(NamedTuple):
    """A request for one session, and its message."""

    request: Request[Session]
    message: Message
    persistent: bool | None


def _hears(request: Request[Session], shard: int) -> None:
    request.unheard = tuple(each for each in request.unheard if each != shard)


def _read(answer: bytes) -> Responders:
    """Return what the answer says. A letter that could not be done has no responders."""
    try:
        return responders_in(answer)
    except (ValueError, KeyError, TypeError):
        return NOBODY_ANSWERS
