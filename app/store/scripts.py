"""The scripts, a typed function for each: what it is called with, ready for the line."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from app.delivery.dead_letters import DeadLetter
from app.delivery.guard import Held
from app.delivery.keeper import Batch, Mark
from app.delivery.messages import Message
from app.delivery.publish_keys import LIFE_NS
from app.delivery.session_record import SessionRecord
from app.store import records
from app.store.keys import LAYOUT, Keys
from app.store.script import Script
from app.store.wire import Word

if TYPE_CHECKING:
    from orjson import Fragment

_FOLDER = files("app.store") / "lua"
_ID = "%019d"


def _source(name: str, *preludes: str) -> str:
    """The script behind its first line, which must stay the first, and what it builds upon."""
    first, _, rest = (_FOLDER / f"{name}.lua").read_text().partition("\n")
    parts = [(_FOLDER / f"{prelude}.lua").read_text() for prelude in preludes]
    return "\n".join((first, *parts, rest))


def _journalled(name: str, *preludes: str) -> Script:
    """A script that leaves its call's note for the journal, if there is one, in the same step."""
    with_note = Script(f"{name} with a note", _source(name, "fence", "note", *preludes))
    return Script(name, _source(name, "fence", "no_note", *preludes), with_note)


OPEN = Script("open", _source("open"))
SAVE = Script("save", _source("save", "fence"))
KEEP = _journalled("keep", "arrays", "enter")
KEEP_KEYED = _journalled("keep_keyed", "arrays", "enter")
DISOWN = Script("disown", _source("disown", "fence"))
HAND_OVER = _journalled("hand_over", "arrays")
MARK = _journalled("mark")
SETTLE = _journalled("settle", "arrays", "bodies")
UNMARK = Script("unmark", _source("unmark", "fence", "arrays"))
BURY = _journalled("bury", "bodies")
FORGET = _journalled("forget")
FRAME = Script("frame", _source("frame", "fence", "arrays"))
TRIM = Script("trim", _source("trim", "fence"))
HOLD = Script("hold", _source("hold", "fence"))
LETTERS_REMOVE = Script("letters_remove", _source("letters_remove", "fence"))
REMARK = Script("remark", _source("remark", "fence"))
REPLAY_TAKE = _journalled("replay_take")
REPLAY_NOTE = Script("replay_note", _source("replay_note", "fence"))
REPLAY_FORGET = Script("replay_forget", _source("replay_forget", "fence"))

# What a line must know.
_CALLED = (
    OPEN,
    SAVE,
    KEEP,
    KEEP_KEYED,
    DISOWN,
    HAND_OVER,
    MARK,
    SETTLE,
    UNMARK,
    BURY,
    FORGET,
    FRAME,
    TRIM,
    HOLD,
    LETTERS_REMOVE,
    REMARK,
    REPLAY_TAKE,
    REPLAY_NOTE,
    REPLAY_FORGET,
)
SCRIPTS = (*_CALLED, *(each.with_note for each in _CALLED if each.with_note is not None))
# Read only, on whatever connection.
LETTERS_COUNT = Script("letters_count", _source("letters_count"))
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
    return Call(OPEN, [keys.meta, keys.handed], [LAYOUT, seed, node])


def save(keys: Keys, epoch: str, sessions: Iterable[SessionRecord]) -> Call:
    """Create or replace sessions."""
    args: list[Word] = [epoch]
    for record in sessions:
        args += (record.key, records.pack_session(record))
    return Call(SAVE, [keys.meta, keys.sessions], args)


def keep(keys: Keys, epoch: str, messages: Sequence[tuple[Message, Sequence[str]]]) -> Call:
    """Keep messages, each for these sessions."""
    positions = _Positions(keys.meta, keys.bodies)
    args: list[Word] = [epoch, _newest(messages)]
    for message, receivers in messages:
        args += _entering(keys, positions, message, receivers)
    return Call(KEEP, positions.keys, args)


def probe(keys: Keys, epoch: str) -> Call:
    """Keep nothing: done if a message would be kept, and refused if it would be refused."""
    return Call(KEEP, [keys.meta, keys.bodies], [epoch, _ID % 0])


def keep_keyed(
    keys: Keys, epoch: str, messages: Sequence[tuple[Message, Sequence[str]]], most: int
) -> Call:
    """Keep messages that have keys, unless they were kept before; remember so many keys."""
    positions = _Positions(keys.meta, keys.bodies, keys.keyed, keys.keyed_order)
    args: list[Word] = [epoch, _newest(messages), LIFE_NS, most]
    for message, receivers in messages:
        entering = _entering(keys, positions, message, receivers)
        args += ("" if message.key is None else message.key.digest, len(entering), *entering)
    return Call(KEEP_KEYED, positions.keys, args)


def disown(keys: Keys, epoch: str, claims: Iterable[tuple[str, int]]) -> Call:
    """Forget keys, if they are these messages'."""
    args: list[Word] = [epoch]
    for key, id in claims:
        args += (key, id)
    return Call(DISOWN, [keys.meta, keys.keyed], args)


def _newest(messages: Sequence[tuple[Message, Sequence[str]]]) -> str:
    return _ID % max(message.id for message, _ in messages)


def _entering(
    keys: Keys, positions: _Positions, message: Message, receivers: Sequence[str]
) -> list[Word]:
    """A message on its way into queues."""
    receivers_at = positions.of(keys.receivers(message.id))
    generation = records.pack_generation(message.generation)
    body = records.pack_message(message)
    words: list[Word] = [message.id, receivers_at, body, generation, len(receivers), *receivers]
    if generation:
        words += [positions.of(keys.marks(key)) for key in receivers]
    return words


def hand_over(keys: Keys, epoch: str, batches: Mapping[str, Batch]) -> Call:
    """Remember the last batches of sessions."""
    args: list[Word] = [epoch]
    pack = records.pack_batch
    for key, batch in batches.items():
        args.append(key)
        args.append(pack(batch))
    return Call(HAND_OVER, [keys.meta, keys.handed], args)


def mark(keys: Keys, epoch: str, marks: Mapping[str, Mapping[int, Mark]]) -> Call:
    """Remember how far single entries have come."""
    positions = _Positions(keys.meta)
    args: list[Word] = [epoch]
    histories: dict[int, bytes] = {}
    for key, entries in marks.items():
        args += (positions.of(keys.marks(key)), key, len(entries))
        for entry in entries.values():
            receivers_at = positions.of(keys.receivers(entry.id))
            args += (entry.id, receivers_at, records.pack_mark(entry, histories))
    return Call(MARK, positions.keys, args)


def settle(keys: Keys, epoch: str, entries: Mapping[int, Sequence[str]]) -> Call:
    """Remove entries: of each message those of some sessions."""
    names = [keys.meta, keys.bodies]
    args: list[Word] = [epoch]
    for id, receivers in entries.items():
        names.append(keys.receivers(id))
        args += (id, len(receivers), *receivers)
    return Call(SETTLE, names, args)


def unmark(keys: Keys, epoch: str, entries: Mapping[str, Collection[int]]) -> Call:
    """Forget how far entries had come that are gone."""
    names = [keys.meta]
    args: list[Word] = [epoch]
    for key, ids in entries.items():
        names.append(keys.marks(key))
        args += (len(ids), *ids)
    return Call(UNMARK, names, args)


def bury(keys: Keys, epoch: str, letters: Sequence[tuple[DeadLetter, str | None]]) -> Call:
    """Make entries dead letters; without a key there is no entry to remove."""
    positions = _Positions(keys.meta, keys.bodies, keys.dead, keys.prints)
    args: list[Word] = [epoch, max(letter.id for letter, _ in letters)]
    parts: dict[int, Fragment] = {}
    for letter, key in letters:
        args += (letter.id, records.pack_letter(letter, parts), letter.fingerprint)
        args += [positions.of(index) for index in keys.indexes(letter)]
        args += (letter.message, key or "")
        if key is None:
            args += (0, 0)
        else:
            args.append(positions.of(keys.receivers(letter.message)))
            args.append(positions.of(keys.marks(key)))
    return Call(BURY, positions.keys, args)


def forget(keys: Keys, epoch: str, sessions: Iterable[str]) -> Call:
    """Remove sessions; what is left of their queues is to be settled behind it."""
    names = list(sessions)
    marks = [keys.marks(key) for key in names]
    return Call(FORGET, [keys.meta, keys.sessions, keys.handed, *marks], [epoch, *names])


def frame(
    keys: Keys,
    epoch: str,
    node: str,
    number: int,
    *,
    frame: bytes,
    notes: Iterable[int],
) -> Call:
    """Write a frame of the journal, which tells of these notes."""
    names = [keys.meta, keys.journal(node), keys.notes(node)]
    return Call(FRAME, names, [epoch, number, frame, *notes])


def trim(keys: Keys, epoch: str, node: str, *, read_ms: int, oldest_ms: int, size: int) -> Call:
    """Cut off the beginning of a journal; frames are as old as their ids say."""
    names = [keys.meta, keys.journal(node), keys.journal_read(node)]
    return Call(TRIM, names, [epoch, f"{read_ms}-0", f"{oldest_ms}-0", size])


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


def remark(keys: Keys, epoch: str, fingerprint: str, record: bytes, *, at: int, most: int) -> Call:
    """Keep what operators say of dead letters that failed alike; nothing: forget it."""
    names = [keys.meta, keys.remarks, keys.remarked]
    return Call(REMARK, names, [epoch, fingerprint, record, at, most])


def replay_take(keys: Keys, epoch: str, job: str, takes: Iterable[Take]) -> Call:
    """Make dead letters messages again, for a job."""
    positions = _Positions(keys.meta, keys.bodies, keys.dead, keys.sessions, keys.replay(job))
    args: list[Word] = [epoch, job]
    for letter, key, is_durable in takes:
        args += (letter.id, letter.message, records.pack_generation(letter.generation + 1))
        args += (_head_or_all(letter, job), key)
        if is_durable:
            args.append(positions.of(keys.receivers(letter.message)))
            args.append(positions.of(keys.marks(key)))
        else:
            args += (0, 0)
    return Call(REPLAY_TAKE, positions.keys, args)


def _head_or_all(letter: DeadLetter, job: str) -> bytes:
    """What the script does not find in the letter's record: all, if the job made a new message."""
    head = records.message_head(letter)
    return head + letter.wire if str(letter.message) == job else head


def replay_note(keys: Keys, epoch: str, job: str, given: Mapping[str, Word]) -> Call:
    """Create a replay job, or replace some of its fields."""
    args: list[Word] = [epoch, job]
    for name, value in given.items():
        args += (name, value)
    return Call(REPLAY_NOTE, [keys.meta, keys.replays, keys.replay(job)], args)


def replay_forget(keys: Keys, epoch: str, job: str) -> Call:
    """Remove a replay job."""
    return Call(REPLAY_FORGET, [keys.meta, keys.replays, keys.replay(job)], [epoch, job])
