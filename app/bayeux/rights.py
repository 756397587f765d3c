"""Who may do what: one policy for the server, authorizers for patterns of channels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, assert_never

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.hooks import check_hook, check_outcome
from app.bayeux.sessions import Session
from app.delivery.channels import Channel, Channels, covers, overlaps

BY_POLICY = "denied_by_security_policy"
_NOT_GRANTED = "denied_by_not_granting"


class Operation(Enum):
    """What a client can want to do with a channel."""

    CREATE = "create"
    SUBSCRIBE = "subscribe"
    PUBLISH = "publish"


@dataclass(frozen=True, slots=True)
class Denial:
    """A no, with what the reply shall say besides."""

    reason: str = BY_POLICY
    advice: Mapping[str, Any] = field(default_factory=dict)
    ext: Mapping[str, Any] = field(default_factory=dict)


class SecurityPolicy:
    """Allows everything; override what shall be denied. None allows."""

    def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
        """Whether this client may have a session."""
        return None

    def can_claim(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> Denial | None:
        """Whether this client may be `subject`; with a number, take that session of it over."""
        return None

    def longest_timeout_s(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> float | None:
        """How long this session may wait for its client; None: as long as all others."""
        return None

    def can_create(self, session: Session, channel: str, message: Json) -> Denial | None:
        """Whether the channel, which nobody subscribed to yet, may come into being."""
        return None

    def can_subscribe(self, session: Session, channel: str, message: Json) -> Denial | None:
        """Whether this session may receive what is published there."""
        return None

    def can_publish(self, session: Session, channel: str, message: Json) -> Denial | None:
        """Whether this session may publish there."""
        return None


_QUESTIONS = (
    *("can_handshake", "can_claim", "longest_timeout_s"),
    *("can_create", "can_subscribe", "can_publish"),
)


class Vote(Enum):
    """An authorizer's opinion when it does not deny."""

    GRANT = "grant"
    IGNORE = "ignore"


class Authorizer(Protocol):
    """Has an opinion on the channels of one pattern; a `Denial` settles the matter."""

    def __call__(
        self, operation: Operation, channel: str, session: Session, message: Json
    ) -> Vote | Denial: ...


def _no_role(_: str) -> str:
    return ""


_ERRORS = {
    (Operation.CREATE, Operation.PUBLISH): BayeuxError.CHANNEL_CREATE_DENIED,
    (Operation.PUBLISH, Operation.PUBLISH): BayeuxError.PUBLISH_DENIED,
    (Operation.CREATE, Operation.SUBSCRIBE): BayeuxError.CREATE_DENIED,
    (Operation.SUBSCRIBE, Operation.SUBSCRIBE): BayeuxError.SUBSCRIBE_DENIED,
}


class Rights:
    """CometD's rule: the policy first; then any denial denies, else one grant is needed.

    A wild subscription must be granted by every authorizer inside what it would receive, so that
    `/**` cannot reach around an authorizer on `/secret/**`; these speak for their own part only.
    """

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._policy = SecurityPolicy()
        self._authorizers: list[tuple[str, Authorizer]] = []
        # The role of a session that the store kept, by its warrant; nobody has any by default.
        self.role_of: Callable[[str], str] = _no_role
        # Whether nothing was set up that could deny anything.
        self.are_open = True

    @property
    def policy(self) -> SecurityPolicy:
        """The policy of the whole server."""
        return self._policy

    @policy.setter
    def policy(self, policy: SecurityPolicy) -> None:
        for hook in _QUESTIONS:
            check_hook(f"{type(policy).__name__}.{hook}", getattr(policy, hook))
        self._policy = policy
        self.are_open = False

    @property
    def judges_handshakes(self) -> bool:
        """Whether somebody looks at what a client shows of itself when it comes."""
        kind = type(self._policy)
        return (
            kind.can_handshake is not SecurityPolicy.can_handshake
            or kind.can_claim is not SecurityPolicy.can_claim
        )

    def add(self, pattern: str, authorizer: Authorizer) -> None:
        """Ask the authorizer about all channels of the pattern."""
        check_hook(f"the authorizer of {pattern}", authorizer)
        self._authorizers.append((self._channels.named(pattern).name, authorizer))
        self.are_open = False

    def check_handshake(self, session: Session, handshake: Json) -> None:
        denial = self.policy.can_handshake(session, handshake)
        if denial is not None:
            raise Refused(BayeuxError.HANDSHAKE_DENIED, advice=denial.advice, ext=denial.ext)

    def check_name(self, session: Session, subject: str, number: int, handshake: Json) -> None:
        denial = self.policy.can_claim(session, subject, number, handshake)
        if denial is not None:
            error = BayeuxError.SESSION_NAME_DENIED
            raise Refused(error, denial.reason, advice=denial.advice, ext=denial.ext)

    def longest_timeout_s(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> float | None:
        return self.policy.longest_timeout_s(session, subject, number, handshake)

    def check_system(self, session: Session, channel: Channel) -> None:
        """The system's own channels are the operators' to read."""
        if channel.is_system and not session.is_operator:
            raise Refused(BayeuxError.SUBSCRIBE_DENIED, BY_POLICY)

    def check_publish(
        self, session: Session, channel: Channel, message: Json, *, exists: bool
    ) -> None:
        if not exists:
            self._check(Operation.CREATE, Operation.PUBLISH, session, channel, message)
        self._check(Operation.PUBLISH, Operation.PUBLISH, session, channel, message)

    def check_subscribe(
        self, session: Session, channel: Channel, message: Json, *, exists: bool
    ) -> None:
        if not exists:
            self._check(Operation.CREATE, Operation.SUBSCRIBE, session, channel, message)
        self._check(Operation.SUBSCRIBE, Operation.SUBSCRIBE, session, channel, message)

    def _check(
        self,
        operation: Operation,
        purpose: Operation,
        session: Session,
        channel: Channel,
        message: Json,
    ) -> None:
        denial = self._ask_policy(operation, session, channel.name, message)
        if denial is None and self._authorizers:
            denial = self._ask_authorizers(operation, session, channel.name, message)
        if denial is not None:
            error = _ERRORS[operation, purpose]
            raise Refused(error, denial.reason, advice=denial.advice, ext=denial.ext)

    def _ask_policy(
        self, operation: Operation, session: Session, channel: str, message: Json
    ) -> Denial | None:
        match operation:
            case Operation.CREATE:
                return self.policy.can_create(session, channel, message)
            case Operation.SUBSCRIBE:
                return self.policy.can_subscribe(session, channel, message)
            case Operation.PUBLISH:
                return self.policy.can_publish(session, channel, message)
            case unknown:
                assert_never(unknown)

    def _ask_authorizers(
        self, operation: Operation, session: Session, channel: str, message: Json
    ) -> Denial | None:
        asked = granted = 0
        for pattern, authorizer in self._authorizers:
            covering = covers(pattern, channel)
            if not covering and not overlaps(pattern, channel):
                continue
            vote = _vote(pattern, authorizer(operation, channel, session, message))
            if isinstance(vote, Denial):
                return vote
            if covering:
                asked += 1
                granted += vote is Vote.GRANT
            elif vote is Vote.IGNORE:
                return Denial(_NOT_GRANTED)
        return Denial(_NOT_GRANTED) if asked and not granted else None


def _vote(pattern: str, outcome: object) -> Vote | Denial:
    """What an authorizer said; whatever else it returned must not be taken for a grant."""
    if isinstance(outcome, Vote | Denial):
        return outcome
    check_outcome(f"the authorizer of {pattern}", outcome)
    raise TypeError(f"the authorizer of {pattern} must return a Vote or a Denial, not {outcome!r}")
