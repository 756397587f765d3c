"""The file of rights: `[[rule]]` says who may do what, `[revoked]` whose logins are void."""

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.bayeux.login import Login
from holdfast.bayeux.operation import Operation
from holdfast.bayeux.terms import is_subject
from holdfast.delivery.channels import Channels
from holdfast.delivery.receivers import NOBODY
from holdfast.login.failures import Unusable
from holdfast.login.rules import EVERYBODY, GROUP, PLACEHOLDER, Rule

_MOST_RULES = 10_000
# A subject that may stand in a channel, in the place of `{subject}`.
_SOMEBODY = "somebody"


class _RuleGiven(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    who: list[str] = Field(min_length=1)
    may: list[Operation | Literal["all"]] = []
    may_not: list[Operation | Literal["all"]] = []
    channels: list[str] = Field(min_length=1)


class _RevokedGiven(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    subjects: list[str] = []
    tokens: list[str] = []
    issued_before: datetime | None = None


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: list[_RuleGiven] = Field(default=[], max_length=_MOST_RULES)
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
class RightsFile:
    """The content of the file."""

    rules: tuple[Rule, ...]
    revoked: Revoked = Revoked()


# Warnings before the end of a login, and its renewals.
LOGIN = "/service/login"
# These services are for every client, or decide themselves for whom they are.
_ALWAYS = Rule(
    0,
    frozenset({EVERYBODY, NOBODY}),
    frozenset({Operation.PUBLISH, Operation.CREATE}),
    ("/service/delivery", LOGIN, "/service/admin"),
)
# Without a file, whoever has logged in may do everything, and nobody is revoked.
EVERYTHING = RightsFile((Rule(0, frozenset({EVERYBODY, NOBODY}), frozenset(Operation), ("/**",)),))


def read_rights(text: bytes) -> RightsFile:
    """Read the file. Raises `Unusable`, with the place of the fault."""
    try:
        given = _Given.model_validate(tomllib.loads(text.decode()))
    except UnicodeDecodeError:
        raise Unusable("no UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise Unusable(f"no TOML: {error}") from None
    except ValidationError as error:
        raise Unusable(_first(error)) from None
    rules = tuple(_rule(number, each) for number, each in enumerate(given.rule, 1))
    return RightsFile((_ALWAYS, *rules), _revoked(given.revoked))


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    place = ".".join(str(each + 1 if isinstance(each, int) else each) for each in found["loc"])
    return f"{place}: {found['msg']}"


def _rule(number: int, given: _RuleGiven) -> Rule:
    if bool(given.may) == bool(given.may_not):
        raise Unusable(f"rule.{number}: it needs either may or may_not")
    named = given.may or given.may_not
    operations = frozenset(Operation) if "all" in named else frozenset(map(Operation, named))
    for name in given.who:
        is_known = name in (EVERYBODY, NOBODY) or name.startswith(GROUP)
        if not is_known and not is_subject(name):
            raise Unusable(f"rule.{number}.who: {name!r} is no subject, no @group, not *")
    for pattern in given.channels:
        _check_pattern(f"rule.{number}.channels", pattern)
    return Rule(
        number,
        frozenset(given.who),
        operations,
        tuple(given.channels),
        denies=bool(given.may_not),
    )


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
