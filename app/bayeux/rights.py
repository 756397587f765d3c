"""Rights: one policy for the whole server, and authorizers for patterns of channels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, assert_never

from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.hooks import check_hook, check_outcome
from holdfast.bayeux.wire.identity import SERVER, Grants, Identity
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import PRESENCE, Channel, Channels, covers, overlaps

BY_POLICY = "denied_by_security_policy"
_NOT_GRANTED = "denied_by_not_granting"
_BY_RULES = "denied_by_rights"


@dataclass(frozen=True, slots=True)
class Denial:
    """A denial, and its reason as sent in the reply."""

    reason: str = BY_POLICY
    advice: Mapping[str, Any] = field(default_factory=dict)
    ext: Mapping[str, Any] = field(default_factory=dict)


class SecurityPolicy:
    """Allows everything. Override methods to deny; returning None allows."""

    def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
        """Decide whether this client may have a session."""
        return None

    def can_claim(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> Denial | None:
        """Decide whether the client may be `subject`, and have its session `number`, if not 0."""
        return None

    def longest_timeout_s(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> float | None:
        """Return this session's longest timeout, or None for the server's limit."""
        return None

    def can_create(self, session: Session, channel: str, message: Json) -> Denial | None:
        """Decide whether the channel, which has no subscriber yet, may be created."""
        return None

    def can_subscribe(self, session: Session, channel: str, message: Json) -> Denial | None:
        """Decide whether this session may receive messages published to the channel."""
        return None

    def can_publish(self, session: Session, channel: str, message: Json) -> Denial | None:
        """Decide whether this session may publish to the channel."""
        return None


_QUESTIONS = (
    *("can_handshake", "can_claim", "longest_timeout_s"),
    *("can_create", "can_subscribe", "can_publish"),
)


class Vote(Enum):
    """An authorizer's answer that does not deny."""

    GRANT = "grant"
    IGNORE = "ignore"


class Authorizer(Protocol):
    """Votes on the channels of one pattern. A `Denial` overrides all votes."""

    def __call__(
        self, operation: Operation, channel: str, session: Session, message: Json
    ) -> Vote | Denial: ...


def _proves(_identity: Identity, _caller: Caller) -> bool:
    return True


_ERRORS = {
    (Operation.CREATE, Operation.PUBLISH): ErrorReply.CHANNEL_CREATE_DENIED,
    (Operation.PUBLISH, Operation.PUBLISH): ErrorReply.PUBLISH_DENIED,
    (Operation.CREATE, Operation.SUBSCRIBE): ErrorReply.CREATE_DENIED,
    (Operation.SUBSCRIBE, Operation.SUBSCRIBE): ErrorReply.SUBSCRIBE_DENIED,
    (Operation.PTP, Operation.PTP): ErrorReply.PUBLISH_DENIED,
    (Operation.REQUEST, Operation.REQUEST): ErrorReply.REQUEST_DENIED,
    (Operation.HISTORY, Operation.HISTORY): ErrorReply.HISTORY_DENIED,
    (Operation.REPLAY, Operation.REPLAY): ErrorReply.REPLAY_DENIED,
    (Operation.ERASE, Operation.ERASE): ErrorReply.ERASE_DENIED,
    (Operation.PRESENCE, Operation.PRESENCE): ErrorReply.PRESENCE_DENIED,
}

_CATCHING_UP = (Operation.HISTORY, Operation.REPLAY)


class Rights:
    """CometD's rule: the policy decides first; then any denial denies, and one grant is required.

    Methods named `check_...` raise `Refused`. The right to create is checked last: it is needed
    only on channels without subscribers, so a refusal would reveal that there are none.

    A subscription with wildcards needs a grant from every authorizer inside its pattern, so that
    `/**` cannot bypass an authorizer on `/secret/**`. Those authorizers decide for their own part
    only.

    Args:
        role_of: Returns the role of a stored session by its warrant; empty if it has none.
    """

    def __init__(self, channels: Channels, role_of: Callable[[str], str]) -> None:
        self._channels = channels
        self._policy = SecurityPolicy()
        self._authorizers: list[tuple[str, Authorizer]] = []
        self.role_of = role_of
        self.still_proves: Callable[[Identity, Caller], bool] = _proves
        # Returns why a login may not do something, if the backend decides about that.
        self.why_not: Callable[[Operation, Grants, str], Refused | None] | None = None
        # Whether there is neither a policy nor an authorizer nor a required login.
        self.are_open = True
        self._requires_login = False

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

    def require_login(self, still_proves: Callable[[Identity, Caller], bool] = _proves) -> None:
        """Require sessions to log in. A login allows only the names of its subject."""
        self.still_proves = still_proves
        self._requires_login = True
        self.are_open = False

    @property
    def judges_handshakes(self) -> bool:
        """Whether a login or a policy decides on handshakes."""
        kind = type(self._policy)
        return (
            self._requires_login
            or kind.can_handshake is not SecurityPolicy.can_handshake
            or kind.can_claim is not SecurityPolicy.can_claim
        )

    def add(self, pattern: str, authorizer: Authorizer) -> None:
        """Ask the authorizer about all channels that the pattern matches."""
        check_hook(f"the authorizer of {pattern}", authorizer)
        self._authorizers.append((self._channels.named(pattern).name, authorizer))
        self.are_open = False

    def check_handshake(self, session: Session, handshake: Json) -> None:
        denial = self.policy.can_handshake(session, handshake)
        if denial is not None:
            raise Refused(ErrorReply.HANDSHAKE_DENIED, advice=denial.advice, ext=denial.ext)

    def check_name(self, session: Session, subject: str, number: int, handshake: Json) -> None:
        if self._requires_login and (
            session.identity.login is None or session.identity.login.subject != subject
        ):
            raise Refused(ErrorReply.SESSION_NAME_DENIED, BY_POLICY)
        denial = self.policy.can_claim(session, subject, number, handshake)
        if denial is not None:
            error = ErrorReply.SESSION_NAME_DENIED
            raise Refused(error, denial.reason, advice=denial.advice, ext=denial.ext)

    def longest_timeout_s(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> float | None:
        return self.policy.longest_timeout_s(session, subject, number, handshake)

    def check_system(self, session: Session, channel: Channel, message: Json) -> None:
        """Refuse the server's own channels to sessions without a role or without the right."""
        if not channel.is_system or session.identity.has_role:
            return
        if not channel.name.startswith(PRESENCE):
            raise Refused(ErrorReply.SUBSCRIBE_DENIED, BY_POLICY)
        about = self._channels.named("/" + channel.name.removeprefix(PRESENCE))
        self.check_presence(session, about, message)

    def check_presence(self, session: Session, channel: Channel, message: Json) -> None:
        """Refuse to list the members of a channel; a policy decides as for a subscribe to it."""
        if not session.identity.has_role:
            self._check(
                Operation.PRESENCE,
                Operation.PRESENCE,
                session=session,
                channel=channel,
                message=message,
            )

    def check_publish(self, session: Session, channel: Channel, message: Json) -> None:
        self._check(
            Operation.PUBLISH, Operation.PUBLISH, session=session, channel=channel, message=message
        )

    def check_subscribe(self, session: Session, channel: Channel, message: Json) -> None:
        self._check(
            Operation.SUBSCRIBE,
            Operation.SUBSCRIBE,
            session=session,
            channel=channel,
            message=message,
        )

    def check_create(
        self, purpose: Operation, session: Session, channel: Channel, message: Json
    ) -> None:
        """Refuse a publish or a subscribe that creates the channel, or configures its topic."""
        self._check(Operation.CREATE, purpose, session=session, channel=channel, message=message)

    def check_rules(self, operation: Operation, session: Session, channel: Channel) -> None:
        """Refuse an operation that comes with a publish or a subscribe, unless the rules allow it.

        The policy and the authorizers decide about the publish or the subscribe itself.
        """
        if not is_granted(operation, session.identity.grants, channel):
            raise Refused(_ERRORS[operation, operation], _BY_RULES)

    def may_catch_up(self, session: Session, channel: Channel) -> bool:
        """Return whether the rules let the session read a history, by `history` or `replay`."""
        return any(is_granted(each, session.identity.grants, channel) for each in _CATCHING_UP)

    def check_reader(self, grants: Grants | None, channel: Channel) -> None:
        """Refuse to read a history without a session. `grants` are None if no login is required.

        Policies and authorizers decide about sessions: what they decide about needs one.
        """
        for operation in (Operation.SUBSCRIBE, Operation.REPLAY):
            if not is_granted(operation, grants, channel):
                raise self._refusal(operation, operation, grants, channel)
        decides = type(self._policy).can_subscribe is not SecurityPolicy.can_subscribe
        if decides or any(covers(pattern, channel.name) for pattern, _ in self._authorizers):
            raise Refused(ErrorReply.SUBSCRIBE_DENIED, BY_POLICY)

    def check_erase(self, session: Session, channel: Channel, message: Json) -> None:
        """Refuse to erase topics without the right; a policy decides as for their creation."""
        self._check(
            Operation.ERASE, Operation.ERASE, session=session, channel=channel, message=message
        )

    def _check(
        self,
        operation: Operation,
        purpose: Operation,
        *,
        session: Session,
        channel: Channel,
        message: Json,
    ) -> None:
        if session.identity.role == SERVER:
            # The settings say what it receives.
            return
        if not is_granted(operation, session.identity.grants, channel):
            raise self._refusal(operation, purpose, session.identity.grants, channel)
        denial = self._ask_policy(operation, session, channel.name, message)
        if denial is None and self._authorizers:
            denial = self._ask_authorizers(operation, session, channel.name, message)
        if denial is not None:
            error = _ERRORS[operation, purpose]
            raise Refused(error, denial.reason, advice=denial.advice, ext=denial.ext)

    def _refusal(
        self, operation: Operation, purpose: Operation, grants: Grants | None, channel: Channel
    ) -> Refused:
        if self.why_not is not None and grants is not None:
            refused = self.why_not(operation, grants, channel.name)
            if refused is not None:
                return refused
        return Refused(_ERRORS[operation, purpose], _BY_RULES)

    def _ask_policy(
        self, operation: Operation, session: Session, channel: str, message: Json
    ) -> Denial | None:
        match operation:
            case Operation.CREATE | Operation.ERASE:
                return self.policy.can_create(session, channel, message)
            case Operation.SUBSCRIBE | Operation.PRESENCE:
                return self.policy.can_subscribe(session, channel, message)
            case Operation.PUBLISH:
                return self.policy.can_publish(session, channel, message)
            case Operation.PTP | Operation.REQUEST | Operation.HISTORY | Operation.REPLAY:
                # The policy was asked about the publish or the subscribe.
                return None
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


def is_granted(operation: Operation, grants: Grants | None, channel: Channel) -> bool:
    """Return whether the rights of a login allow the operation; None if no login is required."""
    # Roles govern the server's own channels.
    return grants is None or channel.is_system or grants.allows(operation, channel.name)


def _vote(pattern: str, outcome: object) -> Vote | Denial:
    """Return the authorizer's answer. Any other result is not a grant."""
    if isinstance(outcome, Vote | Denial):
        return outcome
    check_outcome(f"the authorizer of {pattern}", outcome)
    raise TypeError(f"the authorizer of {pattern} must return a Vote or a Denial, not {outcome!r}")
