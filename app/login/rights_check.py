"""Explanations: what the server asks before a login may do something on a channel."""

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.bayeux.rights import is_granted
from holdfast.bayeux.wire.login import Login
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import PRESENCE, Channel, Channels, Kind
from holdfast.login.failures import Unusable
from holdfast.login.rights_file import RightsFile
from holdfast.login.rules import Decision, LoginRules, RuleGrants, Rules

# The rights that each operation needs, in the order in which the server asks for them.
_NEEDED = {
    Operation.PTP: (Operation.PUBLISH, Operation.PTP),
    Operation.REQUEST: (Operation.PUBLISH, Operation.REQUEST),
    Operation.HISTORY: (Operation.SUBSCRIBE, Operation.HISTORY),
    Operation.REPLAY: (Operation.SUBSCRIBE, Operation.REPLAY),
}
# On a channel without subscribers, these also need `create`.
_CREATING = (Operation.PUBLISH, Operation.SUBSCRIBE)


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a login has one of the rights that an operation needs."""

    right: Operation
    is_allowed: bool
    # None if the role decides, not the rules.
    decision: Decision | None = None


def explain(rights: RightsFile, login: Login, operation: Operation, name: str) -> list[Answer]:
    """Return what the server asks and its answers, up to the first denial.

    The last one is about `create` if that is needed on a channel without subscribers. Raises
    `Unusable` if clients cannot do this on the channel, whatever their rights.
    """
    channels = Channels()
    channel = channels.get(name)
    if channel is None:
        raise Unusable(f"{name!r} is neither a channel nor a pattern")
    if channel.name.startswith(PRESENCE) and operation is Operation.SUBSCRIBE:
        channel = channels.named("/" + channel.name.removeprefix(PRESENCE))
        operation = Operation.PRESENCE
    needed = _NEEDED.get(operation, (operation,))
    _check_possible(needed, channel)
    grants = RuleGrants(Rules(rights.rules), login)
    has_role = rights.roles.role_of(login) != ""
    if channel.is_system or (operation is Operation.PRESENCE and has_role):
        return [Answer(operation, has_role)]
    rules = LoginRules(rights.rules, login)
    answers: list[Answer] = []
    for right in _rights(needed, channel):
        is_allowed = is_granted(right, grants, channel)
        answers.append(Answer(right, is_allowed, rules.decide(right, channel.name)))
        if not is_allowed:
            break
    return answers


def _rights(needed: tuple[Operation, ...], channel: Channel) -> Iterator[Operation]:
    yield from needed
    if needed[0] in _CREATING and channel.kind is Kind.BROADCAST:
        yield Operation.CREATE


def _check_possible(needed: tuple[Operation, ...], channel: Channel) -> None:
    kind = channel.kind
    if kind is Kind.META or (kind is Kind.SERVICE and needed[0] is not Operation.PUBLISH):
        raise Unusable(f"no right is needed for this on {channel.name}, and none helps")
    if channel.is_reserved and needed[0] is not Operation.SUBSCRIBE:
        raise Unusable(f"only the server publishes on {channel.name}")
