"""The forms of letters about work that a shard has and sessions of another one do."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from orjson import dumps, loads

from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.codec.attributes import Way, attributes_of, put_attributes
from holdfast.delivery.messages.message import Message
from holdfast.delivery.shared_queues.work import Borrowed

# What the letters are called in the log. From the shard of the work: it lends some, or asks the
# other one to begin. To that shard: what takes work, and what became of it.
LENT: Final = "work lent"
ASKED: Final = "work asked"
TOLD: Final = "work told"

# The kinds of rows in what is told, by their first elements. A session takes work now, ...
TAKES: Final = "takes"
# ... or takes none. A copy is here, ...
GONE: Final = "gone"
HAS: Final = "has"
# ... was done, or came back. All copies were named.
DONE: Final = "done"
BACK: Final = "back"
END: Final = "end"

# How much one letter has.
MOST_BYTES: Final = 128 * 1024
MOST_ROWS: Final = 500

Row = Sequence[Any]


def is_outcome(row: Row) -> bool:
    """Return whether a row says what became of work. A shard that starts tells the others again."""
    return row[0] in (DONE, BACK)


class Told(NamedTuple):
    """A part of what a shard tells: rows, in their order."""

    # Numbers of this beginning, and of the part.
    epoch: int
    part: int
    rows: Sequence[Row]

    def to_json(self) -> bytes:
        """Return the letter."""
        return to_json(self._asdict())


def told_in(letter: bytes) -> Told:
    """Undo `Told.to_json`. Raises `ValueError`, `KeyError` or `TypeError`."""
    return Told(**loads(letter))


class Taken(NamedTuple):
    """The answer: whether it was the next part, and the loans of copies that count no more."""

    is_taken: bool
    stale: Sequence[int] = ()

    def to_json(self) -> bytes:
        """Return the answer as bytes."""
        return to_json(self._asdict())


def taken_in(answer: bytes | None) -> Taken:
    """Undo `Taken.to_json`. Without an answer, or with another one, the part was not taken."""
    if answer is None:
        return Taken(False)
    try:
        fields = loads(answer)
        return Taken(fields["is_taken"], fields["stale"])
    except (ValueError, KeyError, TypeError):
        return Taken(False)


# Lending


def asking(others_may_have_it: bool) -> bytes:
    """Return the letter that asks a shard to begin.

    Args:
        others_may_have_it: Whether others may get work that it has, until it has begun.
    """
    return to_json({"others_may_have_it": others_may_have_it})


def may_others_have_it(letter: bytes) -> bool:
    """Undo `asking`. Raises `ValueError`."""
    return bool(loads(letter).get("others_may_have_it"))


class Job(NamedTuple):
    """Work for a session of another shard."""

    lease: int
    # The key of the session.
    key: str
    message: Message


def packed(epoch: int, jobs: Sequence[Job]) -> bytes:
    """Return the letter: a line with a JSON object, and the events behind each other."""
    head = {"epoch": epoch, "jobs": [_head(each) for each in jobs]}
    return dumps(head) + b"\n" + b"".join([each.message.wire for each in jobs])


def _head(job: Job) -> dict[str, Any]:
    message = job.message
    return {
        "lease": job.lease,
        "key": job.key,
        "size": len(message.wire),
        "id": message.id,
        "channel": message.channel,
        "sender": message.sender,
        **attributes_of(message, Way.LOAN),
    }


class Lent(NamedTuple):
    """What a letter lends."""

    epoch: int
    jobs: Sequence[Job]


def lent_in(letter: bytes, home: int) -> Lent:
    """Undo `packed`, with copies for the queues of sessions here.

    Raises `ValueError`, `KeyError` or `TypeError` for another form.
    """
    line, _, wires = letter.partition(b"\n")
    head = loads(line)
    return Lent(head["epoch"], [*_jobs(head["jobs"], wires, home)])


def _jobs(heads: Iterable[Mapping[str, Any]], wires: bytes, home: int) -> Iterator[Job]:
    at = 0
    for head in heads:
        wire = wires[at : at + head["size"]]
        at += head["size"]
        yield Job(head["lease"], head["key"], _message(head, wire, home))


def _message(head: Mapping[str, Any], wire: bytes, home: int) -> Message:
    message = Message(wire, id=head["id"], channel=head["channel"], sender=head["sender"])
    put_attributes(message, head)
    Borrowed(home, head["lease"]).mark(message)
    return message


def parts_of(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Divide rows into letters; at least one."""
    part: list[Row] = []
    size = 0
    for row in rows:
        row_size = len(to_json(row))
        if part and (len(part) >= MOST_ROWS or size + row_size > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(row)
        size += row_size
    yield part
