"""Rights as operators write them: in a file, and in a claim of tokens.

In the file, `[[rule]]` says who may do what, `[administration]` who may administer the server, and
`[revoked]` whose logins are void.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from holdfast.bayeux.publish.point_to_point import PTP
from holdfast.bayeux.services.presence_answers import PRESENCE_SERVICE
from holdfast.bayeux.services.topic_answers import TOPICS
from holdfast.bayeux.wire.identity import OPERATOR, READER
from holdfast.bayeux.wire.login import Login, Right
from holdfast.bayeux.wire.operation import Operation
from holdfast.bayeux.wire.terms import is_subject
from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.login.failures import Unusable
from holdfast.login.rules import EVERYBODY, GROUP, PLACEHOLDER, Rule, RuleSource, is_among
from holdfast.login.toml_file import first_fault, located, read_toml

_MOST_RULES = 10_000
# In the claim of one token.
_MOST_CLAIMED = 100
# A subject that may stand in a channel, in the place of `{subject}`.
_SOMEBODY = "somebody"
_ALL = "all"
# What the backend can be asked about.
_ASKED = (Operation.SUBSCRIBE.value, Operation.PUBLISH.value)
_ASKABLE = "only about " + " and ".join(_ASKED)


class _RightGiven(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    may: list[str] = []
    may_not: list[str] = []
    channels: list[str] = Field(min_length=1)


class _RuleGiven(_RightGiven):
    ask: list[str] = []
    who: list[str] = Field(min_length=1)


_CLAIM = TypeAdapter(Annotated[list[_RightGiven], Field(max_length=_MOST_CLAIMED)])


class _RevokedGiven(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    subjects: list[str] = []
    tokens: list[str] = []
    issued_before: datetime | None = None


class _AdministrationGiven(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    operators: list[str] = []
    readers: list[str] = []


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: list[_RuleGiven] = Field(default=[], max_length=_MOST_RULES)
    administration: _AdministrationGiven = _AdministrationGiven()
    revoked: _RevokedGiven = _RevokedGiven()


@dataclass(frozen=True, slots=True)
class Revoked:
    """Logins that are void though their credentials are valid."""

    subjects: frozenset[str] = frozenset()
    tokens: frozenset[str] = frozenset()
    issued_before_s: float = 0.0

    def includes(self, login: Login) -> bool:
        return (
            login.subject in self.subjects
            or login.token_id in self.tokens
            # Only tokens have a time; another login is withdrawn by its subject.
            or 0.0 < login.issued_s < self.issued_before_s
        )


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles in the administration, and who has them."""

    operators: frozenset[str] = frozenset()
    readers: frozenset[str] = frozenset()

    def role_of(self, login: Login) -> str:
        """Return the role; empty if the login has none."""
        if is_among(self.operators, login):
            return OPERATOR
        return READER if is_among(self.readers, login) else ""


@dataclass(frozen=True, slots=True)
class RightsFile:
    """The content of the file."""

    rules: tuple[Rule, ...]
    revoked: Revoked = Revoked()
    roles: Roles = Roles()


def _built_in(operations: Iterable[Operation], *channels: str) -> Rule:
    everybody = frozenset({EVERYBODY, NOBODY})
    return Rule(everybody, Right(frozenset(operations), channels), RuleSource.BUILT_IN)


# Warnings before the end of a login, and its renewals.
LOGIN = "/service/login"
ADMIN = "/service/admin"
# These services are for every client, or decide themselves for whom they are. Addressing a message
# needs a separate right.
_ALWAYS = _built_in(
    {Operation.PUBLISH, Operation.CREATE},
    "/service/delivery",
    LOGIN,
    ADMIN,
    PTP,
    TOPICS,
    PRESENCE_SERVICE,
)
EVERYTHING = RightsFile((_built_in(Operation, "/**"),))


# For logins by the backend, whose answers may bring rights.
_OTHERWISE = replace(EVERYTHING.rules[0], is_otherwise=True)


def without_file(*, has_claims: bool) -> RightsFile:
    """Return the rights without a file: everything is allowed, unless logins bring rights.

    If tokens have a claim for rights, a token without the claim brings none.
    """
    return RightsFile((_ALWAYS,) if has_claims else (_ALWAYS, _OTHERWISE))


def read_rights(text: bytes, *, has_backend: bool = True) -> RightsFile:
    """Read the file. Raises `Unusable`, with the line and the place of the error.

    Without a backend, no rule can have it asked.
    """
    given = read_toml(text, _Given)
    try:
        return _rights_in(given, has_backend=has_backend)
    except Unusable as error:
        raise Unusable(located(text, str(error))) from None


def _rights_in(given: _Given, *, has_backend: bool) -> RightsFile:
    rules = tuple(_rule(number, each) for number, each in enumerate(given.rule, 1))
    asking = next((each.number for each in rules if each.asks), None)
    if asking is not None and not has_backend:
        raise Unusable(f"rule.{asking}: ask needs the setting backend: without it, nobody answers")
    return RightsFile((_ALWAYS, *rules), _revoked(given.revoked), _roles(given.administration))


def read_claim(given: object) -> tuple[Right, ...]:
    """Read the rights that a token brings. Raises `Unusable`, with the place of the error."""
    try:
        found = _CLAIM.validate_python(given)
    except ValidationError as error:
        raise Unusable(first_fault(error)) from None
    return tuple(_right(str(number), each) for number, each in enumerate(found, 1))


def _roles(given: _AdministrationGiven) -> Roles:
    for key, names in (("operators", given.operators), ("readers", given.readers)):
        for name in names:
            if not _is_group(name) and not is_subject(name):
                raise Unusable(f"administration.{key}: {name!r} is neither a subject nor an @group")
    return Roles(frozenset(given.operators), frozenset(given.readers))


def _rule(number: int, given: _RuleGiven) -> Rule:
    place = f"rule.{number}"
    for name in given.who:
        is_known = name in (EVERYBODY, NOBODY) or _is_group(name)
        if not is_known and not is_subject(name):
            raise Unusable(f"{place}.who: {name!r} is not a subject, an @group or *")
    if not given.ask:
        return Rule(frozenset(given.who), _right(place, given), number=number)
    if given.may or given.may_not:
        raise Unusable(f"{place}: it needs only one of may, may_not and ask")
    asked = given.model_copy(update={"may": given.ask})
    for name in given.ask:
        if name not in _ASKED:
            raise Unusable(f"{place}: the backend cannot be asked about {name!r}: {_ASKABLE}")
    return Rule(frozenset(given.who), _right(place, asked), number=number, asks=True)


def _is_group(name: str) -> bool:
    return name.startswith(GROUP) and name != GROUP


def _right(place: str, given: _RightGiven) -> Right:
    if bool(given.may) == bool(given.may_not):
        raise Unusable(f"{place}: it needs either may or may_not, or ask")
    for pattern in given.channels:
        _check_pattern(f"{place}.channels", pattern)
    return Right(
        _operations(place, given.may or given.may_not),
        tuple(given.channels),
        denies=bool(given.may_not),
    )


def _operations(place: str, names: list[str]) -> frozenset[Operation]:
    known = {each.value: {each} for each in Operation} | {_ALL: set(Operation)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Unusable(f"{place}: {unknown[0]!r} is not a right; rights are {', '.join(known)}")
    return frozenset().union(*(known[name] for name in names))


def _check_pattern(place: str, pattern: str) -> None:
    try:
        Channels().named(pattern.replace(PLACEHOLDER, _SOMEBODY))
    except ValueError as error:
        raise Unusable(f"{place}: {error}") from None


def _revoked(given: _RevokedGiven) -> Revoked:
    before = given.issued_before
    if before is not None and before.tzinfo is None:
        before = before.replace(tzinfo=UTC)
    return Revoked(
        frozenset(given.subjects),
        frozenset(given.tokens) - {""},
        0.0 if before is None else before.timestamp(),
    )
