"""What the delivery core asks of the protocol about its sessions."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.bayeux.advice import reconnect_advice
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.life import Input
from app.bayeux.records import Noted
from app.bayeux.sessions import Session
from app.delivery.channels import Kind
from app.delivery.counters import Reason
from app.delivery.dead_letters import CHANNEL
from app.delivery.deaths import Buried
from app.delivery.entries import Settling
from app.delivery.error_codes import ErrorCode
from app.delivery.json_text import to_json
from app.delivery.messages import Message
from app.delivery.notices import CHANNEL_FREE, CHANNEL_HELD, ENDED, GIVEN_UP
from app.delivery.reactions import (
    DefaultErrorHandler,
    ErrorHandler,
    InTurn,
    OnUserException,
    RetryThenDead,
)

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

ALERT = "/sys/alert"
_PASSES = "a message that it was tried with was taken"
_DEFAULT = {choice.value: DefaultErrorHandler(choice) for choice in OnUserException}


class Ownership:
    """Owner of the sessions, for `Settlement`."""

    def __init__(self, bayeux: "Bayeux", random: Callable[[], float]) -> None:
        self._bayeux = bayeux
        self._random = random
        rules = bayeux.options.channels.values()
        # Letters of which those who listen have not been told yet, and what follows on that.
        self._untold: deque[tuple[Buried, Callable[[], None] | None]] = deque()
        self._has_limits = any(rule.max_attempts is not None for rule in rules)

    def end(self, session: Session, code: ErrorCode, by: str = "") -> None:
        bayeux = self._bayeux
        if by:
            bayeux.notices.tell(ENDED, session.key, by)
        else:
            bayeux.notices.tell(GIVEN_UP, session.key, code.text)
        # Who has no right to be here would only come back and go on refusing.
        session.may_return = not code.is_type_of("user.security.authentication")
        reconnect = "handshake" if session.may_return else "none"
        advice = reconnect_advice(bayeux.options, reconnect)
        bayeux.answers.refuse_held(session, Refused(BayeuxError.SESSION_UNKNOWN, advice=advice))
        bayeux.end(session, Input.FAIL)
        # What came for it while its last answer was being made.
        bayeux.exits.discard(session, Reason.SESSION_ENDED)

    def tell(self, dead: Sequence[Buried], told: Callable[[], None]) -> None:
        bayeux, is_telling = self._bayeux, bool(self._untold)
        if not dead or not bayeux.hub.routes.receivers(bayeux.channels.named(CHANNEL)):
            told()
            return
        last = len(dead) - 1
        for place, each in enumerate(dead):
            self._untold.append((each, told if place == last else None))
        if not is_telling:
            bayeux.backlog.begin(self._tell_next)

    def _tell_next(self) -> bool:
        """Whether there are more letters to be told of."""
        dead, told = self._untold.popleft()
        self._publish(dead.letter().event())
        if told is not None:
            told()
        return bool(self._untold)

    def max_attempts(self, channel: str) -> int | None:
        if not self._has_limits:
            return None
        found = self._bayeux.channels.get(channel)
        return None if found is None else self._bayeux.rule(found).max_attempts

    def reached(self, channel: str) -> Iterator[str]:
        bayeux, found = self._bayeux, self._bayeux.channels.get(channel)
        for session in () if found is None else bayeux.hub.routes.receivers(found):
            # Nothing would be different for who gets nothing now, or gets it all the same.
            if session.can_refuse and not session.has_left and session.flows(bayeux.now):
                yield session.person

    def alert(self, channel: str, reason: str) -> None:
        self._bayeux.notices.tell(CHANNEL_HELD, channel, reason)
        data = {"kind": "channel held back", "channel": channel, "reason": reason}
        self._publish({"channel": ALERT, "data": data})

    def release(self, channel: str) -> None:
        bayeux = self._bayeux
        bayeux.notices.tell(CHANNEL_FREE, channel, _PASSES)
        bayeux.release_channel(channel, "guard")
        data = {"kind": "channel flows again", "channel": channel, "reason": _PASSES}
        self._publish({"channel": ALERT, "data": data})

    def _publish(self, event: dict[str, Any]) -> None:
        bayeux = self._bayeux
        channel = bayeux.channels.named(event["channel"])
        if not bayeux.hub.routes.receivers(channel):
            return
        message = Message(to_json(event), id=bayeux.node.stamp(), channel=channel.name)
        # It is known elsewhere: a letter of a letter, or of a warning, would be one more alarm.
        message.leaves_no_letter = True
        bayeux.hub.publish(channel, message)

    def note(self, session: Session) -> None:
        if session.is_gone:
            return
        self._bayeux.clock.wind_hold(session)
        self._bayeux.expiry.watch(session)
        if session.is_durable:
            self._bayeux.hub.keeper.save(Noted(session, self._bayeux.node))

    def handler(self, session: Session, channel: str) -> ErrorHandler:
        choice = "continue" if session.terms is None else session.terms.on_user_exception
        default: ErrorHandler = _DEFAULT[choice]
        found = self._bayeux.channels.get(channel)
        if found is None:
            return default
        rule = self._bayeux.rule(found)
        if rule.attempts > 1:
            default = RetryThenDead(
                rule.attempts,
                rule.backoff_s,
                rule.longest_backoff_s,
                self._random,
                otherwise=default,
            )
        plugged_in = self._bayeux.error_handlers.find(found)
        return InTurn(plugged_in, default) if plugged_in else default

    def wants_letters(self, session: Session, channel: str) -> bool:
        if session.terms is None and session.queue.settling is Settling.WRITTEN:
            return False
        found = self._bayeux.channels.get(channel)
        if found is not None and found.kind is Kind.SERVICE:
            # An answer is for who asked, and means nothing to anybody later.
            return False
        has_rules = bool(self._bayeux.options.channels)
        return found is None or not has_rules or self._bayeux.rule(found).dead_letters

    def policy(self, session: Session) -> Mapping[str, Any] | None:
        if session.terms is None:
            return None
        # What others read has no secrets in it.
        return {k: v for k, v in session.terms.to_json().items() if k != "secret"}

    def transport(self, session: Session) -> str:
        return "" if session.connection_type is None else session.connection_type.value
