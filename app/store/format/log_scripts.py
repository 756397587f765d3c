"""The scripts that write the log of a shard and take what others wrote, with their calls."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import NEWEST, WrittenForm
from holdfast.store.format.records import words_entering, words_handing_over
from holdfast.store.format.scripts import ScriptCall, source_of
from holdfast.store.links.resp import Word
from holdfast.store.links.script import Positions, Script

# The name of the part of a frame that all shards read. A part for one shard has its number.
FOR_ALL: Final = "all"
NO_CALLS: Final[Mapping[str, bytes]] = {}
# What a server with other shards loads besides `scripts.SCRIPTS`.
LOG_SCRIPTS: list[Script] = []


def _script(name: str, source: str, with_note: Script | None = None) -> Script:
    script = Script(name, source, with_note)
    LOG_SCRIPTS.append(script)
    return script


def _with_frame(script: Script) -> Script:
    """Return the script for calls that also append a frame, in the same step."""
    name, preludes = script.name, script.preludes
    with_note = _script(
        f"{name} with a frame and a note", source_of(name, "fence", "note", "log", *preludes)
    )
    source = source_of(name, "fence", "no_note", "log", *preludes)
    return _script(f"{name} with a frame", source, with_note)


_WITH_FRAME: Final = {
    each: _with_frame(each) for each in (scripts.KEEP, scripts.KEEP_KEYED, scripts.MOVE)
}
APPEND = _script("append", source_of("append", "fence", "no_note", "log", "noted", "once"))
APPEND_FACTS = _script(
    "append_facts", source_of("append_facts", "fence", "no_note", "log", "noted")
)
RESTORE_FRAME = _script("restore_frame", source_of("restore_frame", "fence", "noted", "once"))
TRIM_LOG = _script("trim_log", source_of("trim_log", "fence", "noted", "once", "arrays"))
_TAKING: Final = ("noted_with_id", "once", "arrays", "bodies", "enter", "hand_over")
TAKE = _script(
    "take",
    source_of("take", "fence", "no_note", *_TAKING),
    _script("take with a note", source_of("take", "fence", "note", *_TAKING)),
)
# Moves places on without messages, which a store without memory accepts, too.
FOLLOW = _script("follow", TAKE.source.replace("#!lua\n", "#!lua flags=allow-oom\n", 1))


class Parts(NamedTuple):
    """A frame for the store: its parts by the shard that reads them, or `FOR_ALL`."""

    # How many entries and facts it has.
    entries: int
    parts: Mapping[str, bytes]
    # The calls of others that it answers, by their names in the inbox.
    answered: Sequence[str] = ()
    # The shards that have receivers of its durable messages, which is not in the log; and the
    # channels of its messages, if it was made for these.
    needed_by: frozenset[int] = frozenset()
    channels: frozenset[str] = frozenset()


class LoggedFrame(NamedTuple):
    """A frame that the log has, or had before the store went back."""

    # The places before and behind it, as text.
    before: str
    place: str
    parts: Mapping[str, bytes]


class Step(NamedTuple):
    """How far a call moves the place in the log of another shard."""

    shard: int
    # The place so far, empty at the beginning, and the place behind what is taken.
    before: str
    behind: str
    # The incarnations that were passed before; empty if they are the same as so far.
    passed: str = ""


def with_frame(keys: RedisKeys, call: ScriptCall, frame: Parts) -> ScriptCall:
    """Return the call that also appends the frame to the log.

    A call that stores messages with publish keys must have a single one: a repeat appends nothing.
    """
    script, names, args = call
    # Appending in place is safe, because this call owns the lists.
    names += (keys.log, keys.inbox)
    args += _words_of(frame)
    return ScriptCall(_WITH_FRAME[script], names, args)


def append(keys: RedisKeys, frame: Parts) -> ScriptCall:
    """Append a frame without durable messages. A store without memory refuses it."""
    return ScriptCall(APPEND, [keys.meta, keys.log, keys.inbox], _words_of(frame))


def append_facts(keys: RedisKeys, facts: Mapping[str, str], frame: Parts) -> ScriptCall:
    """Append a frame of facts, answers or places, and store the facts.

    The reply is the place behind it, or a later one.
    """
    args: list[Word] = []
    for fact in facts.items():
        args += fact
    args += _words_of(frame)
    return ScriptCall(APPEND_FACTS, [keys.meta, keys.facts, keys.log, keys.inbox], args)


def restore_frame(keys: RedisKeys, frame: LoggedFrame) -> ScriptCall:
    """Append a frame again as it was, unless the log has it, or later ones."""
    args: list[Word] = [frame.before, frame.place]
    for part in frame.parts.items():
        args += part
    return ScriptCall(RESTORE_FRAME, [keys.meta, keys.log], args)


def trim_log(
    keys: RedisKeys, first: str, removed: Sequence[str], links: Mapping[str, str]
) -> ScriptCall:
    """Remove frames before the first one that stays, and further ones; set or remove links."""
    args: list[Word] = [first, len(removed), *removed]
    for link in links.items():
        args += link
    return ScriptCall(TRIM_LOG, [keys.meta, keys.log, keys.links], args)


def take(
    keys: RedisKeys,
    steps: Sequence[Step],
    messages: Sequence[tuple[Message, Sequence[str]]],
    form: WrittenForm = NEWEST,
    *,
    others_calls: Mapping[str, bytes] = NO_CALLS,
    hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    incarnation: str = "",
    newest: int = 0,
) -> ScriptCall:
    """Store messages of other shards, each for these sessions, and move places in their logs on.

    Calls of others enter the inbox, by name. Hand-overs replace the last batches of sessions,
    unless the script is called again in another incarnation than the one with this random text.

    `newest` is an id of this shard: ids of other shards say nothing about the next one here.
    """
    positions = Positions(keys.meta, keys.bodies)
    args: list[Word] = [f"{newest:019d}", len(steps)]
    for step in steps:
        args += step
    args.append(len(others_calls))
    if others_calls:
        args.append(positions.of(keys.inbox))
        for each in others_calls.items():
            args += each
    args += words_handing_over(keys, positions, hand_overs, incarnation)
    for message, receivers in messages:
        args += words_entering(keys, positions, message, receivers, form)
    return ScriptCall(TAKE if messages or others_calls else FOLLOW, positions.keys, args)


def _words_of(frame: Parts) -> list[Word]:
    words: list[Word] = [frame.entries]
    for part in frame.parts.items():
        words += part
    words += (*frame.answered, 2 * len(frame.parts), len(frame.answered))
    return words
