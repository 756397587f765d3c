"""The stored form of messages, entries, sessions, channel holds and topics. Each has a version."""

import re
from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any, Final
from zlib import crc32

import orjson

from holdfast.delivery.codec.attributes import Way, attributes_of, put_attributes
from holdfast.delivery.guard.holds import GUARD, ChannelHold
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.former_attempts import former_of
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.messages.marks import BatchMark, Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.session_record import RecordUnreadable, SessionRecord
from holdfast.delivery.topics.configured import TopicConfig, TopicRecord
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import NEWEST, WrittenForm
from holdfast.store.format.trail_records import pack_trail, unpack_trail
from holdfast.store.links.resp import Word
from holdfast.store.links.script import Positions

VERSION = 1
# What an unreadable record raises. Other records are still loaded.
UNREADABLE: Final = (RecordUnreadable, AttributeError, LookupError, TypeError, ValueError)


# Messages: one line of JSON, then the event. Field names are short: there may be millions. Before
# them stand a character that says who waits and the checksums of both, in four bytes each; the
# first one covers the id, too. If only one session or queue waits, a checksum of the id and its
# name, the name, and a line break come next. Scripts read and replace that, so larger messages have
# a set of one receiver instead. Before layout 5, there were only the JSON and the event.

OF_ONE: Final = b"@"
OF_SET: Final = b"#"
MOST_OF_ONE: Final = 4096
SUM: Final = 4
_SUMS: Final = 1 + 2 * SUM
_NAME: Final = _SUMS + SUM
_CHANNEL: Final = b'{"channel":"'


def pack_message(
    message: Message, form: WrittenForm = NEWEST, receivers: Sequence[str] = ()
) -> bytes:
    """Return the record of a message. Its generation is in its entries.

    Args:
        receivers: Those that it is stored for.
    """
    head: dict[str, Any] = {"v": VERSION}
    if not (form.is_checked and _says_channel(message)):
        head["c"] = message.channel
    if message.sender:
        head["s"] = message.sender
    head |= attributes_of(message, Way.STORE)
    line, wire = orjson.dumps(head), message.wire
    if not form.is_checked:
        return line + b"\n" + wire
    sums = sum_of(b"%d %b" % (message.id, line)) + sum_of(wire)
    if len(receivers) != 1 or len(line) + len(wire) > MOST_OF_ONE:
        return b"%b%b%b\n%b" % (OF_SET, sums, line, wire)
    name = name_with_sum(message.id, receivers[0])
    return b"%b%b%b\n%b\n%b" % (OF_ONE, sums, name, line, wire)


def unpack_message(id: int, record: bytes) -> Message:
    """Undo `pack_message`."""
    line, wire = _parts_of(id, record)
    head = head_of(line, "message")
    channel = _channel_of(head, wire)
    # Interned, because many messages share these names.
    message = Message(wire, id=id, channel=intern(channel), sender=intern(str(head.get("s", ""))))
    put_attributes(message, head)
    message.is_durable = True
    return message


def _parts_of(id: int, record: bytes) -> tuple[bytes, bytes]:
    """Return the JSON and the event. Raises `RecordUnreadable` if anything has changed."""
    if not record.startswith((OF_ONE, OF_SET)):
        line, _, wire = record.partition(b"\n")
        return line, wire
    begins = _SUMS
    receiver = receiver_in(record)
    if receiver is not None:
        begins = _NAME + len(receiver) + 1
        if record[_SUMS:_NAME] != _sum_of_name(id, receiver):
            raise changed()
    ends = record.find(b"\n", begins)
    line, wire = record[begins:ends], record[ends + 1 :]
    if record[1:_SUMS] != sum_of(b"%d %b" % (id, line)) + sum_of(wire):
        raise changed()
    return line, wire


def sum_of(stored: bytes) -> bytes:
    """Return the checksum of these bytes."""
    return crc32(stored).to_bytes(SUM, "big")


def _sum_of_name(id: int, receiver: bytes) -> bytes:
    return sum_of(b"%d %b" % (id, receiver))


def changed() -> RecordUnreadable:
    """Return what is raised for a record whose checksum does not match."""
    return RecordUnreadable("its checksum says that it has changed")


def _says_channel(message: Message) -> bool:
    """Whether the channel can be read in the event."""
    wire, channel = message.wire, message.channel.encode()
    return wire.startswith(_CHANNEL) and wire.startswith(channel + b'"', len(_CHANNEL))


def _channel_of(head: Mapping[str, Any], wire: bytes) -> str:
    if "c" in head:
        return str(head["c"])
    if not wire.startswith(_CHANNEL):
        raise RecordUnreadable("its channel is missing")
    return wire[len(_CHANNEL) : wire.index(b'"', len(_CHANNEL))].decode()


def name_with_sum(id: int, receiver: str) -> bytes:
    """Return the name of the only receiver of a message as it stands in the record."""
    name = receiver.encode()
    return _sum_of_name(id, name) + name


def receiver_in(record: bytes) -> bytes | None:
    """Return the only receiver of a message; None if it has a set of them."""
    return record[_NAME : record.find(b"\n", _NAME)] if record.startswith(OF_ONE) else None


def with_set(record: bytes) -> bytes:
    """Return the record of a message whose receivers are in a set."""
    receiver = receiver_in(record)
    if receiver is None:
        return record
    return OF_SET + record[1:_SUMS] + record[_NAME + len(receiver) + 1 :]


def channel_of_work(id: int, record: bytes) -> str | None:
    """Return the channel of a message, if it belongs to a work queue; as cheap as it can be."""
    line, wire = _parts_of(id, record)
    head = head_of(line, "message")
    if "q" not in head:
        return None
    return _channel_of(head, wire)


def replayed(message: Message, generation: int) -> Message:
    """Return the message for receivers that it was replayed to."""
    copy = unpack_message(message.id, pack_message(message))
    copy.generation = generation
    # The lifetime applied to the first delivery.
    copy.life_ms, copy.expires_ms = None, 0
    return copy


def pack_session(record: SessionRecord, form: WrittenForm = NEWEST) -> bytes:
    """Return the record of a session."""
    return with_sum(record.key, orjson.dumps(record.to_json()), form)


def unpack_session(key: str, record: bytes) -> SessionRecord:
    """Undo `pack_session`."""
    return SessionRecord.of_json(orjson.loads(without_sum(key, record)))


# Entries: "position seq batch attempts redelivered", with a negative seq if the entry was returned,
# and, if it waits, with 1 as its batch if it was alone in its last attempt by an ended session;
# after failed attempts, followed by " t<version><trail>"; after a replay, by "g<generation>", and
# if it is a copy from a history, by "g0". These may also stand alone. Most entries have an empty
# record: they wait, or were in the session's last batch, which is stored as "number seq id id ...".

# Instead of a generation: the message is a copy from the history of its channel.
FROM_HISTORY: Final = -1
_TRAIL_VERSION = 1
_ENTRY = re.compile(rb"(?:(\d+ -?\d+ \d+ \d+ \d+)(?: t(\d+)(\[.*\]))?)?(?:g(\d+))?", re.DOTALL)
# Longest stored trail, in bytes.
_MOST_OF_ENTRY = 200


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


# Channel holds


def pack_held(held: ChannelHold) -> bytes:
    """Return the record of a channel hold."""
    fields = {"since": held.since, "reason": held.reason, "who": held.who, "until": held.until}
    return orjson.dumps({"v": VERSION, **fields})


def unpack_held(record: bytes) -> ChannelHold:
    """Undo `pack_held`."""
    head = head_of(record, "held channel")
    # Earlier versions stored only holds of the guard.
    return ChannelHold(head["since"], head["reason"], head.get("who", GUARD), head.get("until"))


def pack_topic(name: str, topic: TopicRecord, form: WrittenForm = NEWEST) -> bytes:
    """Return the record of the topic with this name."""
    config = topic.config
    own: dict[str, Any] | None = None
    if config is not None:
        own = {"delay": config.destroy_delay_ms, "readonly": config.is_readonly}
        if config.depth is not None:
            own["history"] = config.depth.to_row()
    record = orjson.dumps({"v": VERSION, "config": own, "erased": topic.is_erased})
    return with_sum(name, record, form)


def unpack_topic(name: str, record: bytes) -> TopicRecord:
    """Undo `pack_topic`."""
    head = head_of(without_sum(name, record), "topic")
    own = head["config"]
    config = None
    if own is not None:
        kept = own.get("history")
        depth = None if kept is None else HistoryDepth(*kept)
        config = TopicConfig(own["delay"], own["readonly"], depth)
    return TopicRecord(config, head["erased"])


# Other records: a character, the checksum of the name and the record, and the record.

_CHECKED: Final = b"#"


def with_sum(name: str, record: bytes, form: WrittenForm) -> bytes:
    """Return the record of something with this name, with the checksum of both before it."""
    if not form.is_checked:
        return record
    return _CHECKED + _sum_of_record(name, record) + record


def without_sum(name: str, record: bytes) -> bytes:
    """Undo `with_sum`. Raises `RecordUnreadable` if either has changed."""
    if not record.startswith(_CHECKED):
        return record
    found = record[1 + SUM :]
    if record[1 : 1 + SUM] != _sum_of_record(name, found):
        raise changed()
    return found


def _sum_of_record(name: str, record: bytes) -> bytes:
    return sum_of(b"%b %b" % (name.encode(), record))


def head_of(line: bytes, what: str, version: int = VERSION) -> dict[str, Any]:
    """Return the JSON in a record. Raises `RecordUnreadable` for one of another version."""
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
    body = pack_message(message, form, () if generation else receivers)
    words: list[Word] = [message.id, receivers_at, body, generation, len(receivers), *receivers]
    if generation:
        words += [positions.of(keys.marks(receiver)) for receiver in receivers]
    elif body.startswith(OF_ONE):
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
