"""Requests of this shard's sessions, which sessions of other shards may answer."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

from holdfast.bayeux.publish.repeated_calls import RepeatedCalls
from holdfast.bayeux.publish.request_calls import (
    ASKED,
    ASKED_ONE,
    NOBODY_ANSWERS,
    SAID,
    Responders,
)
from holdfast.bayeux.publish.shards_of import shard_of_session
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.calls import Answer, Asker, Asking, said_by
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.codec.enclosing import disclosed
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.requests.request import Request
from holdfast.delivery.shared_queues.work_queues import key_of_queue


class AskingOthers:
    """Hears who may answer such a request."""

    def __init__(
        self,
        state: ServerState,
        homes: HomesPort,
        calls: RepeatedCalls,
    ) -> None:
        self._state = state
        self._requests = state.requests
        self._homes = homes
        self._calls = calls
        self._turns = count()
        state.calls.handle(SAID, self._say)

    # Asking

    def ask(self, request: Request[Session]) -> None:
        """Ask all shards that have not said who may answer."""
        for shard in request.unheard:
            self._ask(request, shard)

    def _ask(self, request: Request[Session], shard: int) -> None:
        heard = partial(self._heard, request, shard)
        self._calls.ask(request, shard, ASKED, {"address": request.address}, answered=heard)

    def ask_one(self, request: Request[Session], asking: Asking) -> None:
        """Ask one session of another shard, when those before it on the channel are on their way.

        The shards are tried one after the other.
        """
        self._begin_one(_ForOne(request, asking))

    def _begin_one(self, asked: "_ForOne") -> None:
        request = asked.request
        if self._state.hub.is_coming(request.channel):
            self._state.when_kept(partial(self._begin_one_later, asked))
            return
        request.carried = b""
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
        self._state.calls.ask(shard, ASKED_ONE, asked.asking, heard)

    def _heard_of_one(self, asked: "_ForOne", shard: int, answer: Answer | None) -> None:
        request = asked.request
        if self._is_over(request):
            return
        if answer is None:
            # Whether anybody was asked is in the answer to the next question.
            again = partial(self._heard_of_one, asked, shard)
            self._calls.ask(request, shard, ASKED, {"address": request.address}, answered=again)
            return
        found = said_by(Responders, answer) or NOBODY_ANSWERS
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
        for request in self._requests.all():
            if request.shard is None:
                self._ask(request, shard)

    def go_on(self) -> None:
        """Ask about the requests of an earlier process."""
        for request in self._requests.all():
            if request.shard is None:
                self.ask(request)

    # What other shards say

    def _heard(self, request: Request[Session], shard: int, answer: Answer) -> None:
        _hears(request, shard)
        found = said_by(Responders, answer) or NOBODY_ANSWERS
        has_some = request.responders or request.spoken or found.keys or found.lost
        if request.carried and not has_some and not self._is_over(request):
            if not request.unheard:
                self._begin_one(_carried_by(request))
            return
        self._take(request, shard, found)

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

    def _say(self, said: Asking, asker: Asker, _: float) -> None:
        """Take what has changed at the shard of its receivers."""
        request = self._requests.at(said["address"])
        if request is not None and not self._is_over(request):
            self._requests.grant(request, [*said["keys"], *said["lost"]])
            self._lose(request, said["lost"])
        asker.answer({})


class _ForOne(NamedTuple):
    """A request for one session, and what the shards are asked."""

    request: Request[Session]
    asking: Asking


def _carried_by(request: Request[Session]) -> _ForOne:
    """Return the request of an earlier process that no shard has heard of."""
    asking, request.carried = disclosed(request.carried), b""
    [message] = asking["enclosed"]
    request.enter_again(message)
    return _ForOne(request, asking)


def _hears(request: Request[Session], shard: int) -> None:
    request.unheard = tuple(each for each in request.unheard if each != shard)
