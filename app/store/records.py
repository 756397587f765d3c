"""What stands in the store: messages, dead letters and sessions as bytes, each with a version."""

import re
from sys import intern
from typing import Any

import orjson

from app.delivery import attempts
from app.delivery.dead_letters import DeadLetter, State, key_of, subject_of
from app.delivery.guard import Held
from app.delivery.json_text import part, to_json
from app.delivery.keeper import Batch, Mark
from app.delivery.messages import ORDINARY_PRIORITY, Message
from app.delivery.session_record import RecordUnreadable, SessionRecord

VERSION = 1
_LETTER_VERSION = 2


# Messages: one line of JSON, then the event. Names are short, for there may be millions of them.


def pack_message(message: Message) -> bytes:
    """The message as it stands in the store; its generation is its entry's affair."""
    head: dict[str, Any] = {"v": VERSION, "c": message.channel}
    if message.sender:
        head["s"] = message.sender
    if message.priority != ORDINARY_PRIORITY:
        head["p"] = message.priority
    if message.life_ms is not None:
        head["l"] = message.life_ms
    if message.expires_ms:
        head["f"] = True
    if message.linger_s is not None:
        head["w"] = message.linger_s
    if message.properties is not None:
        head["x"] = part(dict(message.properties))
    if message.leaves_no_letter:
        head["d"] = True
    return orjson.dumps(head) + b"\n" + message.wire


def unpack_message(id: int, record: bytes) -> Message:
    """The message again."""
    line, _, wire = record.partition(b"\n")
    head = _head(line, "message")
    # Many messages have the same: each name is in memory once.
    channel, sender = intern(str(head["c"])), intern(str(head.get("s", "")))
    message = Message(wire, id=id, channel=channel, sender=sender, linger_s=head.get("w"))
    message.priority = head.get("p", ORDINARY_PRIORITY)
    if "l" in head:
        message.limit_life(head["l"], is_forced=head.get("f", False))
    message.properties = head.get("x")
    message.leaves_no_letter = head.get("d", False)
    message.is_durable = True
    return message


def replayed(message: Message, generation: int) -> Message:
    """The message as it is for those to whom it was replayed."""
    copy = unpack_message(message.id, pack_message(message))
    copy.generation = generation
    # Its life was that of the first one.
    copy.life_ms, copy.expires_ms = None, 0
    return copy


def message_of(letter: DeadLetter) -> Message:
    """A dead letter's message, to be delivered once more."""
    message = unpack_message(letter.message, message_head(letter) + letter.wire)
    message.is_durable = letter.is_durable
    message.generation = letter.generation + 1
    return message


def message_head(letter: DeadLetter) -> bytes:
    """The first line of a dead letter's message, for it to be a message once more."""
    message = Message(b"", id=letter.message, channel=letter.channel, sender=letter.publisher)
    message.priority = letter.priority
    message.properties = letter.properties
    return pack_message(message)  # ends with the line break


# Entries of queues: "position seq batch attempts redelivered", with a negative seq if the entry
# was returned; if attempts failed, with
# " t<version><history>" behind; after a replay, with "g<generation>" behind, or that alone. Most
# have nothing of this: they wait, or were handed over in the session's last batch, of which the
# store has "number seq id id ...".

_TRAIL_VERSION = 1
_ENTRY = re.compile(rb"(?:(\d+ -?\d+ \d+ \d+ \d+)(?: t(\d+)(\[.*\]))?)?(?:g(\d+))?", re.DOTALL)
# What histories may take, in bytes; the reason of a dead letter is bounded elsewhere.
_MOST_OF_ENTRY = 200
_MOST_OF_LETTER = 300


def pack_mark(mark: Mark, histories: dict[int, bytes]) -> bytes:
    """How far an entry has come; what many have in common of their histories is packed once.

    Args:
        histories: Those that were packed for others of the same call, by their identity.
    """
    counts = b"%d %d %d %d %d" % (
        mark.position,
        mark.seq,
        mark.batch,
        mark.attempts,
        mark.redelivered,
    )
    if not mark.trail:
        return counts
    packed = histories.get(id(mark.trail))
    if packed is None:
        packed = histories[id(mark.trail)] = attempts.pack(mark.trail, _MOST_OF_ENTRY)
    return b"%b t%d%b" % (counts, _TRAIL_VERSION, packed)


def pack_generation(generation: int) -> bytes:
    """A new entry."""
    return b"g%d" % generation if generation else b""


def unpack_entry(id: int, entry: bytes) -> tuple[Mark, int]:
    """How far an entry has come, and how often its message was replayed."""
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise RecordUnreadable(f"entry {id} is {entry!r}")
    counts, version, history, replays = found.groups()
    generation = int(replays or 0)
    if not counts:
        return Mark(id), generation
    position, seq, batch, tries, redelivered = map(int, counts.split())
    # A history that cannot be read is no reason to lose the message.
    trail = attempts.unpack(history) if version == b"%d" % _TRAIL_VERSION else ()
    return Mark(id, seq, batch, tries, redelivered, position, trail), generation


def pack_batch(batch: Batch) -> str:
    """What a session was handed last."""
    number, seq, ids = batch
    return f"{number} {seq} {ids[0] if len(ids) == 1 else ' '.join(map(str, ids))}"


def unpack_batch(record: bytes) -> Batch:
    """The same again."""
    try:
        number, seq, *ids = map(int, record.split())
    except ValueError as error:
        raise RecordUnreadable(f"batch {record!r}") from error
    return Batch(number, seq, ids)


# Dead letters: "state replays job", which scripts change; a line of JSON; the event.


def pack_letter(letter: DeadLetter, parts: dict[int, orjson.Fragment]) -> bytes:
    """The letter as it stands in the store.

    Args:
        parts: What was packed for others of the same call, by the identity of what it was.
    """
    status = f"{letter.state.value} {letter.replays} {letter.job or '-'}"
    return b"\n".join((status.encode(), orjson.dumps(_letter_head(letter, parts)), letter.wire))


def unpack_letter(record: bytes) -> DeadLetter:
    """The letter again; its wire is empty if the record was cut after its head."""
    status, _, rest = record.partition(b"\n")
    line, _, wire = rest.partition(b"\n")
    state, replays, job = status.decode().split(" ")
    return _letter(
        _head(line, "dead letter", _LETTER_VERSION),
        wire,
        state=State(state),
        replays=int(replays),
        job="" if job == "-" else job,
    )


def letter_to_json(letter: DeadLetter) -> dict[str, Any]:
    """The letter as an operator sees it, the original event within."""
    return {
        "v": _LETTER_VERSION,
        "id": letter.id,
        "message": str(letter.message),
        "channel": letter.channel,
        "publisher": letter.publisher,
        "receiver": letter.receiver,
        "key": letter.key,
        "subject": letter.subject,
        "code": letter.code,
        "reason": letter.reason,
        "fingerprint": letter.fingerprint,
        "size": letter.size,
        "priority": letter.priority,
        "durable": letter.is_durable,
        "properties": None if letter.properties is None else part(dict(letter.properties)),
        "attempts": letter.attempt_count,
        "redelivered": letter.redelivered,
        "history": [attempt.to_json() for attempt in letter.attempts],
        "policy": None if letter.policy is None else part(dict(letter.policy)),
        "generation": letter.generation,
        "state": letter.state.value,
        "replays": letter.replays,
        "job": letter.job,
        "event": orjson.Fragment(letter.wire),
    }


def _letter_head(letter: DeadLetter, parts: dict[int, orjson.Fragment]) -> dict[str, Any]:
    """In short, without what its receiver's name says too."""
    head: dict[str, Any] = {
        "v": _LETTER_VERSION,
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
    if letter.attempt_count or letter.redelivered:
        head["n"] = [letter.attempt_count, letter.redelivered]
    if letter.attempts:
        head["h"] = orjson.Fragment(attempts.pack(letter.attempts, _MOST_OF_LETTER))
    policy = letter.policy
    if policy is not None:
        if id(policy) not in parts:
            parts[id(policy)] = orjson.Fragment(to_json(dict(policy)))
        head["o"] = parts[id(policy)]
    if letter.generation:
        head["g"] = letter.generation
    return head


def _letter(
    head: dict[str, Any], wire: bytes, *, state: State, replays: int, job: str
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
        attempts=attempts.unpack_rows(head.get("h", ())),
        attempt_count=attempt_count,
        redelivered=redelivered,
        policy=head.get("o"),
        generation=head.get("g", 0),
        state=state,
        replays=replays,
        job=job,
    )


# Sessions


def pack_session(record: SessionRecord) -> bytes:
    """The session as it stands in the store."""
    return orjson.dumps(record.to_json())


def unpack_session(record: bytes) -> SessionRecord:
    """The session again."""
    return SessionRecord.of_json(orjson.loads(record))


# Channels that are held back.


def pack_held(held: Held) -> bytes:
    """Since when and why a channel is held back."""
    return orjson.dumps({"v": VERSION, "since": held.since, "reason": held.reason})


def unpack_held(record: bytes) -> Held:
    """The same again."""
    head = _head(record, "held channel")
    return Held(head["since"], head["reason"])


def _head(line: bytes, what: str, version: int = VERSION) -> dict[str, Any]:
    head: dict[str, Any] = orjson.loads(line)
    if head.get("v") != version:
        raise RecordUnreadable(f"{what} of version {head.get('v')}")
    return head
