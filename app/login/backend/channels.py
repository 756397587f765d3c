"""Asks the backend about channels: what a session sends meanwhile waits in its order."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from math import inf
from typing import Final

from holdfast.bayeux.session import Exchange, Held, Session
from holdfast.bayeux.state.backend_figures import Action
from holdfast.bayeux.state.server_state import RunLater
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import Refused, Undecided
from holdfast.bayeux.wire.identity import Grants
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import Channels, Kind
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.login.backend.asking import LIMIT_S
from holdfast.login.backend.decisions import Asked, AskingGrants, Said
from holdfast.login.backend.logins import BackendLogins
from holdfast.login.backend.questions import permission_in, question
from holdfast.login.failures import NoAnswer, SaysNo
from holdfast.login.request_grants import RequestGrants

# How many questions of one session are open at the same time.
_AT_ONCE: Final = 8
# At how many of the messages behind a question is looked, to ask about them as well.
_AHEAD: Final = 64
# How long a refusal holds, and that there was no answer, in seconds.
_REFUSED_S: Final = 10.0
_FAILED_S: Final = 1.0
_RETRY_S: Final = 1.0
_ACTIONS: Final = {
    Operation.SUBSCRIBE: Action.SUBSCRIBE,
    Operation.PUBLISH: Action.PUBLISH,
}
_SUBSCRIBE: Final = "/meta/subscribe"

# Called with each new decision about a session.
Learned = Callable[[Session, Asked, Said], None]


class ChannelQuestions:
    """Asks what sessions, and readers without one, may do.

    Args:
        run_later: Awaits an answer.
    """

    def __init__(
        self,
        backend: BackendLogins,
        channels: Channels,
        run_later: RunLater,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend, self._channels = backend, channels
        self._run_later, self._clock = run_later, clock
        # Asks again about a subscription, and hears of decisions that end.
        self.on_doubt: Callable[[Session, str], None] = ignore
        self.on_learned: Learned = ignore

    # What sessions send

    def holds(self, exchange: Exchange, undecided: Undecided, message: Json) -> bool:
        """Ask about a message, unless its request has waited too long. Returns whether it does."""
        session, now = exchange.session, exchange.now
        if session is None:
            return False
        if not exchange.held_since:
            exchange.held_since = now
        left_s = exchange.held_since + LIMIT_S - now
        grants = session.identity.grants
        if left_s <= 0.0 or not isinstance(grants, AskingGrants):
            return False
        look_ahead = partial(self._look_ahead, session, grants)
        held = Held(exchange, look_ahead)
        exchange.progress = held
        asked = undecided.operation, undecided.channel
        self._ask(session, grants, asked, held.end, limit_s=left_s)
        look_ahead([message])
        return True

    def ask_again(self, session: Session, pattern: str) -> None:
        """Have a subscription asked about again. It stays until then."""
        self.on_doubt(session, pattern)

    def _look_ahead(self, session: Session, grants: AskingGrants, messages: Sequence[Json]) -> None:
        """Ask about messages that are not handled yet, so that all wait for about one answer."""
        for message in islice(messages, _AHEAD):
            for operation, name in self._actions_of(message):
                if len(grants.open) >= _AT_ONCE:
                    return
                asked = operation, name
                if asked in grants.open or grants.allows(operation, name):
                    continue
                if isinstance(grants.why_not(operation, name), Undecided):
                    self._ask(session, grants, asked, ignore)

    def _actions_of(self, message: Json) -> Iterator[Asked]:
        """Yield what a message asks for, as far as the backend may decide about it."""
        if message.get("channel") == _SUBSCRIBE:
            named = message.get("subscription")
            operation, names = Operation.SUBSCRIBE, named if isinstance(named, list) else [named]
        else:
            operation, names = Operation.PUBLISH, [message.get("channel")]
        for name in islice(names, _AHEAD):
            channel = self._channels.get(name) if isinstance(name, str) else None
            if channel is not None and channel.kind is not Kind.META and not channel.is_reserved:
                yield operation, channel.name

    def _ask(
        self,
        session: Session,
        grants: AskingGrants,
        asked: Asked,
        done: Callable[[], None],
        *,
        limit_s: float = LIMIT_S,
    ) -> None:
        """Ask, or wait for the answer to the same question."""
        waiting = grants.open.get(asked)
        if waiting is not None:
            waiting.append(done)
            return
        grants.open[asked] = [done]
        answer = self.answer(session.caller, session.subject, asked, limit_s)
        self._run_later(answer, partial(self._answered, session, grants, asked))

    def _answered(
        self, session: Session, grants: AskingGrants, asked: Asked, outcome: object, _: float
    ) -> None:
        said = outcome if isinstance(outcome, Said) else self._failed(_RETRY_S)
        self.learn(session, grants, asked, said)
        for done in grants.open.pop(asked):
            done()

    def learn(self, session: Session, grants: AskingGrants, asked: Asked, said: Said) -> None:
        """Keep a decision."""
        grants.learn(asked, said, session.subscriptions)
        if said.is_allowed and said.ends_at < inf and asked[0] is Operation.SUBSCRIBE:
            self.on_learned(session, asked, said)

    # Readers

    async def decide(self, caller: Caller, grants: RequestGrants, names: Sequence[str]) -> None:
        """Ask what a request without a session may read, where that is undecided."""
        of_login = grants.of_login
        if not isinstance(of_login, AskingGrants):
            return
        for name in names:
            asked = Operation.SUBSCRIBE, name
            if of_login.allows(*asked) or not isinstance(of_login.why_not(*asked), Undecided):
                continue
            of_login.learn(asked, await self.answer(caller, grants.subject, asked), names)

    # The question

    async def answer(
        self, caller: Caller, subject: str, asked: Asked, limit_s: float = LIMIT_S
    ) -> Said:
        """Return what the backend says, or that it has not answered."""
        operation, name = asked
        shown = self._backend.shown_by(caller)
        who = None if subject == NOBODY else subject
        about = question(_ACTIONS[operation], caller, shown, subject=who, channel=name)
        try:
            allowed_s = await self._backend.asking.ask(about, permission_in, limit_s)
        except SaysNo as no:
            return Said(is_allowed=False, ends_at=self._clock() + _REFUSED_S, text=str(no))
        except NoAnswer as none:
            return self._failed(none.wait_s)
        return Said(
            is_allowed=True, ends_at=inf if allowed_s is None else self._clock() + allowed_s
        )

    def _failed(self, wait_s: float) -> Said:
        return Said(is_allowed=False, ends_at=self._clock() + _FAILED_S, wait_s=wait_s)


def why_not(operation: Operation, grants: Grants, channel: str) -> Refused | None:
    """Return why the backend does not allow something, or None if it is not asked about it."""
    of_login = grants.of_login if isinstance(grants, RequestGrants) else grants
    if not isinstance(of_login, AskingGrants):
        return None
    return of_login.why_not(operation, channel)
