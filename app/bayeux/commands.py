"""Administrative commands: from a text to what is meant, and from there to a result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, assert_never

from app.bayeux.codec import Json
from app.bayeux.grammar import (
    ABSENT,
    ILLEGAL,
    CommandRefused,
    Level,
    Phrase,
    Target,
    Verb,
    parse,
)
from app.bayeux.omissions import OMITTED
from app.bayeux.properties import (
    CLIENT,
    MAX_ENTRIES,
    NODE,
    SESSION,
    Argument,
    Listing,
    Operation,
    Property,
    QueueQuery,
    Reading,
    Setting,
    Takes,
    Value,
)
from app.bayeux.views import ClientView, NodeView, SessionView
from app.delivery.json_text import to_json

INVALID = "user.admin.invalid"
SWITCHED_OFF = "resource.admin.unavailable"
# Who wants to wait for ever waits so long.
LONGEST_WAIT_MS = 60_000

_LEVELS: Mapping[Level, Mapping[str, Property[Any]]] = {
    Level.NODE: NODE,
    Level.CLIENT: CLIENT,
    Level.SESSION: SESSION,
}
_BOOLEANS = {"true": True, "false": False}
_MAX_DIGITS = 15


class Registry(Protocol):
    """Everything that commands are about."""

    node_id: str
    now_ms: int
    # False: the operator has switched commands off.
    is_available: bool

    def node(self) -> NodeView: ...
    def client(self, subject: str) -> ClientView | None: ...
    def session(self, key: str) -> SessionView | None: ...


@dataclass(frozen=True, slots=True)
class Command:
    """A command that makes sense; whether its target exists is another question."""

    target: Target
    name: str
    meaning: Property[Any]
    argument: Argument
    # The value is set; otherwise a setting is read.
    sets: bool

    @property
    def waits(self) -> bool:
        """Whether it may take its time."""
        return isinstance(self.argument, QueueQuery) and self.argument.waiting_delay_ms > 0

    @property
    def changes(self) -> bool:
        """Whether anything is different afterwards."""
        if isinstance(self.argument, QueueQuery):
            return self.argument.consumable
        return self.sets or isinstance(self.meaning, Operation)


@dataclass(frozen=True, slots=True)
class Result:
    """What a command gave."""

    # The absolute form, without arguments.
    command: str
    # As text; several values are separated by line ends.
    value: str
    # For what was set: OK, and the absolute command with its value.
    state: Literal["OK"] | None = None
    info: str | None = None
    # The entries of a queue, as events.
    entries: list[Json] | None = None


def understand(text: str, value: str | None = None, verb: Verb | None = None) -> Command:
    """What the text asks for; raises `CommandRefused`.

    A value to set may come beside the text, and so may the verb, where something else tells it.
    """
    phrase = parse(text)
    if verb is not None and phrase.verb not in (None, verb):
        raise CommandRefused(INVALID, f"this is the place to {verb.value} only")
    if phrase.arguments is not None and value is not None:
        raise CommandRefused(INVALID, "there are two values")
    level = phrase.target.level
    found = _LEVELS[level].get(phrase.name)
    if found is None:
        raise _unknown(level, phrase.name)
    arguments = phrase.arguments if value is None else tuple(value.split("&"))
    sets = _sets(phrase, found, verb or phrase.verb, has_value=arguments is not None)
    argument: Argument = None
    # Whoever reads a value may say anything behind it, as in xmlBlaster.
    if sets or isinstance(found, Operation | Listing):
        argument = _argument(found, arguments or ())
    return Command(phrase.target, phrase.name, found, argument, sets)


def _unknown(level: Level, name: str) -> CommandRefused:
    if name in OMITTED[level]:
        return CommandRefused(ABSENT, f"this server has no {name} of a {level.value}")
    return CommandRefused(ILLEGAL, f"there is no property {name} of a {level.value}")


def _sets(phrase: Phrase, found: Property[Any], verb: Verb | None, *, has_value: bool) -> bool:
    if isinstance(found, Setting):
        return verb is Verb.SET or (verb is None and has_value)
    if isinstance(found, Reading) and verb is Verb.SET:
        raise CommandRefused(INVALID, f"{phrase.name} cannot be set")
    return False


def _argument(found: Property[Any], arguments: tuple[str, ...]) -> Argument:
    takes = Takes.NOTHING if isinstance(found, Reading) else found.takes
    match takes, arguments:
        case Takes.NOTHING, ():
            return None
        case Takes.BOOLEAN, (text,) if text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        case Takes.COUNT, (text,):
            count = _number(text)
            return QueueQuery(min(count, MAX_ENTRIES)) if isinstance(found, Listing) else count
        case Takes.CHANNEL, (text,) if text:
            return text
        case Takes.QUERY, _:
            return _query(arguments)
        case _:
            raise CommandRefused(ILLEGAL, f"behind the = stands {takes.value}")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > _MAX_DIGITS:
        raise CommandRefused(ILLEGAL, f"behind the = stands {Takes.COUNT.value}")
    return int(text)


def _query(arguments: tuple[str, ...]) -> QueueQuery:
    given: dict[str, str] = {}
    for argument in filter(None, arguments):
        name, _, text = argument.partition("=")
        if name in given or name not in ("maxEntries", "maxSize", "consumable", "waitingDelay"):
            raise CommandRefused(ILLEGAL, f"behind the = stand {Takes.QUERY.value}")
        given[name] = text
    if given.get("maxSize", "-1") != "-1":
        raise CommandRefused(ILLEGAL, "maxSize can be -1 only")
    consumable = given.get("consumable", "false").lower()
    if consumable not in _BOOLEANS:
        raise CommandRefused(ILLEGAL, "consumable is true or false")
    return QueueQuery(
        max_entries=min(_number(given.get("maxEntries", "1")), MAX_ENTRIES),
        consumable=_BOOLEANS[consumable],
        waiting_delay_ms=_delay(given.get("waitingDelay", "0")),
    )


def _delay(text: str) -> int:
    """Whatever is negative means for ever."""
    if text.startswith("-") and _number(text[1:]):
        return LONGEST_WAIT_MS
    return min(_number(text), LONGEST_WAIT_MS)


def run(command: Command, registry: Registry, who: str) -> Result:
    """Carry the command out; raises `CommandRefused`, and nothing has changed then."""
    if not registry.is_available:
        raise CommandRefused(SWITCHED_OFF, "commands are switched off")
    if command.target.node not in (None, registry.node_id):
        raise CommandRefused(ILLEGAL, f"this is node {registry.node_id}")
    seen, argument = _find(command.target, registry), command.argument
    name = f"{command.target.absolute(registry.node_id)}?{command.name}"
    match command.meaning:
        case Setting(set=put) if command.sets:
            put(seen, argument, who)
            value = str(argument).lower()
            return Result(name, value, "OK", f"{name}={value}")
        case Reading(read=read) | Setting(read=read):
            return Result(name, _told(read(seen, registry.now_ms)))
        case Operation(do=do):
            return Result(name, _told(do(seen, argument, who)))
        case Listing(list=entries):
            assert isinstance(argument, QueueQuery)  # noqa: S101 - `understand` has seen to it
            found = list(entries(seen, argument, who))
            lines = "\n".join(to_json(event).decode() for event in found)
            return Result(name, lines, entries=found)


def _told(value: Value) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str() | int():
            return str(value)
        case _:
            return "\n".join(value)


def _find(target: Target, registry: Registry) -> NodeView | ClientView | SessionView:
    seen: NodeView | ClientView | SessionView | None
    match target.level:
        case Level.NODE:
            seen = registry.node()
        case Level.CLIENT:
            seen = registry.client(target.subject)
        case Level.SESSION:
            seen = registry.session(target.key)
        case _:
            assert_never(target.level)
    if seen is None:
        raise CommandRefused(ILLEGAL, f"there is no {target.level.value} of this name")
    return seen
