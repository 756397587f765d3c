"""The stored form of dead letters, and of the messages that they become again."""

from typing import Any, Final

import orjson

from holdfast.delivery.basics.json_text import part, to_json
from holdfast.delivery.letters.dead import DeadLetter, LetterState, key_of, subject_of
from holdfast.delivery.messages.message import ORDINARY_PRIORITY, Message
from holdfast.delivery.shared_queues.work import PREFIX, make_work
from holdfast.store.format.layouts import NEWEST, WrittenForm
from holdfast.store.format.records import (
    SUM,
    changed,
    head_of,
    pack_message,
    sum_of,
    unpack_message,
)
from holdfast.store.format.trail_records import pack_trail, unpack_trail_rows

LETTER_VERSION = 2
# What letters share, packed once, by its identity.
Packed = dict[int, orjson.Fragment]
# Longest stored trail, in bytes. The reason has another limit.
_MOST_OF_TRAIL = 300
# A record is "state replays job", which scripts change; a line of JSON; the event. The second
# line begins with the checksums of the JSON and of the event, in eight hexadecimal digits each,
# because scripts look for line breaks.
_DIGITS: Final = 4 * SUM


def pack_letter(letter: DeadLetter, parts: Packed, form: WrittenForm = NEWEST) -> bytes:
    """Return the record of a letter.

    Args:
        parts: Cache of packed parts of one call, by identity.
    """
    status = f"{letter.state.value} {letter.replays} {letter.job or '-'}"
    line = orjson.dumps(_letter_head(letter, parts))
    if form.is_checked:
        line = (sum_of(line) + sum_of(letter.wire)).hex().encode() + line
    return b"\n".join((status.encode(), line, letter.wire))


def unpack_letter(record: bytes) -> DeadLetter:
    """Undo `pack_letter`. The wire is empty if the record ends after its head."""
    status, _, rest = record.partition(b"\n")
    line, _, wire = rest.partition(b"\n")
    state, replays, job = status.decode().split(" ")
    if not line.startswith(b"{"):
        sums, line = line[:_DIGITS], line[_DIGITS:]
        # Without the event, only the first one is known.
        found = (sum_of(line) + sum_of(wire) if wire else sum_of(line)).hex().encode()
        if not sums.startswith(found):
            raise changed()
    return _letter(
        head_of(line, "dead letter", LETTER_VERSION),
        wire,
        state=LetterState(state),
        replays=int(replays),
        job="" if job == "-" else job,
    )


def _letter_head(letter: DeadLetter, parts: Packed) -> dict[str, Any]:
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
        head["h"] = orjson.Fragment(pack_trail(letter.attempts, _MOST_OF_TRAIL))
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


def message_of(letter: DeadLetter, receiver: str) -> Message:
    """Return the message of a dead letter, for another delivery to this session or queue."""
    message = unpack_message(letter.message, body_of(letter, receiver))
    message.is_durable = letter.is_durable
    message.generation = letter.generation + 1
    return message


def body_of(letter: DeadLetter, receiver: str, form: WrittenForm = NEWEST) -> bytes:
    """Return the record of a dead letter's message for this receiver."""
    id, sender = letter.message, letter.publisher
    message = Message(letter.wire, id=id, channel=letter.channel, sender=sender)
    if receiver.startswith(PREFIX):
        # Receivers that refused it before may get it again.
        make_work(message)
    message.priority = letter.priority
    message.properties = letter.properties
    return pack_message(message, form)
