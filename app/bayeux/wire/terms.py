"""The terms that a handshake agrees on in `ext.delivery`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Self

from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.known_options import LONGEST_MS
from holdfast.delivery.basics.json_text import whole
from holdfast.delivery.messages.verdicts import QUOTABLE
from holdfast.delivery.queues.dispatcher import Policy
from holdfast.delivery.queues.receivers import NOBODY, WEBHOOK_NAME, WEBHOOKS

SUBJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9.@+~-]{1,62}")
# Without commas and colons, which separate the parts of an error.
NAME_INVALID = (
    "session (a name has 2 to 63 letters or digits or .@+~- and may end with a number from 1 such "
    "as joe/1)"
)
_NAME = re.compile(rf"(?:client/)?({SUBJECT.pattern})(?:/(?:session/)?([1-9][0-9]{{0,8}}))?")
_OF_WEBHOOK = re.compile(rf"({WEBHOOKS}{WEBHOOK_NAME.pattern})/(1)")
# A client's options. Verdicts may come with any message, including a handshake.
_OPTIONS = frozenset(
    [
        *("delay", "dispatcherActive", "maxEntries", "onUserException", "oneway", "ptp", "queue"),
        *("responseTimeout", "retries", "secret", "session"),
        *("pending", "verdicts"),
    ]
)
_OF_SESSION = frozenset(["name", "timeout", "maxSessions", "clearSessions"])
_OF_QUEUE = frozenset(["maxEntries", "maxBytes"])
_FOR_EVER = -1
_MOST = 2**31 - 1
_DELAY_MS = 60_000
_RESPONSE_TIMEOUT_MS = 60_000
_TIMEOUT_MS = 24 * 3600 * 1000


class TermsInvalid(Exception):
    """An option has a value that cannot be agreed on. The text names the option."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The effective values. Times are in ms, as on the wire."""

    retries: int = 0
    delay: int = _DELAY_MS
    # None leaves it unchanged. A new session's dispatcher is active.
    dispatcher_active: bool | None = None
    oneway: bool = False
    response_timeout: int = _RESPONSE_TIMEOUT_MS
    max_entries: int = -1
    on_user_exception: str = "continue"
    secret: str | None = None
    ptp: bool = True
    # The subject and number of the session name. Sessions with positive numbers can be resumed.
    subject: str | None = None
    number: int = 0
    timeout: int = _TIMEOUT_MS
    # The client's limit, which can only be lower than the server's.
    max_sessions: int = _MOST
    clear_sessions: bool = False
    queue: Mapping[str, int] = field(default_factory=dict)
    # Whether a policy or an operator set the timeout, which may then exceed the server's maximum.
    is_granted: bool = False

    @property
    def is_named(self) -> bool:
        return self.number > 0

    @property
    def key(self) -> str:
        return f"{self.subject}/{self.number}"

    @property
    def policy(self) -> Policy:
        """The policy for the dispatcher."""
        return Policy(self.retries, self.delay / 1000)

    @classmethod
    def of(cls, asked: object, *, is_kept: bool = False) -> Self:
        """Read the terms that a client requests, or a stored session has.

        Raises `TermsInvalid`.
        """
        options = {} if asked is True else asked
        if not isinstance(options, Mapping):
            raise TermsInvalid("delivery")
        name = _name(options.get("session"), _OF_WEBHOOK if is_kept else None)
        is_named = bool(name.get("number"))
        queue = options.get("queue")
        if queue is None:
            queue = {}
        if not isinstance(queue, Mapping):
            raise TermsInvalid("queue")
        policy = options.get("onUserException", "continue")
        if policy not in ("continue", "dead"):
            raise TermsInvalid("onUserException")
        secret = options.get("secret")
        if secret is not None and (not isinstance(secret, str) or len(secret) > 256):
            raise TermsInvalid("secret")
        return cls(
            retries=_integer(options, "retries", _FOR_EVER if is_named else 0, least=_FOR_EVER),
            delay=_integer(options, "delay", _DELAY_MS, most=LONGEST_MS),
            dispatcher_active=_choice(options, "dispatcherActive"),
            oneway=_flag(options, "oneway", default=False),
            response_timeout=_integer(
                options, "responseTimeout", _RESPONSE_TIMEOUT_MS, most=LONGEST_MS
            ),
            max_entries=_integer(options, "maxEntries", -1, least=-1),
            on_user_exception=policy,
            secret=secret,
            ptp=_flag(options, "ptp", default=True),
            queue={
                key: _integer(queue, key, _MOST, least=1)
                for key in ("maxEntries", "maxBytes")
                if key in queue
            },
            **name,
        )

    def waiting_at_most(self, longest_s: float) -> "Terms":
        """Return the terms with a timeout of at most `longest_s`; 0 means forever."""
        longest = longest_s * 1000
        if (self.timeout or inf) <= longest:
            return self
        return replace(self, timeout=max(int(longest), 1))

    def to_json(self) -> Json:
        """Return the stored form of the terms, with their names on the wire."""
        stored: Json = {
            "retries": self.retries,
            "delay": self.delay,
            "oneway": self.oneway,
            "responseTimeout": self.response_timeout,
            "maxEntries": self.max_entries,
            "onUserException": self.on_user_exception,
            "ptp": self.ptp,
        }
        if self.secret is not None:
            stored["secret"] = self.secret
        if self.queue:
            stored["queue"] = dict(self.queue)
        if self.subject is not None:
            stored["session"] = {
                "name": f"{self.subject}/{self.number}" if self.number else self.subject,
                "timeout": self.timeout,
                "maxSessions": self.max_sessions,
            }
        return stored


def is_subject(name: object) -> bool:
    """Return whether the name may be a subject. The anonymous subject cannot be claimed."""
    return isinstance(name, str) and name != NOBODY and SUBJECT.fullmatch(name) is not None


def asks_for_terms(ext: Mapping[str, Any]) -> bool:
    """Return whether the `ext` of a handshake asks for terms."""
    asked = ext.get("delivery")
    return not (asked is None or asked is False or asked == "false")


def check_names(asked: object) -> None:
    """Check that all options are known. Raises `TermsInvalid`.

    Only for handshakes, because stored terms may be from a later version.
    """
    if not isinstance(asked, Mapping):
        return
    parts = (
        (asked, _OPTIONS),
        (asked.get("session"), _OF_SESSION),
        (asked.get("queue"), _OF_QUEUE),
    )
    for part, known in parts:
        for name in part.keys() - known if isinstance(part, Mapping) else ():
            raise TermsInvalid(name if QUOTABLE.fullmatch(name) else "delivery")


def session_timeout_s(terms: Terms | None, longest_s: float) -> float:
    """Return how long a session waits for a client that is lost or has left; 0 means forever.

    A session without terms waits only while it is held back, and at most for the maximum.
    """
    return longest_s if terms is None else terms.timeout / 1000


def _name(asked: object, others: re.Pattern[str] | None) -> dict[str, Any]:
    """Read `"joe/1"`, `"joe"`, or an object with a name and its options.

    `others` are the names that are allowed besides clients' names.
    """
    if asked is None:
        return {}
    options = {"name": asked} if isinstance(asked, str) else asked
    name = options.get("name") if isinstance(options, Mapping) else None
    if not isinstance(options, Mapping) or not isinstance(name, str):
        raise TermsInvalid(NAME_INVALID)
    found = others and others.fullmatch(name)
    if found is None:
        found = _NAME.fullmatch(name)
        if found is None or not is_subject(found[1]):
            raise TermsInvalid(NAME_INVALID)
    return {
        "subject": found[1],
        "number": int(found[2] or 0),
        "timeout": _integer(options, "timeout", _TIMEOUT_MS, most=LONGEST_MS),
        "max_sessions": _integer(options, "maxSessions", _MOST, least=1),
        "clear_sessions": _flag(options, "clearSessions", default=False),
    }


def _integer(
    options: Mapping[str, Any], name: str, default: int, *, least: int = 0, most: int = _MOST
) -> int:
    value = whole(options.get(name, default))
    if value is None or not least <= value <= most:
        raise TermsInvalid(name)
    return value


def _flag(options: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = options.get(name, default)
    if type(value) is not bool:
        raise TermsInvalid(name)
    return value


def _choice(options: Mapping[str, Any], name: str) -> bool | None:
    """Read an optional flag."""
    return _flag(options, name, default=False) if name in options else None
