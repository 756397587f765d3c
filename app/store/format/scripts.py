"""The Lua scripts, and a typed function for each that creates its calls."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark, Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move
from holdfast.delivery.messages.publish_key import KEY_LIFE_S, publish_key_of
from holdfast.delivery.messages.session_record import SessionRecord
from holdfast.delivery.messages.storing import NO_FIELDS, RequestFields
from holdfast.delivery.topics.configured import TopicRecord
from holdfast.store.format import letter_records, records
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import NEWEST, WrittenForm
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.format.records import words_entering, words_handing_over
from holdfast.store.links.resp import Word
from holdfast.store.links.script import Positions, Script

_FOLDER = files("holdfast.store") / "lua"
_ID = "%019d"


def source_of(name: str, *preludes: str) -> str:
    """Return the script: its first line, then the files that it depends on, then the rest."""
    first, _, rest = (_FOLDER / f"{name}.lua").read_text().partition("\n")
    parts = [(_FOLDER / f"{prelude}.lua").read_text() for prelude in preludes]
    return "\n".join((first, *parts, rest))


# The scripts that the store link loads.
SCRIPTS: list[Script] = []


def _script(name: str, *preludes: str) -> Script:
    script = Script(name, source_of(name, *preludes))
    SCRIPTS.append(script)
    return script


def _journalled(name: str, *preludes: str) -> Script:
    """Return a script that also stores its call's journal note, if there is one."""
    with_note = Script(f"{name} with a note", source_of(name, "fence", "note", *preludes))
    SCRIPTS.append(with_note)
    script = Script(name, source_of(name, "fence", "no_note", *preludes), with_note, preludes)
    SCRIPTS.append(script)
    return script


# For calls that are carried out once, and have nothing to tell a second time.
_ONCE = ("fence", "noted", "once")
OPEN = _script("open")
FINISH = _script("finish", *_ONCE)
RELEASE = _script("release", *_ONCE)

SAVE = _script("save", *_ONCE)
KEEP = _journalled(
    "keep", "noted_with_id", "once", "arrays", "bodies", "enter", "fields", "hand_over"
)
KEEP_KEYED = _journalled(
    "keep_keyed", "noted_with_id", "arrays", "bodies", "enter", "clock", "fields"
)
ADVANCE_CLOCK = _script("advance_clock", *_ONCE, "clock")
MOVE = _journalled("move", "noted", "once", "arrays", "bodies")
MARK_BATCHES = _journalled("mark_batches", "noted", "once", "arrays")
MARK = _journalled("mark", "noted", "once", "bodies")
SETTLE = _journalled("settle", "noted", "once", "arrays", "bodies")
UNMARK = _script("unmark", *_ONCE, "arrays")
DEAD_LETTER = _journalled("dead_letter", "noted_with_id", "once", "bodies")
FORGET = _journalled("forget", "noted", "once")
FRAME = _script("frame", *_ONCE, "arrays")
TRIM = _script("trim", "fence", "noted")
PUT = _script("put", *_ONCE)
LETTERS_REMOVE = _script("letters_remove", *_ONCE)
REMARK = _script("remark", *_ONCE)
AUDIT = _script("audit", *_ONCE)
REPLAY_TAKE = _journalled("replay_take", "noted", "bodies")
REPLAY_NOTE = _script("replay_note", *_ONCE)
REPLAY_FORGET = _script("replay_forget", *_ONCE)

# Read-only, for any connection.
LETTERS_COUNT = Script("letters_count", source_of("letters_count"))
LETTERS_PAGE = Script("letters_page", source_of("letters_page"))
# Not for the store link.
CONFIRM = Script("confirm", source_of("confirm"))
RAISE = Script("raise", source_of("raise"))
COUNT = Script("count", source_of("count"))
OFFER = Script("offer", source_of("offer"))
AS_OWNER = Script("as_owner", source_of("as_owner"))


class ScriptCall(NamedTuple):
    """A call without its number, which `UnansweredCalls` puts before the arguments."""

    script: Script
    keys: list[str]
    args: list[Word]


class Take(NamedTuple):
    """A dead letter that a replay job turns into a message again."""

    letter: DeadLetter
    # The session whose queue gets it.
    receiver: str
    is_durable: bool


def save(
    keys: RedisKeys, sessions: Iterable[SessionRecord], form: WrittenForm = NEWEST
) -> ScriptCall:
    """Create or replace sessions."""
    args: list[Word] = []
    for record in sessions:
        args += (record.key, records.pack_session(record, form))
    return ScriptCall(SAVE, [keys.meta, keys.sessions], args)


def keep(
    keys: RedisKeys,
    messages: Sequence[tuple[Message, Sequence[str]]],
    fields: RequestFields = NO_FIELDS,
    form: WrittenForm = NEWEST,
    hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    incarnation: str = "",
) -> ScriptCall:
    """Store messages, each for these sessions, and change these fields of requests.

    Hand-overs replace the last batches of sessions, unless the script is called again in another
    incarnation than the one with this random text.
    """
    positions = Positions(keys.meta, keys.bodies, keys.requests)
    args: list[Word] = [_newest(messages), 2 * len(fields), *_changing(fields.items(), form)]
    args += words_handing_over(keys, positions, hand_overs, incarnation)
    for message, receivers in messages:
        args += words_entering(keys, positions, message, receivers, form)
    return ScriptCall(KEEP, positions.keys, args)


def keep_keyed(
    keys: RedisKeys,
    messages: Sequence[tuple[Message, Sequence[str]]],
    limits: KeyLimits,
    fields: Sequence[RequestFields] = (),
) -> ScriptCall:
    """Store messages with publish keys, unless they are repeats. Limits the number of keys.

    `fields` has the fields of requests that change with each message, if there are any.
    """
    positions = _keyed_positions(keys)
    args: list[Word] = [_newest(messages), *_key_limits(limits)]
    none = [NO_FIELDS] * len(messages)
    for (message, receivers), changed in zip(messages, fields or none, strict=True):
        entering = words_entering(keys, positions, message, receivers, limits.form)
        key = publish_key_of(message)
        args += ("" if key is None else key.digest, len(entering), 2 * len(changed))
        args += (*_changing(changed.items(), limits.form), *entering)
    return ScriptCall(KEEP_KEYED, positions.keys, args)


def remember_keys(
    keys: RedisKeys, keyed: Sequence[tuple[str, int]], limits: KeyLimits
) -> ScriptCall:
    """Store publish keys with the ids of their messages, which are in no queue any more."""
    positions = _keyed_positions(keys)
    args: list[Word] = [_ID % max(id for _, id in keyed), *_key_limits(limits)]
    for key, id in keyed:
        entering: list[Word] = [id, positions.of(keys.receivers(id)), b"", b"", 0]
        args += (key, len(entering), 0, *entering)
    return ScriptCall(KEEP_KEYED, positions.keys, args)


def _keyed_positions(keys: RedisKeys) -> Positions:
    return Positions(
        *(keys.meta, keys.bodies, keys.keyed, keys.keyed_order, keys.keyed_times, keys.requests)
    )


def _changing(fields: Iterable[tuple[str, bytes]], form: WrittenForm) -> list[Word]:
    args: list[Word] = []
    for name, value in fields:
        args += (name, records.with_sum(name, value, form) if value else b"")
    return args


def _key_limits(limits: KeyLimits) -> tuple[Word, ...]:
    return (limits.clock, KEY_LIFE_S, limits.most, "" if limits.form.has_key_times else "apart")


def advance_clock(keys: RedisKeys, clock: int, *, given: int) -> ScriptCall:
    """Advance the store's clock. Succeeds if a message would be stored.

    `given` is above the ids of all messages, also of those that are not stored.
    """
    return ScriptCall(ADVANCE_CLOCK, [keys.meta], [clock, _ID % given])


def _newest(messages: Sequence[tuple[Message, Sequence[str]]]) -> str:
    return _ID % max(message.id for message, _ in messages)


def move(keys: RedisKeys, moves: Sequence[Move]) -> ScriptCall:
    """Move messages between queues, with the attempts that they bring."""
    positions = Positions(keys.meta, keys.bodies, keys.handed)
    args: list[Word] = []
    trails: dict[int, bytes] = {}
    for each in moves:
        if each.stays:
            continue
        id = each.message.id
        args += (id, positions.of(keys.receivers(id)))
        args += (each.source, positions.of(keys.marks(each.source)))
        entry = records.pack_waiting(each.message, trails)
        marked = each.targets[: each.remembering] if entry else ()
        args += (entry, len(each.targets), each.copies, len(marked))
        is_alone = len(each.targets) == 1
        args += (records.name_with_sum(id, each.targets[0]) if is_alone else b"", *each.targets)
        args += [positions.of(keys.marks(receiver)) for receiver in marked]
    return ScriptCall(MOVE, positions.keys, args)


def mark_batches(keys: RedisKeys, batches: Mapping[str, BatchMark]) -> ScriptCall:
    """Replace the last batches of sessions."""
    args: list[Word] = []
    pack = records.pack_batch
    for receiver, batch in batches.items():
        args.append(receiver)
        args.append(pack(batch))
    return ScriptCall(MARK_BATCHES, [keys.meta, keys.handed], args)


def forget_batches(keys: RedisKeys, receivers: Iterable[str]) -> ScriptCall:
    """Remove the last batches of sessions."""
    args: list[Word] = []
    for receiver in receivers:
        args += (receiver, b"")
    return ScriptCall(PUT, [keys.meta, keys.handed], args)


def mark(keys: RedisKeys, marks: Mapping[str, Mapping[int, Mark]]) -> ScriptCall:
    """Replace marks of entries."""
    positions = Positions(keys.meta, keys.bodies)
    args: list[Word] = []
    trails: dict[int, bytes] = {}
    for receiver, entries in marks.items():
        args += (positions.of(keys.marks(receiver)), receiver, len(entries))
        for entry in entries.values():
            receivers_at = positions.of(keys.receivers(entry.id))
            args += (entry.id, receivers_at, records.pack_mark(entry, trails))
    return ScriptCall(MARK, positions.keys, args)


def settle(keys: RedisKeys, entries: Mapping[int, Sequence[str]]) -> ScriptCall:
    """Remove entries: each message from the queues of these sessions."""
    names = [keys.meta, keys.bodies]
    args: list[Word] = []
    for id, receivers in entries.items():
        names.append(keys.receivers(id))
        args += (id, len(receivers), *receivers)
    return ScriptCall(SETTLE, names, args)


def unmark(keys: RedisKeys, entries: Mapping[str, Collection[int]]) -> ScriptCall:
    """Remove marks of entries that are gone."""
    names = [keys.meta]
    args: list[Word] = []
    for receiver, ids in entries.items():
        names.append(keys.marks(receiver))
        args += (len(ids), *ids)
    return ScriptCall(UNMARK, names, args)


def dead_letter(
    keys: RedisKeys,
    letters: Sequence[tuple[DeadLetter, str | None]],
    form: WrittenForm = NEWEST,
) -> ScriptCall:
    """Dead-letter entries. Without a receiver there is no entry to remove."""
    positions = Positions(keys.meta, keys.bodies, keys.dead, keys.prints)
    args: list[Word] = [max(letter.id for letter, _ in letters)]
    parts: letter_records.Packed = {}
    for letter, receiver in letters:
        args += (letter.id, letter_records.pack_letter(letter, parts, form), letter.fingerprint)
        args += [positions.of(index) for index in keys.indexes(letter)]
        args += (letter.message, receiver or "")
        if receiver is None:
            args += (0, 0)
        else:
            args.append(positions.of(keys.receivers(letter.message)))
            args.append(positions.of(keys.marks(receiver)))
    return ScriptCall(DEAD_LETTER, positions.keys, args)


def forget(keys: RedisKeys, sessions: Iterable[str]) -> ScriptCall:
    """Remove sessions. The caller then settles their queues."""
    names = list(sessions)
    marks = [keys.marks(receiver) for receiver in names]
    return ScriptCall(FORGET, [keys.meta, keys.sessions, keys.handed, *marks], [*names])


def frame(
    keys: RedisKeys, node: str, *, epoch: str, seq: int = 0, frame: bytes, notes: Iterable[int]
) -> ScriptCall:
    """Write a frame of the journal, which replaces these notes.

    `epoch` is the one in which it was made, `seq` its number if the store lost it.
    """
    names = [keys.meta, keys.journal(node), keys.notes(node)]
    return ScriptCall(FRAME, names, [epoch, seq, frame, *notes])


def trim(
    keys: RedisKeys, node: str, *, read_ms: int, oldest_ms: int, size: int, now_ms: int
) -> ScriptCall:
    """Remove the beginning of a journal, and record the time. A frame's id gives its age."""
    names = [keys.meta, keys.journal(node), keys.journal_read(node)]
    return ScriptCall(TRIM, names, [f"{read_ms}-0", f"{oldest_ms}-0", size, now_ms])


def save_channel_holds(keys: RedisKeys, channels: Mapping[str, ChannelHold | None]) -> ScriptCall:
    """Hold or release channels."""
    args: list[Word] = []
    for channel, held in channels.items():
        args += (channel, b"" if held is None else records.pack_held(held))
    return ScriptCall(PUT, [keys.meta, keys.held], args)


def save_topics(
    keys: RedisKeys, topics: Mapping[str, TopicRecord | None], form: WrittenForm = NEWEST
) -> ScriptCall:
    """Save topics, and remove topics without a record."""
    args: list[Word] = []
    for name, record in topics.items():
        args += (name, b"" if record is None else records.pack_topic(name, record, form))
    return ScriptCall(PUT, [keys.meta, keys.topics], args)


def save_requests(
    keys: RedisKeys, fields: Iterable[tuple[str, bytes]], form: WrittenForm = NEWEST
) -> ScriptCall:
    """Save fields of requests. Empty values remove fields."""
    return ScriptCall(PUT, [keys.meta, keys.requests], _changing(fields, form))


def save_fields(keys: RedisKeys, name: str, fields: Mapping[str, bytes]) -> ScriptCall:
    """Save fields of past figures, or of what this process gives. Empty values remove fields."""
    args: list[Word] = []
    for field in fields.items():
        args += field
    return ScriptCall(PUT, [keys.meta, name], args)


def letters_remove(keys: RedisKeys, letters: Iterable[DeadLetter]) -> ScriptCall:
    """Remove dead letters permanently."""
    positions = Positions(keys.meta, keys.dead, keys.prints)
    args: list[Word] = []
    for letter in letters:
        args += (letter.id, letter.fingerprint)
        args += [positions.of(index) for index in keys.indexes(letter)]
    return ScriptCall(LETTERS_REMOVE, positions.keys, args)


def remark(keys: RedisKeys, fingerprint: str, record: bytes, *, at: int, most: int) -> ScriptCall:
    """Store the remark on a group. An empty one is removed."""
    names = [keys.meta, keys.remarks, keys.remarked]
    return ScriptCall(REMARK, names, [fingerprint, record, at, most])


def audit(keys: RedisKeys, fields: Sequence[Word], *, most: int) -> ScriptCall:
    """Add what an operator has changed or tried to change."""
    return ScriptCall(AUDIT, [keys.meta, keys.audit], [most, *fields])


def replay_take(
    keys: RedisKeys, job: str, takes: Iterable[Take], form: WrittenForm = NEWEST
) -> ScriptCall:
    """Turn dead letters into messages again, for a job."""
    positions = Positions(keys.meta, keys.bodies, keys.dead, keys.sessions, keys.replay(job))
    args: list[Word] = [job]
    for letter, receiver, is_durable in takes:
        args += (letter.id, letter.message, records.pack_generation(letter.generation + 1))
        body = letter_records.body_of(letter, receiver, form)
        if str(letter.message) != job:
            # The script takes the event from the letter's record.
            body = body.removesuffix(letter.wire)
        args += (body, receiver)
        if is_durable:
            args.append(positions.of(keys.receivers(letter.message)))
            args.append(positions.of(keys.marks(receiver)))
        else:
            args += (0, 0)
    return ScriptCall(REPLAY_TAKE, positions.keys, args)


def replay_note(keys: RedisKeys, job: str, given: Mapping[str, Word]) -> ScriptCall:
    """Create a replay job, or replace some of its fields."""
    args: list[Word] = [job]
    for name, value in given.items():
        args += (name, value)
    return ScriptCall(REPLAY_NOTE, [keys.meta, keys.replays, keys.replay(job)], args)


def replay_forget(keys: RedisKeys, job: str) -> ScriptCall:
    """Remove a replay job."""
    return ScriptCall(REPLAY_FORGET, [keys.meta, keys.replays, keys.replay(job)], [job])
