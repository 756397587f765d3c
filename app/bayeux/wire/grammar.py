"""xmlBlaster's administrative grammar: `[/node/<id>/]client/<subject>/<n>/?<property>[=<args>]`.

A topic is `topic/` and its channel, such as `topic/orders/7/?state`. The address may be preceded by
`get` or `set`, and by `__cmd:`; `session/` before the number is optional. Names and arguments may
be percent-encoded. `properties` defines the properties.
"""

import re
from dataclasses import dataclass
from enum import Enum
from urllib.parse import unquote

_MAX_LENGTH = 4096
_BEGINNING = re.compile(r"(?:(get|set)\s+)?(?:__cmd:)?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")
_NODE = re.compile(r"[a-z0-9-]{1,32}")
_NUMBER = re.compile(r"-?[1-9][0-9]{0,19}")
# Levels of xmlBlaster that this server does not have.
_ABSENT = frozenset(["subscription", "sysprop", "logging", "queue", "map"])

ILLEGAL = "user.illegalArgument"
ABSENT = "internal.notImplemented"


class CommandRefused(Exception):
    """The command is refused, with one of xmlBlaster's error codes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Level(Enum):
    """The kind of a command's target."""

    NODE = "node"
    SUBJECT = "subject"
    SESSION = "session"
    TOPIC = "topic"


class Verb(Enum):
    """The verb of a command, if it has one."""

    GET = "get"
    SET = "set"


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a command: this node, a subject, one of its sessions, or a topic."""

    level: Level
    node: str | None = None
    subject: str = ""
    number: int = 0
    channel: str = ""

    @property
    def key(self) -> str:
        """The session name."""
        return f"{self.subject}/{self.number}"

    def absolute(self, node: str) -> str:
        """Return the target in its complete form."""
        match self.level:
            case Level.NODE:
                return f"/node/{node}/"
            case Level.SUBJECT:
                return f"/node/{node}/client/{self.subject}/"
            case Level.SESSION:
                return f"/node/{node}/client/{self.key}/"
            case Level.TOPIC:
                return f"/node/{node}/topic{self.channel}/"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A command taken apart; its property may not exist."""

    verb: Verb | None
    target: Target
    name: str
    # None if the command has no `=`.
    arguments: tuple[str, ...] | None


def parse(text: str) -> Phrase:
    """Take a command apart; raises `CommandRefused`."""
    if len(text) > _MAX_LENGTH:
        raise CommandRefused(ILLEGAL, f"a command has at most {_MAX_LENGTH} characters")
    text = text.strip()
    beginning = _BEGINNING.match(text)
    verb = Verb(beginning[1]) if beginning is not None and beginning[1] else None
    address, mark, question = text[beginning.end() if beginning else 0 :].partition("?")
    if not mark:
        raise CommandRefused(ILLEGAL, "the command has no ? before the name of its property")
    name, equals, rest = question.partition("=")
    if _NAME.fullmatch(name) is None:
        raise CommandRefused(ILLEGAL, "the command has no valid property name after the ?")
    arguments = tuple(map(_decode, rest.split("&"))) if equals else None
    return Phrase(verb, _target(address), name, arguments)


def _target(address: str) -> Target:
    steps = [step for step in address.removeprefix("/").removesuffix("/").split("/") if step]
    if "//" in address:
        raise CommandRefused(ILLEGAL, "a part between two slashes is empty")
    node = None
    if steps[:1] == ["node"]:
        if len(steps) < 2 or _NODE.fullmatch(steps[1]) is None:
            raise CommandRefused(ILLEGAL, "the command has no valid node name after node/")
        node = steps[1]
        steps = steps[2:]
    match steps:
        case []:
            return Target(Level.NODE, node)
        case ["client", subject]:
            return Target(Level.SUBJECT, node, _subject(subject))
        case ["client", subject, number] | ["client", subject, "session", number]:
            return Target(Level.SESSION, node, _subject(subject), _number(number))
        case ["topic", *names] if names:
            return Target(Level.TOPIC, node, channel="/" + "/".join(map(_decode, names)))
        case [level, *_] if level in _ABSENT:
            raise CommandRefused(ABSENT, f"this server has no commands for {level}/")
    raise CommandRefused(
        ILLEGAL,
        "the target must be client/<subject>/<number>/, client/<subject>/, topic/<channel>/ or "
        "empty",
    )


def _subject(text: str) -> str:
    subject = _decode(text)
    if "/" in subject:
        raise CommandRefused(ILLEGAL, "a subject cannot contain a slash")
    return subject


def _number(text: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        raise CommandRefused(ILLEGAL, "the session's number must be a whole number other than 0")
    return int(text)


def _decode(text: str) -> str:
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise CommandRefused(ILLEGAL, "percent-encoded text must be UTF-8") from None
    if not decoded.isprintable():
        raise CommandRefused(ILLEGAL, "the command has unprintable characters")
    return decoded
