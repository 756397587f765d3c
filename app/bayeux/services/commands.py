"""Runs administrative commands, from their text to a result; `properties` lists them all."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, Protocol

from holdfast.bayeux.services.command_scope import CommandScope
from holdfast.bayeux.services.omissions import OMITTED
from holdfast.bayeux.services.properties import (
    MAX_ENTRIES,
    NODE,
    SESSION,
    SUBJECT,
    TOPIC,
    Action,
    Argument,
    Listing,
    Property,
    QueueQuery,
    Reading,
    Setting,
    Subject,
    Value,
    ValueForm,
)
from holdfast.bayeux.sessions.status import find
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.grammar import (
    ABSENT,
    ILLEGAL,
    CommandRefused,
    Level,
    Phrase,
    Target,
    Verb,
    parse,
)
from holdfast.delivery.basics.json_text import to_json

INVALID = "user.admin.invalid"
NOT_ALLOWED = "user.security.authorization.notAuthorized"
OUR_FAULT = "internal.unknown"
_INTERRUPTED = "internal.interrupted"
# The longest wait of a command, also if it asks to wait forever.
LONGEST_WAIT_MS = 60_000

_LEVELS: Mapping[Level, Mapping[str, Property[Any]]] = {
    Level.NODE: NODE,
    Level.SUBJECT: SUBJECT,
    Level.SESSION: SESSION,
    Level.TOPIC: TOPIC,
}
_BOOLEANS = {"true": True, "false": False}
_MAX_DIGITS = 15
_PAGE = "docs/administration.md"
# Names that are suggested for a wrong one.
_MOST_NEAR = 3


class Note(Protocol):
    """Adds an entry to the audit."""

    def __call__(
        self,
        who: str,
        action: str,
        target: str,
        *,
        outcome: str = ...,
        detail: Mapping[str, Any] | None = ...,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Command:
    """A valid command; its target may not exist."""

    target: Target
    name: str
    meaning: Property[Any]
    argument: Argument
    # Whether the value is set; otherwise a setting is read.
    sets: bool

    @property
    def waits(self) -> bool:
        """Whether the command may wait before it answers."""
        return isinstance(self.argument, QueueQuery) and self.argument.waiting_delay_ms > 0

    @property
    def changes(self) -> bool:
        """Whether the command changes anything."""
        if isinstance(self.argument, QueueQuery):
            return self.argument.consumable
        return self.sets or isinstance(self.meaning, Action)


@dataclass(frozen=True, slots=True)
class CommandReply:
    """The reply to a command."""

    # The absolute form, without arguments.
    command: str
    # The value as text; several values are separated by line ends.
    value: str
    # For a set value: OK, and the absolute command with its value.
    state: Literal["OK"] | None = None
    info: str | None = None
    # The entries of a queue, as events.
    entries: list[Json] | None = None


def understand(text: str, value: str | None = None, verb: Verb | None = None) -> Command:
    """Return the command that the text asks for; raises `CommandRefused`.

    The value to set, and the verb, may also be given beside the text.
    """
    phrase = parse(text)
    if verb is not None and phrase.verb not in (None, verb):
        raise CommandRefused(INVALID, f"this request can only {verb.value}")
    if phrase.arguments is not None and value is not None:
        raise CommandRefused(INVALID, "both the command and the request have a value")
    level = phrase.target.level
    found = _LEVELS[level].get(phrase.name)
    if found is None:
        raise _unknown(level, phrase.name)
    arguments = phrase.arguments if value is None else tuple(value.split("&"))
    sets = _sets(phrase, found, verb or phrase.verb, has_value=arguments is not None)
    argument: Argument = None
    # As in xmlBlaster, arguments of a command that only reads are ignored.
    if sets or isinstance(found, Action | Listing):
        argument = _argument(found, arguments or ())
    return Command(phrase.target, phrase.name, found, argument, sets)


def _unknown(level: Level, name: str) -> CommandRefused:
    if name in OMITTED[level]:
        return CommandRefused(
            ABSENT,
            f"this server does not have the {level.value} property {name}: {_PAGE} says why",
        )
    near = get_close_matches(name, _LEVELS[level], _MOST_NEAR)
    advice = f"did you mean {' or '.join(near)}?" if near else f"{_PAGE} lists all"
    return CommandRefused(ILLEGAL, f"a {level.value} has no property {name}: {advice}")


def _sets(phrase: Phrase, found: Property[Any], verb: Verb | None, *, has_value: bool) -> bool:
    if isinstance(found, Setting):
        return verb is Verb.SET or (verb is None and has_value)
    if isinstance(found, Reading) and verb is Verb.SET:
        raise CommandRefused(INVALID, f"{phrase.name} cannot be set")
    return False


def _argument(found: Property[Any], arguments: tuple[str, ...]) -> Argument:
    takes = ValueForm.NOTHING if isinstance(found, Reading) else found.takes
    match takes, arguments:
        case ValueForm.NOTHING, ():
            return None
        case ValueForm.BOOLEAN, (text,) if text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        case ValueForm.COUNT, (text,):
            count = _number(text)
            return QueueQuery(min(count, MAX_ENTRIES)) if isinstance(found, Listing) else count
        case ValueForm.CHANNEL, (text,) if text:
            return text
        case ValueForm.QUERY, _:
            return _query(arguments)
        case _:
            raise CommandRefused(ILLEGAL, f"the value after the = must be {takes.value}")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > _MAX_DIGITS:
        raise CommandRefused(ILLEGAL, f"the value after the = must be {ValueForm.COUNT.value}")
    return int(text)


def _query(arguments: tuple[str, ...]) -> QueueQuery:
    given: dict[str, str] = {}
    for argument in filter(None, arguments):
        name, _, text = argument.partition("=")
        if name in given or name not in ("maxEntries", "maxSize", "consumable", "waitingDelay"):
            raise CommandRefused(ILLEGAL, f"the value after the = must be {ValueForm.QUERY.value}")
        given[name] = text
    if given.get("maxSize", "-1") != "-1":
        raise CommandRefused(ILLEGAL, "maxSize must be -1")
    consumable = given.get("consumable", "false").lower()
    if consumable not in _BOOLEANS:
        raise CommandRefused(ILLEGAL, "consumable must be true or false")
    return QueueQuery(
        max_entries=min(_number(given.get("maxEntries", "1")), MAX_ENTRIES),
        consumable=_BOOLEANS[consumable],
        waiting_delay_ms=_delay(given.get("waitingDelay", "0")),
    )


def _delay(text: str) -> int:
    """Parse a delay; a negative one means forever."""
    if text.startswith("-") and _number(text[1:]):
        return LONGEST_WAIT_MS
    return min(_number(text), LONGEST_WAIT_MS)


@contextmanager
def audited(
    note: Note, who: str, action: str, target: str, detail: Mapping[str, Any]
) -> Iterator[None]:
    """Write the change that the block makes to the audit, whatever its outcome."""
    outcome = _INTERRUPTED
    try:
        yield
        outcome = "ok"
    except CommandRefused as refused:
        outcome = refused.code
        raise
    except Exception:
        outcome = OUR_FAULT
        raise
    finally:
        note(who, action, target, outcome=outcome, detail=detail)


def carry_out(
    scope: CommandScope, note: Note, command: Command, who: str, *, is_allowed: bool = True
) -> CommandReply:
    """Run a command; one that changes something is written to the audit, whatever its outcome.

    A caller that may not change anything can still read.
    """
    if not command.changes:
        return run(command, scope, who)
    target = f"{command.target.absolute(scope.node)}?{command.name}"
    with audited(note, who, "command", target, {"argument": command.argument}):
        if not is_allowed:
            raise CommandRefused(NOT_ALLOWED, "this requires the role of an operator")
        return run(command, scope, who)


def run(command: Command, scope: CommandScope, who: str) -> CommandReply:
    """Run a command; raises `CommandRefused` before any change."""
    if command.target.node not in (None, scope.node):
        raise CommandRefused(ILLEGAL, f"this node is named {scope.node}")
    seen, argument = _find(command, scope), command.argument
    name = f"{command.target.absolute(scope.node)}?{command.name}"
    match command.meaning:
        case Setting(set=put) if command.sets:
            put(scope, seen, argument, who)
            value = str(argument).lower()
            return CommandReply(name, value, "OK", f"{name}={value}")
        case Reading(read=read) | Setting(read=read):
            return CommandReply(name, _text(read(scope, seen)))
        case Action(do=do):
            return CommandReply(name, _text(do(scope, seen, argument, who)))
        case Listing(list=entries):
            assert isinstance(argument, QueueQuery)  # noqa: S101 - `understand` has seen to it
            found = list(entries(scope, seen, argument))
            lines = "\n".join(to_json(event).decode() for event in found)
            return CommandReply(name, lines, entries=found)


def _text(value: Value) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str() | int():
            return str(value)
        case _:
            return "\n".join(value)


def _find(command: Command, scope: CommandScope) -> Any:  # noqa: ANN401 - what the level is about
    target, meaning = command.target, command.meaning
    match target.level:
        case Level.NODE:
            return None
        case Level.SUBJECT:
            name, is_of_anybody = (
                target.subject,
                isinstance(meaning, Reading) and meaning.is_of_anybody,
            )
            sessions = [each for each in scope.state.sessions if each.subject == name]
            if sessions or is_of_anybody or scope.state.subjects.queue(name) is not None:
                return Subject(name, sessions)
        case Level.SESSION:
            if (session := find(scope.state.sessions, target.key)) is not None:
                return session
        case Level.TOPIC:
            if (topic := scope.state.topics.get(target.channel)) is not None:
                return topic
    raise CommandRefused(ILLEGAL, f"no {target.level.value} has this name")
