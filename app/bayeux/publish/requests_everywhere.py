"""Requests among several shards: an `TopicsElsewhere`. A server alone does not load this module."""

from functools import partial
from typing import TYPE_CHECKING

from holdfast.bayeux.publish.answering_others import AnsweringOthers
from holdfast.bayeux.publish.asked_for_one import AskedForOne
from holdfast.bayeux.publish.asking_others import AskingOthers
from holdfast.bayeux.publish.request_calls import ASKED, CALLED
from holdfast.bayeux.publish.shards_of import shard_of_session
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.calls import Answer, Asker, Asking
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.requests.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable


class RequestsEverywhere(AnsweringOthers):
    """Connects the requests of this shard with other shards, and their requests with this one."""

    def __init__(self, state: ServerState, homes: HomesPort) -> None:
        super().__init__(state, homes)
        self.asking = AskingOthers(state, homes, self._calls)
        AskedForOne(state, self)
        state.calls.handle(CALLED, self._look)
        state.calls.handle(ASKED, self._tell)

    def _tell(self, asked: Asking, asker: Asker, _: float) -> None:
        # The request may have come just before, and its message is not stored yet.
        self._state.store.after(partial(self.tell, asker, asked["address"]))

    def _look(self, asked: Asking, asker: Asker, _: float) -> None:
        asker.answer({"is_subscribed": asked["channel"] in self._state.routes})

    # Remote calls

    def find(self, channel: str, done: "Callable[[bool], None]", now: float) -> None:
        """Tell whether sessions of other shards have subscribed to exactly this channel."""
        calls = self._state.calls
        search = _Search(len(calls.others), done)
        for shard in calls.others:
            calls.call(shard, CALLED, {"channel": channel}, search.heard, now=now)

    # As requests see it

    def expect(self, request: Request[Session]) -> None:
        """Let the request wait until all other shards have said who may answer it."""
        request.unheard = self._homes.others
        if request.is_work:
            # An earlier process has sent it to the home of its channel.
            home = self._homes.home_of(request.channel)
            request.unheard = () if home is None else (home,)

    def ask(self, request: Request[Session]) -> None:
        """Ask the shards that have not said so, behind the request's message."""
        self.asking.ask(request)

    def is_far(self, key: str) -> bool:
        """Return whether another shard has the session."""
        return shard_of_session(key, self._homes) is not None

    def tick(self) -> None:
        """Repeat calls that had no answer."""
        self._calls.tick()


class _Search:
    """What other shards answer who are asked for subscribers of a channel."""

    def __init__(self, missing: int, done: "Callable[[bool], None]") -> None:
        self._missing = missing
        self._done = done
        self._is_over = False

    def heard(self, answer: Answer | None) -> None:
        """Take one of the answers: the first good one decides."""
        self._missing -= 1
        is_subscribed = answer is not None and answer.get("is_subscribed") is True
        if not self._is_over and (is_subscribed or not self._missing):
            self._is_over = True
            self._done(is_subscribed)
