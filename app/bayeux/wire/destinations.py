"""The destinations of a publish, and the outcome for each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from holdfast.bayeux.wire.terms import SUBJECT, is_subject

# How many destinations one message may have.
_MOST = 100
_OPTIONS = frozenset({"name", "forceQueuing", "ignoreSilently"})
_NAME = re.compile(rf"(?:client/)?({SUBJECT.pattern})(?:/(?:session/)?(0|-?[1-9][0-9]{{0,18}}))?")
OK = "OK"
QUEUED = "QUEUED"
IGNORED = "IGNORED"
FAILED = "ERROR"


class DestinationInvalid(Exception):
    """The destinations cannot be read."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The address of a message: a session, or a subject with all its sessions (number 0)."""

    subject: str
    number: int = 0
    # Whether the message waits for a subject without sessions instead of being refused; with a
    # setting, also for a session that does not exist.
    forces_queuing: bool = False
    # Whether an unknown destination is no error.
    is_optional: bool = False

    @property
    def key(self) -> str:
        """The subject, or the name of the session."""
        return f"{self.subject}/{self.number}" if self.number else self.subject

    @property
    def name(self) -> str:
        return f"client/{self.key}"

    @classmethod
    def of(cls, asked: object) -> Self:
        """Read `"joe"`, `"client/joe/1"`, or an object with a name and options."""
        options = {"name": asked} if isinstance(asked, str) else asked
        if not isinstance(options, Mapping) or options.keys() - _OPTIONS:
            raise DestinationInvalid
        name = options.get("name")
        found = _NAME.fullmatch(name) if isinstance(name, str) else None
        flags = [options.get("forceQueuing", False), options.get("ignoreSilently", False)]
        if found is None or not all(type(each) is bool for each in flags):
            raise DestinationInvalid
        number = int(found[2] or 0)
        if not number and not is_subject(found[1]):
            raise DestinationInvalid
        return cls(found[1], number, *flags)


def destinations_of(asked: object) -> tuple[Destination, ...]:
    """Read a list of destinations, without duplicates. Raises `DestinationInvalid`."""
    if not isinstance(asked, Sequence) or isinstance(asked, str) or not 1 <= len(asked) <= _MOST:
        raise DestinationInvalid
    by_key = {each.key: each for each in map(Destination.of, asked)}
    return tuple(by_key.values())


def outcome(destination: Destination, state: str, code: str = "") -> dict[str, Any]:
    """Return the reply's report about a destination."""
    said = {"name": destination.name, "state": state}
    return {**said, "errorCode": code} if code else said
