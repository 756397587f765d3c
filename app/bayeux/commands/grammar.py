"""xmlBlaster's administrative grammar: `[/node/<id>/]client/<subject>/<n>/?<name>[=<value>]`.

A topic is `topic/` and its channel, such as `topic/orders/7/?stateStr`. The address may be preceded
by `get` or `set`, and by `__cmd:`; `session/` before the number is optional. Names may be
percent-encoded.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from holdfast.bayeux.commands.rest_calls import Level, rest_call
from holdfast.bayeux.wire.command_refused import ILLEGAL, CommandRefused
from holdfast.delivery.queues.receivers import WEBHOOK_NAME, WEBHOOKS

_MAX_LENGTH = 4096
_FORM = re.compile(
    r"(?:(?P<verb>get|set)\s+)?(?:__cmd:)?/?(?:node/(?P<node>[a-z0-9-]{1,32})(?=[/?])/?)?"
    rf"(?:client/(?P<subject>{WEBHOOKS}(?!session/){WEBHOOK_NAME.pattern}|[^/?]+)"
    r"(?:/(?:session/)?(?P<number>-?[1-9][0-9]{0,19}))?"
    r"|topic/(?P<channel>[^/?]+(?:/[^/?]+)*))?/?"
    r"\?(?P<name>[A-Za-z][A-Za-z0-9]{0,63})(?:=(?P<value>.*))?"
)
_USAGE = (
    "a command is client/<subject>/<number>/?<name>[=<value>], client/<subject>/?<name> or "
    "topic/<channel>/?<name>"
)
_BOOLEANS = {"true": True, "false": False}

COMMANDS: Mapping[Level, Sequence[str]] = {
    Level.NODE: (),
    Level.SUBJECT: ("killClient", "sessions", "subjectQueueNumMsgs"),
    Level.SESSION: ("cbQueueNumMsgs", "connectionState", "dispatcherActive", "killSession"),
    Level.TOPIC: ("stateStr",),
}
# Commands that change something, and the one that reads or sets a value. All others only read.
ACTIONS = frozenset(["killClient", "killSession"])
FLAG = "dispatcherActive"


@dataclass(frozen=True, slots=True)
class Command:
    """A valid command; its target may not exist."""

    level: Level
    # Such as joe, joe/1 or /orders/7.
    target: str
    name: str
    # What to set.
    value: bool | None = None
    # None means this one.
    node: str | None = None

    @property
    def changes(self) -> bool:
        """Whether the command changes anything."""
        return self.value is not None or self.name in ACTIONS

    def absolute(self, node: str) -> str:
        """Return the complete form, without the value."""
        place = "topic" if self.level is Level.TOPIC else "client/"
        return f"/node/{node}/{place}{self.target}/?{self.name}"


def understand(text: str, value: str | None = None) -> Command:
    """Return the command in the text. The value may also be given separately.

    Raises `CommandRefused`.
    """
    found = _FORM.fullmatch(text.strip()) if len(text) <= _MAX_LENGTH else None
    if found is None:
        raise CommandRefused(ILLEGAL, _USAGE)
    if value is not None and found["value"] is not None:
        raise CommandRefused(ILLEGAL, "both the command and the request have a value")
    (level, target), name = _target(found), found["name"]
    if name not in COMMANDS[level]:
        known, call = ", ".join(COMMANDS[level]) or "none", rest_call(level, target, name)
        why = f"{name} is not among the commands for a {level.value} ({known}): use {call} of REST"
        raise CommandRefused(ILLEGAL, why)
    value = found["value"] if value is None else value
    return Command(level, target, name, _value(name, found["verb"], value), found["node"])


def _target(found: re.Match[str]) -> tuple[Level, str]:
    level, target = Level.NODE, ""
    if found["channel"] is not None:
        level, target = Level.TOPIC, f"/{found['channel']}"
    elif found["number"] is not None:
        level, target = Level.SESSION, f"{found['subject']}/{found['number']}"
    elif found["subject"] is not None:
        level, target = Level.SUBJECT, found["subject"]
    target = unquote(target)
    if not target.isprintable():
        raise CommandRefused(ILLEGAL, "the command has unprintable characters")
    return level, target


def _value(name: str, verb: str | None, value: str | None) -> bool | None:
    """Return the value to set, if there is one."""
    if (value and name in ACTIONS) or (verb == "set" and name not in (FLAG, *ACTIONS)):
        raise CommandRefused(ILLEGAL, f"{name} takes no value")
    # As in xmlBlaster, the value of a command that only reads is ignored.
    if name != FLAG or verb == "get" or (verb is None and value is None):
        return None
    sets = _BOOLEANS.get((value or "").lower())
    if sets is None:
        raise CommandRefused(ILLEGAL, f"the value of {name} must be true or false")
    return sets
