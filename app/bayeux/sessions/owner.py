"""The owner of sessions: implements the delivery core's port to them."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.bayeux.expiry.session_clock import SessionClock
from holdfast.bayeux.publish.point_to_point import is_ptp
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.channel_holds import ChannelHolds
from holdfast.bayeux.state.changed_session import ChangedSession
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.channels import REPLIES, SERVICES
from holdfast.delivery.letters.dead import CHANNEL
from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.ports.error_handler import ErrorHandler
from holdfast.delivery.settling.reactions import (
    DefaultErrorHandler,
    ErrorHandlerChain,
    OnUserException,
    RetryThenDead,
)

_PASSES = "a receiver accepted the message of a probe"
_DEFAULT = {choice.value: DefaultErrorHandler(choice) for choice in OnUserException}


class SessionOwner:
    """Implements the delivery core's port to the owner of receivers."""

    def __init__(
        self,
        state: ServerState,
        clock: SessionClock,
        channel_holds: ChannelHolds,
        random: Callable[[], float],
    ) -> None:
        self._state = state
        self._clock = clock
        self._channel_holds = channel_holds
        self._random = random
        # The channel of dead letters.
        self._channel = state.channels.named(CHANNEL)
        self._rules = state.rules
        # Letters to announce to subscribers, and the step after the last one.
        self._unannounced: deque[tuple[UnwrittenLetter, Callable[[], None] | None]] = deque()
        self._has_limits = any(rule.settings.max_attempts is not None for rule in state.rules.all)

    def announce(self, dead: Sequence[UnwrittenLetter], done: Callable[[], None]) -> None:
        if not self._state.system_events.has_listeners(self._channel):
            done()
            return
        is_announcing = bool(self._unannounced)
        last = len(dead) - 1
        for place, each in enumerate(dead):
            self._unannounced.append((each, done if place == last else None))
        if not is_announcing:
            self._state.backlog.add(self._announce_next)

    def _announce_next(self, now: float) -> bool:
        """Announce some letters. Returns whether any are left."""
        if self._unannounced:
            dead, done = self._unannounced.popleft()
            try:
                self._state.system_events.publish(dead.letter().event())
            finally:
                if done is not None:
                    done()
        return bool(self._unannounced)

    def max_attempts(self, channel: str) -> int | None:
        if not self._has_limits:
            return None
        return self._rules.named(channel).settings.max_attempts

    def reached(self, channel: str, now: float) -> Iterator[str]:
        found = self._state.channels.get(channel)
        for session in () if found is None else self._state.routes.receivers(found):
            # Holds affect only sessions that flow and can refuse.
            if session.can_refuse and not session.has_left and session.flows(now):
                yield session.person

    def alert(self, channel: str, reason: str) -> None:
        self._channel_holds.held_by_guard(channel, reason)

    def release(self, channel: str) -> None:
        self._channel_holds.release_by_server(channel, "guard", _PASSES)

    def note(self, session: Session, now: float) -> None:
        if session.is_gone:
            return
        self._clock.schedule_hold_end(session, now)
        if session.dispatcher is not None and session.dispatcher.hold_record is not None:
            # The hold may be new.
            self._state.presence.show(session, session.subscriptions)
        self._state.hub.settling.watch_expiry(session)
        if session.is_durable:
            self._state.store.save(ChangedSession(session, self._state.node))

    def handler(self, session: Session, channel: str) -> ErrorHandler:
        choice = "continue" if session.terms is None else session.terms.on_user_exception
        default: ErrorHandler = _DEFAULT[choice]
        rule = self._rules.named(channel).settings
        if rule.attempts > 1:
            default = RetryThenDead(
                rule.attempts,
                rule.backoff / 1000,
                rule.longest_backoff / 1000,
                self._random,
                otherwise=default,
            )
        plugged_in = self._state.error_handlers.find(channel)
        return ErrorHandlerChain(plugged_in, default) if plugged_in else default

    def wants_letters(self, session: Session, channel: str) -> bool:
        if channel.startswith(REPLIES):
            # A responder has worked for it.
            return True
        is_plain = session.terms is None and session.queue.settling is SettledBy.WRITTEN
        if is_plain and not session.has_shared_queue:
            return False
        # A service's answer is useful only to its caller, and only while it waits.
        is_answer = channel.startswith(SERVICES) and not is_ptp(channel)
        return not is_answer and self._rules.named(channel).settings.dead_letters

    def policy(self, session: Session) -> Mapping[str, Any] | None:
        if session.terms is None:
            return None
        # Other clients read these terms, so the secret is left out.
        return {k: v for k, v in session.terms.to_json().items() if k != "secret"}
