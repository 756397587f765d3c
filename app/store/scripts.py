"""The scripts, a typed function for each: what it is called with, ready for the line."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from app.delivery.dead_letters import DeadLetter
from app.delivery.guard import Held
from app.delivery.keeper import Mark
from app.delivery.messages import Message
from app.delivery.publish_keys import LIFE_NS
from app.delivery.session_record import SessionRecord
from app.store import records
from app.store.keys import Keys
from app.store.script import Script
from app.store.wire import Word

_FOLDER = files("app.store") / "lua"
_ID = "%019d"


def _source(name: str, *preludes: str) -> str:
    """The script behind its first line, which must stay the first, and what it builds upon."""
    first, _, rest = (_FOLDER / f"{name}.lua").read_text().partition("\n")
    parts = [(_FOLDER / f"{prelude}.lua").read_text() for prelude in preludes]
    return "\n".join((first, *parts, rest))


# What a call with a frame calls instead.
WITH_FRAME: dict[Script, Script] = {}


def _journalled(name: str, *preludes: str) -> Script:
    """A script that writes the journal's frame, if its call carries one, in the same step."""
    script = Script(name, _source(name, "fence", "no_journal", *preludes))
    WITH_FRAME[script] = Script(
        f"{name} with a frame", _source(name, "fence", "journal", *preludes)
    )
    return script


OPEN = Script("open", _source("open"))
SAVE = Script("save", _source("save", "fence"))
KEEP = _journalled("keep", "bodies", "enter")
KEEP_KEYED = _journalled("keep_keyed", "bodies", "enter")
DISOWN = Script("disown", _source("disown", "fence"))
MARK = _journalled("mark")
SETTLE = _journalled("settle", "bodies")
BURY = _journalled("bury", "bodies")
FORGET = _journalled("forget", "bodies")
HOLD = Script("hold", _source("hold", "fence"))
LETTERS_REMOVE = Script("letters_remove", _source("letters_remove", "fence"))
REPLAY_TAKE = Script("replay_take", _source("replay_take", "fence", "bodies"))
REPLAY_NOTE = Script("replay_note", _source("replay_note", "fence"))
REPLAY_FORGET = Script("replay_forget", _source("replay_forget", "fence"))

# What a line must know.
SCRIPTS = (
    OPEN,
    SAVE,
    KEEP,
    KEEP_KEYED,
    DISOWN,
    MARK,
    SETTLE,
    BURY,
    FORGET,
    HOLD,
    LETTERS_REMOVE,
    REPLAY_TAKE,
    REPLAY_NOTE,
    REPLAY_FORGET,
    *WITH_FRAME.values(),
)
# Reads only, on whatever connection.
LETTERS_PAGE = Script("letters_page", _source("letters_page"))
# Not for the line either.
CONFIRM = Script("confirm", _source("confirm"))


class Call(NamedTuple):
    """One call of a script."""

    script: Script
    keys: list[str]
    args: list[Word]


class Take(NamedTuple):
    """A dead letter that a replay job wants to make a message again."""

    letter: DeadLetter
    # Whose queue it goes to.
    key: str
    is_durable: bool


class _Positions:
    """Keys of a call, each of them once; arguments name them by their position."""

    def __init__(self, *fixed: str) -> None:
        self.keys = list(fixed)
        self._known: dict[str, int] = {}

    def of(self, key: str) -> int:
        """The position, counted from one as Lua does."""
        found = self._known.get(key)
        if found is None:
            self.keys.append(key)
            found = self._known[key] = len(self.keys)
        return found


def open_store(keys: Keys, *, seed: str, node: str) -> Call:
    """Become the one who may write."""
    return Call(OPEN, [keys.meta], [records.VERSION, seed, node])


def save(keys: Keys, epoch: str, sessions: Iterable[SessionRecord]) -> Call:
    """Create or replace sessions."""
    args: list[Word] = [epoch]
    for record in sessions:
        args += (record.key, records.pack_session(record))
    return Call(SAVE, [keys.meta, keys.sessions], args)


def keep(keys: Keys, epoch: str, messages: Sequence[tuple[Message, Sequence[str]]]) -> Call:
    """Keep messages, each in these sessions' queues."""
    positions = _Positions(keys.meta, keys.bodies, keys.refs)
    args: list[Word] = [epoch, _newest(messages)]
    for message, receivers in messages:
        args += _entering(message, [positions.of(keys.queue(key)) for key in receivers])
    return Call(KEEP, positions.keys, args)


def keep_keyed(
    keys: Keys, epoch: str, messages: Sequence[tuple[Message, Sequence[str]]], most: int
) -> Call:
    """Keep messages that have keys, unless they were kept before; remember so many keys."""
    positions = _Positions(keys.meta, keys.bodies, keys.refs, keys.keyed, keys.keyed_order)
    args: list[Word] = [epoch, _newest(messages), LIFE_NS, most]
    for message, receivers in messages:
        args.append("" if message.key is None else message.key.digest)
        args += _entering(message, [positions.of(keys.queue(key)) for key in receivers])
    return Call(KEEP_KEYED, positions.keys, args)


def disown(keys: Keys, epoch: str, claims: Iterable[tuple[str, int]]) -> Call:
    """Forget keys, if they are these messages'."""
    args: list[Word] = [epoch]
    for key, id in claims:
        args += (key, id)
    return Call(DISOWN, [keys.meta, keys.keyed], args)


def _newest(messages: Sequence[tuple[Message, Sequence[str]]]) -> str:
    return _ID % max(message.id for message, _ in messages)


def _entering(message: Message, queues: Sequence[int]) -> list[Word]:
    """A message on its way into queues."""
    entry = records.pack_generation(message.generation)
    return [message.id, entry, records.pack_message(message), len(queues), *queues]


def mark(keys: Keys, epoch: str, marks: Mapping[str, Mapping[int, Mark]]) -> Call:
    """Remember how far entries have come."""
    queues = [keys.meta]
    args: list[Word] = [epoch]
    for key, entries in marks.items():
        queues.append(keys.queue(key))
        args += (len(queues), len(entries))
        for entry in entries.values():
            args += (entry.id, records.pack_mark(entry))
    return Call(MARK, queues, args)


def settle(keys: Keys, epoch: str, entries: Mapping[str, Sequence[int]]) -> Call:
    """Remove entries."""
    queues = [keys.meta, keys.bodies, keys.refs]
    args: list[Word] = [epoch]
    for key, ids in entries.items():
        queues.append(keys.queue(key))
        args += (len(queues), len(ids), *ids)
    return Call(SETTLE, queues, args)


def bury(keys: Keys, epoch: str, letters: Sequence[tuple[DeadLetter, str | None]]) -> Call:
    """Make entries dead letters; without a key there is no entry to remove."""
    positions = _Positions(keys.meta, keys.bodies, keys.refs, keys.dead, keys.prints)
    args: list[Word] = [epoch, max(letter.id for letter, _ in letters)]
    for letter, key in letters:
        queue = 0 if key is None else positions.of(keys.queue(key))
        args += (letter.id, records.pack_letter(letter), letter.message, queue)
        args.append(letter.fingerprint)
        args += [positions.of(index) for index in keys.indexes(letter)]
    return Call(BURY, positions.keys, args)


def forget(keys: Keys, epoch: str, sessions: Iterable[str]) -> Call:
    """Remove sessions and what is left of their queues."""
    names = list(sessions)
    queues = [keys.queue(key) for key in names]
    return Call(
        FORGET, [keys.meta, keys.bodies, keys.refs, keys.sessions, *queues], [epoch, *names]
    )


def hold(keys: Keys, epoch: str, channels: Mapping[str, Held | None]) -> Call:
    """Hold channels back, or let them flow again."""
    args: list[Word] = [epoch]
    for channel, held in channels.items():
        args += (channel, b"" if held is None else records.pack_held(held))
    return Call(HOLD, [keys.meta, keys.held], args)


def letters_remove(keys: Keys, epoch: str, letters: Iterable[DeadLetter]) -> Call:
    """Remove dead letters for good."""
    positions = _Positions(keys.meta, keys.dead, keys.prints)
    args: list[Word] = [epoch]
    for letter in letters:
        args += (letter.id, letter.fingerprint)
        args += [positions.of(index) for index in keys.indexes(letter)]
    return Call(LETTERS_REMOVE, positions.keys, args)


def replay_take(keys: Keys, epoch: str, job: str, takes: Iterable[Take]) -> Call:
    """Make dead letters messages again, for a job."""
    positions = _Positions(
        keys.meta, keys.bodies, keys.refs, keys.dead, keys.sessions, keys.replay(job)
    )
    args: list[Word] = [epoch, job]
    for letter, key, is_durable in takes:
        args += (letter.id, letter.message, records.pack_generation(letter.generation + 1))
        args += (records.message_head(letter), key)
        args.append(positions.of(keys.queue(key)) if is_durable else 0)
    return Call(REPLAY_TAKE, positions.keys, args)


def replay_note(keys: Keys, epoch: str, job: str, given: Mapping[str, Word]) -> Call:
    """Create a replay job, or replace some of its fields."""
    args: list[Word] = [epoch, job]
    for name, value in given.items():
        args += (name, value)
    return Call(REPLAY_NOTE, [keys.meta, keys.replays, keys.replay(job)], args)


def replay_forget(keys: Keys, epoch: str, job: str) -> Call:
    """Remove a replay job."""
    return Call(REPLAY_FORGET, [keys.meta, keys.replays, keys.replay(job)], [epoch, job])
