"""Rules: who may do what on which channels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from holdfast.bayeux.wire.login import Login, LoginMethod, Right
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import covers, overlaps
from holdfast.delivery.queues.receivers import NOBODY

# The most channels for which a session's answers are kept, of each operation.
_MOST_ANSWERS = 100
EVERYBODY = "*"
GROUP = "@"
PLACEHOLDER = "{subject}"


class RuleSource(Enum):
    """The origin of a rule."""

    BUILT_IN = "the built-in rule"
    FILE = "rule"
    CLAIM = "claim"


def is_among(who: frozenset[str], login: Login) -> bool:
    """Return whether the login is among these subjects and groups."""
    if login.method is LoginMethod.ANONYMOUS:
        return NOBODY in who
    return (
        EVERYBODY in who
        or login.subject in who
        or any(GROUP + group in who for group in login.groups)
    )


@dataclass(frozen=True, slots=True)
class Rule:
    """Gives a right to some subjects."""

    who: frozenset[str]
    right: Right
    source: RuleSource = RuleSource.FILE
    # Its place in the file or in the claim, from 1.
    number: int = 1
    # Whether it applies only to logins that bring no rights.
    is_otherwise: bool = False
    # Whether it has the backend asked, which then decides.
    asks: bool = False

    def concerns(self, login: Login) -> bool:
        """Return whether the rule is about this login."""
        return is_among(self.who, login) and not (self.is_otherwise and login.rights)

    def patterns(self, subject: str) -> list[str]:
        """Return the channels, with the subject in the place of `{subject}`."""
        return [each.replace(PLACEHOLDER, subject) for each in self.right.channels]


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an operation is allowed, and the rule that decided; none if no rule allows it."""

    is_allowed: bool
    rule: Rule | None = None
    # Whether the backend decides.
    is_asked: bool = False


class LoginRules:
    """The rules that apply to one login: first the general ones, then the ones in its token."""

    def __init__(self, rules: Iterable[Rule], login: Login) -> None:
        concerning = [rule for rule in rules if rule.concerns(login)]
        concerning += [
            Rule(frozenset({login.subject}), right, RuleSource.CLAIM, number)
            for number, right in enumerate(login.rights, 1)
        ]
        self._of = {
            operation: [
                (rule, rule.patterns(login.subject))
                for rule in concerning
                if operation in rule.right.operations
            ]
            for operation in Operation
        }

    def decide(self, operation: Operation, channel: str) -> Decision:
        """Decide: no rule may deny any part of the channel, and one must allow all of it.

        If a rule has the backend asked about a part of it, the backend decides about all of it.
        """
        allowing: Rule | None = None
        asking: Rule | None = None
        for rule, patterns in self._of[operation]:
            if rule.right.denies:
                if any(overlaps(pattern, channel) for pattern in patterns):
                    return Decision(is_allowed=False, rule=rule)
            elif rule.asks:
                if asking is None and any(overlaps(pattern, channel) for pattern in patterns):
                    asking = rule
            elif allowing is None and any(covers(pattern, channel) for pattern in patterns):
                allowing = rule
        if asking is not None:
            return Decision(is_allowed=False, rule=asking, is_asked=True)
        return Decision(is_allowed=allowing is not None, rule=allowing)


class Rules:
    """The rules in force, which may be replaced."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.in_force = rules


class RuleGrants:
    """The rights of one login, with the answers given since the rules changed last."""

    __slots__ = ("_answers", "_known", "_login", "_login_rules", "_rules")

    def __init__(self, rules: Rules, login: Login) -> None:
        self._rules = rules
        self._login = login
        self._begin()

    def _begin(self) -> None:
        self._known = self._rules.in_force
        self._login_rules = LoginRules(self._known, self._login)
        self._answers: dict[Operation, dict[str, bool]] = {each: {} for each in Operation}

    def asks(self, operation: Operation, channel: str) -> bool:
        """Return whether the backend decides about the operation on the channel."""
        return self._login_rules.decide(operation, channel).is_asked

    def allows(self, operation: Operation, channel: str) -> bool:
        """Return whether the login allows the operation on the channel, or on all of a pattern."""
        if self._known is not self._rules.in_force:
            self._begin()
        answers = self._answers[operation]
        answer = answers.get(channel)
        if answer is None:
            if len(answers) >= _MOST_ANSWERS:
                answers.clear()
            answer = answers[channel] = self._login_rules.decide(operation, channel).is_allowed
        return answer
