"""Notes: the events of a store call, kept in the store until a frame includes them.

A note is JSON: the version, publishes, and rows in the form of the frame builder.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import orjson

from holdfast.delivery.basics.steps import Reason, Step
from holdfast.delivery.messages.former_attempts import former_of
from holdfast.delivery.messages.outcomes import Lending, Outcome
from holdfast.journal.columns import DecodedNote, FailureDetails, PublishRow, Row
from holdfast.journal.schema import TAKEN_BACK, VERSION, Kind
from holdfast.journal.wording import wording_of

if TYPE_CHECKING:
    from holdfast.delivery.letters.dead import DeadLetter
    from holdfast.delivery.messages.marks import BatchMark
    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.messages.outcomes import Move

# The version of the notes that a server before this one may have left.
_OLDER = 2
# Behind these, a copy may be handed over for the first time once more.
_BEGIN_ANEW = (Kind.ENTERED, Kind.REPLAYED)
# Of copies of work that sessions of other shards have: no store has them. Of copies of which their
# shard says nothing any more: the session may have done the work.
_LENT: FailureDetails = {"kept": 0}
_TAKEN_BACK: FailureDetails = {"code": TAKEN_BACK}


class Refusal(NamedTuple):
    """A failed delivery of a copy."""

    at: int
    why: FailureDetails
    attempt: int = 0


def why_of(outcome: Outcome) -> FailureDetails | None:
    """Return the reason as details, if there is one."""
    return None if outcome.reason is None else FailureDetails(code=outcome.reason.value)


def failure(code: str, text: str) -> FailureDetails:
    """Return the details of a failure: its code, and the wording of its text if it has one."""
    why, wording = FailureDetails(code=code), wording_of(text)
    if wording is not None:
        why["wording"] = wording
    return why


def packed(note: DecodedNote) -> bytes:
    """Encode a note for the store."""
    published, rows = note
    return orjson.dumps((VERSION, published, rows))


def unpacked(note: bytes) -> DecodedNote:
    """Decode a note; raise `ValueError` if it is unreadable or of another version."""
    version, published, rows = orjson.loads(note)
    if version not in (VERSION, _OLDER):
        raise ValueError(f"a note of version {version}")
    publishes = [
        (id, copies, kept, size, priority, sender, channel)
        for id, copies, kept, size, priority, sender, channel in published
    ]
    if version == _OLDER and any(kind == Kind.MOVED for kind, *_ in rows):
        publishes = [*_beyond_moves(publishes)]
    return (
        publishes,
        [(kind, ids, attempt, why, keys, at) for kind, ids, attempt, why, keys, at in rows],
    )


def _beyond_moves(published: Iterable[PublishRow]) -> Iterator[PublishRow]:
    """Yield what is left of an older note's publishes, which have a copy more for each move."""
    for id, copies, kept, size, priority, sender, channel in published:
        if copies > 1:
            yield id, copies - 1, kept - 1 if kept else 0, size, priority, sender, channel


def of_replay(message: "Message") -> FailureDetails:
    """Return what the journal says of a replayed message, which may be stored or not as it is."""
    return FailureDetails(generation=message.generation, kept=int(message.is_durable))


def handed_over(batches: "Mapping[str, BatchMark]", at: int) -> list[Row]:
    """Return the rows of first hand-overs."""
    rows: list[Row] = []
    last: Sequence[int] = ()
    keys: list[str] = []
    for key, batch in batches.items():
        ids = batch.ids
        if not ids:
            # The store had a hand-over that did not happen.
            continue
        if ids == last:
            keys.append(key)
        else:
            last, keys = ids, [key]
            rows.append((Kind.HANDED, ids, 1, None, keys, [at]))
    return rows


def handed_once(note: DecodedNote, known: set[tuple[str, int]]) -> DecodedNote:
    """Return the note without first hand-overs that are known, and add the others to these.

    The store may have a hand-over before it happens, and again if it became a larger one.
    """
    published, rows = note
    found: list[Row] = []
    for row in rows:
        kind, ids, attempt, why, keys, at = row
        if kind in _BEGIN_ANEW:
            known.difference_update((key, id) for key in keys for id in ids)
        if kind != Kind.HANDED:
            found.append(row)
            continue
        for key in keys:
            new = [id for id in ids if (key, id) not in known]
            known.update((key, id) for id in new)
            if new:
                found.append((kind, new, attempt, why, [key], at))
    return published, found


def handed_again(hand_overs: Mapping[str, Sequence[tuple[int, int]]], at: int) -> list[Row]:
    """Return the rows of hand-overs with repeats: message ids and attempt numbers.

    What sessions got together is one row, as in `handed_over`: many return to many messages.
    """
    rows: list[Row] = []
    last, last_ids, last_keys = 0, list[int](), list[str]()
    for key, attempts in hand_overs.items():
        for attempt, alike in groupby(attempts, itemgetter(1)):
            ids = [id for id, _ in alike]
            if attempt == last and ids == last_ids:
                last_keys.append(key)
                continue
            kind = Kind.HANDED if attempt == 1 else Kind.REDELIVERED
            last, last_ids, last_keys = attempt, ids, [key]
            rows.append((kind, ids, attempt, None, last_keys, [at]))
    return rows


def refused(refusals: Iterable[tuple[tuple[str, int], Iterable[Refusal]]]) -> list[Row]:
    """Return the rows of failed deliveries, given for each session and message."""
    ids: dict[tuple[str, int, str, int], list[int]] = {}
    rows: list[Row] = []
    for (key, id), failed in refusals:
        for at, why, attempt in failed:
            alike = ids.setdefault((key, at, repr(why), attempt), [])
            if not alike:
                rows.append((Kind.REFUSED, alike, attempt, why, [key], [at]))
            alike.append(id)
    return rows


def moved(moves: "Sequence[Move]", at: int) -> DecodedNote:
    """Return the rows of the queues that have and had the messages.

    A move that changes the number of copies is a publish, too.
    """
    copies: list[PublishRow] = []
    rows: list[Row] = []
    for message, source, targets, count, _, how in moves:
        if how is Lending.DONE:
            continue
        if count != 1:
            more = count - 1
            kept = more if message.is_durable else 0
            # The size was reported when the message was published.
            copies.append(
                (message.id, more, kept, 0, message.priority, message.sender, message.channel)
            )
        why = of_replay(message) if message.generation else None
        left = _TAKEN_BACK if how is Lending.TAKEN_BACK else why
        rows.append((Kind.MOVED, [message.id], None, left, [source], [at]))
        if count:
            former = former_of(message)
            attempts = None if former is None else former.attempts
            came = why or _LENT if how is Lending.LENT else why
            rows.append((Kind.ENTERED, [message.id], attempts, came, [*targets[:count]], [at]))
    return copies, rows


def arrived(step: Step, messages: "Sequence[Message]", at: int) -> DecodedNote:
    """Return the rows of messages that entered the queue of this step.

    Each is a copy without a size: what it is published as later has one, so that readers count one
    message.
    """
    copies = [
        (each.id, 1, int(each.is_durable), 0, each.priority, each.sender, each.channel)
        for each in messages
    ]
    ids = [each.id for each in messages]
    return copies, [(step.kind, ids, None, None, [step.queue], [at])]


def settled(entries: Mapping[int, Sequence[str]], outcome: Outcome, at: int) -> list[Row]:
    """Return the rows of settled messages: for each id, the sessions."""
    kind = outcome.kind
    rows: list[Row] = []
    last: Sequence[str] = ()
    ids: list[int] = []
    for id, keys in entries.items():
        if keys == last:
            ids.append(id)
        else:
            last, ids = keys, [id]
            rows.append((kind, ids, None, why_of(outcome), [*keys], [at]))
    return rows


def dead(letters: "Sequence[tuple[DeadLetter, str | None]]", at: int) -> list[Row]:
    """Return the rows of dead letters."""
    rows: list[Row] = []
    for letter, _ in letters:
        why = failure(letter.code, letter.text)
        why["letter"], why["fingerprint"] = int(letter.id), letter.fingerprint
        rows.append((Kind.DEAD, [letter.message], letter.attempt_count, why, [letter.key], [at]))
    return rows


def left(sessions: Mapping[str, Sequence[int]], at: int) -> list[Row]:
    """Return the rows of sessions that ended, with the messages that waited for them."""
    why = FailureDetails(code=Reason.SESSION_ENDED.value)
    return [
        (Kind.DISCARDED, list(ids), None, why, [key], [at]) for key, ids in sessions.items() if ids
    ]


def replayed(letters: "Sequence[tuple[DeadLetter, str]]", at: int) -> bytes:
    """Return the note of letters that become messages for these sessions: a line for each."""
    lines = [b"[%d,[],[" % VERSION]
    for letter, key in letters:
        why = FailureDetails(letter=int(letter.id), generation=letter.generation + 1, kept=1)
        lines.append(orjson.dumps((Kind.REPLAYED, [letter.message], None, why, [key], [at])))
    return b"\n".join(lines)
