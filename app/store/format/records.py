"""The stored form of messages, entries, dead letters and channel holds. Each has a version."""

import re
from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any, Final

import orjson

from holdfast.delivery.basics.json_text import part, to_json
from holdfast.delivery.codec.attributes import Way, attributes_of, put_attributes
from holdfast.delivery.guard.holds import GUARD, ChannelHold
from holdfast.delivery.letters.dead import DeadLetter, LetterState, key_of, subject_of
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.former_attempts import former_of
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.messages.marks import BatchMark, Mark
from holdfast.delivery.messages.message import ORDINARY_PRIORITY, Message
from holdfast.delivery.messages.session_record import RecordUnreadable
from holdfast.delivery.shared_queues.work import PREFIX, make_work
from holdfast.delivery.topics.configured import TopicConfig, TopicRecord
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import WrittenForm
from holdfast.store.format.trail_records import pack_trail, unpack_trail, unpack_trail_rows
from holdfast.store.links.resp import Word
from holdfast.store.links.script import Positions

VERSION = 1
LETTER_VERSION = 2


# Messages: one line of JSON, then the event. Field names are short: there may be millions.


def pack_message(message: Message) -> bytes:
    """Return the record of a message. Its generation is in its entries."""
    head: dict[str, Any] = {"v": VERSION, "c": message.channel}
    if message.sender:
        head["s"] = message.sender
    head |= attributes_of(message, Way.STORE)
    return orjson.dumps(head) + b"\n" + message.wire


def unpack_message(id: int, record: bytes) -> Message:
    """Undo `pack_message`."""
    line, _, wire = record.partition(b"\n")
    head = _head(line, "message")
    # Interned, because many messages share these names.
    channel, sender = intern(str(head["c"])), intern(str(head.get("s", "")))
    message = Message(wire, id=id, channel=channel, sender=sender)
    put_attributes(message, head)
    message.is_durable = True
    return message


# Before the body of a message that only one session or queue waits for stands its name, in a line
# that begins with this. Scripts read it, so larger bodies have a set of one name instead.
OF_ONE: Final = b"@"
MOST_OF_ONE: Final = 4096


def receiver_in(record: bytes) -> tuple[bytes | None, bytes]:
    """Return the only receiver of a message, or None if it has a set of them; and its record."""
    if not record.startswith(OF_ONE):
        return None, record
    line, _, body = record.partition(b"\n")
    return line[1:], body


def channel_of_work(record: bytes) -> str | None:
    """Return the channel of a message, if it belongs to a work queue; as cheap as it can be."""
    head = _head(record.partition(b"\n")[0], "message")
    return str(head["c"]) if "q" in head else None


def replayed(message: Message, generation: int) -> Message:
    """Return the message for receivers that it was replayed to."""
    copy = unpack_message(message.id, pack_message(message))
    copy.generation = generation
    # The lifetime applied to the first delivery.
    copy.life_ms, copy.expires_ms = None, 0
    return copy


def message_of(letter: DeadLetter, receiver: str) -> Message:
    """Return the message of a dead letter, for another delivery to this session or queue."""
    message = unpack_message(letter.message, message_head(letter, receiver) + letter.wire)
    message.is_durable = letter.is_durable
    message.generation = letter.generation + 1
    return message


def message_head(letter: DeadLetter, receiver: str) -> bytes:
    """Return the first line of the record of a dead letter's message for this receiver."""
    message = Message(b"", id=letter.message, channel=letter.channel, sender=letter.publisher)
    if receiver.startswith(PREFIX):
        # Receivers that refused it before may get it again.
        make_work(message)
    message.priority = letter.priority
    message.properties = letter.properties
    return pack_message(message)  # ends with the line break


# Entries: "position seq batch attempts redelivered", with a negative seq if the entry was returned,
# and, if it waits, with 1 as its batch if it was alone in its last attempt by an ended session;
# after failed attempts, followed by " t<version><trail>"; after a replay, by "g<generation>", and
# if it is a copy from a history, by "g0". These may also stand alone. Most entries have an empty
# record: they wait, or were in the session's last batch, which is stored as "number seq id id ...".

# Instead of a generation: the message is a copy from the history of its channel.
FROM_HISTORY: Final = -1
_TRAIL_VERSION = 1
_ENTRY = re.compile(rb"(?:(\d+ -?\d+ \d+ \d+ \d+)(?: t(\d+)(\[.*\]))?)?(?:g(\d+))?", re.DOTALL)
# Longest stored trail, in bytes. The reason of a dead letter has another limit.
_MOST_OF_ENTRY = 200
_MOST_OF_LETTER = 300


def pack_mark(mark: Mark, trails: dict[int, bytes]) -> bytes:
    """Return the record of an entry. Trails shared by several entries are packed once.

    Args:
        trails: Cache of packed trails of one call, by identity.
    """
    counts = b"%d %d %d %d %d" % (
        mark.position,
        mark.seq,
        mark.batch or mark.was_alone,
        mark.attempts,
        mark.redelivered,
    )
    if not mark.trail:
        return counts
    packed = trails.get(id(mark.trail))
    if packed is None:
        packed = trails[id(mark.trail)] = pack_trail(mark.trail, _MOST_OF_ENTRY)
    return b"%b t%d%b" % (counts, _TRAIL_VERSION, packed)


def pack_generation(generation: int) -> bytes:
    """Return the record of a new entry."""
    return b"g%d" % generation if generation else b""


def pack_origin(message: Message) -> bytes:
    """Return the record of a new entry with the message. Most have none."""
    return b"g0" if message.is_initial else pack_generation(message.generation)


def pack_waiting(message: Message, trails: dict[int, bytes]) -> bytes:
    """Return the record of a waiting entry, with the attempts that its message brings."""
    generation = pack_origin(message)
    if former_of(message) is None:
        return generation
    return pack_mark(Entry(message).mark(), trails) + generation


def unpack_entry(id: int, entry: bytes) -> tuple[Mark, int]:
    """Return the mark of an entry, and its message's generation or `FROM_HISTORY`."""
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise RecordUnreadable(f"entry {id} is {entry!r}")
    counts, version, trail_text, replays = found.groups()
    generation = int(replays or 0) or (FROM_HISTORY if replays else 0)
    if not counts:
        return Mark(id), generation
    position, seq, batch, tries, redelivered = map(int, counts.split())
    # Losing an unreadable trail is better than losing the message.
    trail = unpack_trail(trail_text) if version == b"%d" % _TRAIL_VERSION else ()
    if position or seq:
        return Mark(id, seq, batch, tries, redelivered, position, trail), generation
    return Mark(id, 0, 0, tries, redelivered, 0, trail, was_alone=bool(batch)), generation


def pack_batch(batch: BatchMark) -> str:
    """Return the record of a session's last batch."""
    number, seq, ids = batch
    return f"{number} {seq} {ids[0] if len(ids) == 1 else ' '.join(map(str, ids))}"


def unpack_batch(record: bytes) -> BatchMark:
    """Undo `pack_batch`."""
    try:
        number, seq, *ids = map(int, record.split())
    except ValueError as error:
        raise RecordUnreadable(f"batch {record!r}") from error
    return BatchMark(number, seq, ids)


# Dead letters: "state replays job", which scripts change; a line of JSON; the event.


def pack_letter(letter: DeadLetter, parts: dict[int, orjson.Fragment]) -> bytes:
    """Return the record of a letter.

    Args:
        parts: Cache of packed parts of one call, by identity.
    """
    status = f"{letter.state.value} {letter.replays} {letter.job or '-'}"
    return b"\n".join((status.encode(), orjson.dumps(_letter_head(letter, parts)), letter.wire))


def unpack_letter(record: bytes) -> DeadLetter:
    """Undo `pack_letter`. The wire is empty if the record ends after its head."""
    status, _, rest = record.partition(b"\n")
    line, _, wire = rest.partition(b"\n")
    state, replays, job = status.decode().split(" ")
    return _letter(
        _head(line, "dead letter", LETTER_VERSION),
        wire,
        state=LetterState(state),
        replays=int(replays),
        job="" if job == "-" else job,
    )


def _letter_head(letter: DeadLetter, parts: dict[int, orjson.Fragment]) -> dict[str, Any]:
    """Return the head of the record. Omits what the receiver's name implies."""
    head: dict[str, Any] = {
        "v": LETTER_VERSION,
        "i": letter.id,
        "m": letter.message,
        "c": letter.channel,
        "s": letter.publisher,
        "r": letter.receiver,
        "e": letter.code,
        "t": letter.reason,
        "f": letter.fingerprint,
        "b": letter.size,
    }
    if letter.priority != ORDINARY_PRIORITY:
        head["p"] = letter.priority
    if letter.is_durable:
        head["d"] = True
    if letter.properties is not None:
        head["x"] = part(dict(letter.properties))
    if letter.expiration is not None:
        head["l"] = dict(letter.expiration)
    if letter.attempt_count or letter.redelivered:
        head["n"] = [letter.attempt_count, letter.redelivered]
    if letter.attempts:
        head["h"] = orjson.Fragment(pack_trail(letter.attempts, _MOST_OF_LETTER))
    policy = letter.policy
    if policy is not None:
        if id(policy) not in parts:
            parts[id(policy)] = orjson.Fragment(to_json(dict(policy)))
        head["o"] = parts[id(policy)]
    if letter.generation:
        head["g"] = letter.generation
    return head


def _letter(
    head: dict[str, Any], wire: bytes, *, state: LetterState, replays: int, job: str
) -> DeadLetter:
    attempt_count, redelivered = head.get("n", (0, 0))
    return DeadLetter(
        id=head["i"],
        message=head["m"],
        channel=head["c"],
        wire=wire,
        size=head["b"],
        publisher=head["s"],
        receiver=head["r"],
        key=key_of(head["r"]),
        subject=subject_of(head["r"]),
        code=head["e"],
        reason=head["t"],
        fingerprint=head["f"],
        priority=head.get("p", ORDINARY_PRIORITY),
        is_durable=head.get("d", False),
        properties=head.get("x"),
        expiration=head.get("l"),
        attempts=unpack_trail_rows(head.get("h", ())),
        attempt_count=attempt_count,
        redelivered=redelivered,
        policy=head.get("o"),
        generation=head.get("g", 0),
        state=state,
        replays=replays,
        job=job,
    )


# Channel holds


def pack_held(held: ChannelHold) -> bytes:
    """Return the record of a channel hold."""
    fields = {"since": held.since, "reason": held.reason, "who": held.who, "until": held.until}
    return orjson.dumps({"v": VERSION, **fields})


def unpack_held(record: bytes) -> ChannelHold:
    """Undo `pack_held`."""
    head = _head(record, "held channel")
    # Earlier versions stored only holds of the guard.
    return ChannelHold(head["since"], head["reason"], head.get("who", GUARD), head.get("until"))


def pack_topic(topic: TopicRecord) -> bytes:
    """Return the record of a topic."""
    config = topic.config
    own: dict[str, Any] | None = None
    if config is not None:
        own = {"delay": config.destroy_delay_ms, "readonly": config.is_readonly}
        if config.depth is not None:
            own["history"] = config.depth.to_row()
    return orjson.dumps({"v": VERSION, "config": own, "erased": topic.is_erased})


def unpack_topic(record: bytes) -> TopicRecord:
    """Undo `pack_topic`."""
    head = _head(record, "topic")
    own = head["config"]
    config = None
    if own is not None:
        kept = own.get("history")
        depth = None if kept is None else HistoryDepth(*kept)
        config = TopicConfig(own["delay"], own["readonly"], depth)
    return TopicRecord(config, head["erased"])


def _head(line: bytes, what: str, version: int = VERSION) -> dict[str, Any]:
    head: dict[str, Any] = orjson.loads(line)
    if head.get("v") != version:
        raise RecordUnreadable(f"{what} of version {head.get('v')}")
    return head


def words_entering(
    keys: RedisKeys,
    positions: Positions,
    message: Message,
    receivers: Sequence[str],
    form: WrittenForm,
) -> list[Word]:
    """Return the arguments for a message that enters queues."""
    receivers_at = positions.of(keys.receivers(message.id))
    generation = pack_origin(message)
    body = pack_message(message)
    words: list[Word] = [message.id, receivers_at, body, generation, len(receivers), *receivers]
    if generation:
        words += [positions.of(keys.marks(receiver)) for receiver in receivers]
    elif len(receivers) == 1 and len(body) <= MOST_OF_ONE and form.has_single_receivers:
        words[3] = OF_ONE
    return words


def words_handing_over(
    keys: RedisKeys,
    positions: Positions,
    hand_overs: Mapping[str, BatchMark],
    incarnation: str,
) -> list[Word]:
    """Return the arguments for hand-overs that follow at once."""
    if not hand_overs:
        return [0]
    words: list[Word] = [2 * len(hand_overs), positions.of(keys.handed), incarnation]
    for receiver, batch in hand_overs.items():
        words += (receiver, pack_batch(batch))
    return words
