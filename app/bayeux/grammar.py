"""xmlBlaster's administrative grammar: `[/node/<id>/]client/<subject>/<n>/?<property>[=<args>]`.

Before it may stand `get` or `set`, and `__cmd:`; `session/` before the number may be left out.
Subjects and arguments may be percent-encoded. Which properties there are is not told here.
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
# Levels of xmlBlaster that this server has no answers for.
_ABSENT = frozenset(["topic", "subscription", "sysprop", "logging", "queue", "map"])

ILLEGAL = "user.illegalArgument"
ABSENT = "internal.notImplemented"


class CommandRefused(Exception):
    """A command is not carried out; the code is one of xmlBlaster's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Level(Enum):
    """What a command is about."""

    NODE = "node"
    CLIENT = "client"
    SESSION = "session"


class Verb(Enum):
    """What is to be done, if the command says so."""

    GET = "get"
    SET = "set"


@dataclass(frozen=True, slots=True)
class Target:
    """Who is meant: this node, a subject of it, or one of the subject's sessions."""

    level: Level
    node: str | None = None
    subject: str = ""
    number: int = 0

    @property
    def key(self) -> str:
        """The session's."""
        return f"{self.subject}/{self.number}"

    def absolute(self, node: str) -> str:
        """The same with everything that may be left out."""
        match self.level:
            case Level.NODE:
                return f"/node/{node}/"
            case Level.CLIENT:
                return f"/node/{node}/client/{self.subject}/"
            case Level.SESSION:
                return f"/node/{node}/client/{self.key}/"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A command taken apart; whether its property exists is another question."""

    verb: Verb | None
    target: Target
    name: str
    # None: there was no `=`.
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
        raise CommandRefused(ILLEGAL, "a command has a ? before the name of a property")
    name, equals, rest = question.partition("=")
    if _NAME.fullmatch(name) is None:
        raise CommandRefused(ILLEGAL, "behind the ? stands the name of a property")
    arguments = tuple(map(_decode, rest.split("&"))) if equals else None
    return Phrase(verb, _target(address), name, arguments)


def _target(address: str) -> Target:
    steps = [step for step in address.removeprefix("/").removesuffix("/").split("/") if step]
    if "//" in address:
        raise CommandRefused(ILLEGAL, "there is nothing between two slashes")
    node = None
    if steps[:1] == ["node"]:
        if len(steps) < 2 or _NODE.fullmatch(steps[1]) is None:
            raise CommandRefused(ILLEGAL, "behind node/ stands the name of a node")
        node = steps[1]
        steps = steps[2:]
    match steps:
        case []:
            return Target(Level.NODE, node)
        case ["client", subject]:
            return Target(Level.CLIENT, node, _subject(subject))
        case ["client", subject, number] | ["client", subject, "session", number]:
            return Target(Level.SESSION, node, _subject(subject), _number(number))
        case [level, *_] if level in _ABSENT:
            raise CommandRefused(ABSENT, f"there are no commands for {level}/ here")
    raise CommandRefused(ILLEGAL, "commands are about client/<subject>/<number>/ or less of it")


def _subject(text: str) -> str:
    subject = _decode(text)
    if "/" in subject:
        raise CommandRefused(ILLEGAL, "a subject has no slash")
    return subject


def _number(text: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        raise CommandRefused(ILLEGAL, "a session has a number other than 0")
    return int(text)


def _decode(text: str) -> str:
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise CommandRefused(ILLEGAL, "what is percent-encoded is not UTF-8") from None
    if not decoded.isprintable():
        raise CommandRefused(ILLEGAL, "there are characters that nobody can see")
    return decoded
