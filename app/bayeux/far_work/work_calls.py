"""What shards ask each other about work that one of them has and sessions of another one do."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.message import Message

# What the operations are called. The shard of the work lends some, or asks the other one to begin.
# That shard is told what takes work, and what became of it.
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

# How much one call has.
MOST_BYTES: Final = 128 * 1024
MOST_ROWS: Final = 500

Row = Sequence[Any]
T = TypeVar("T")


def is_outcome(row: Row) -> bool:
    """Return whether a row says what became of work. A shard that starts tells the others again."""
    return row[0] in (DONE, BACK)


class Told(NamedTuple):
    """A part of what a shard tells: rows, in their order."""

    # Numbers of this beginning, and of the part.
    series: int
    part: int
    rows: Sequence[Row]


class Taken(NamedTuple):
    """The answer: whether it was the next part, and the loans of copies that count no more."""

    is_taken: bool
    stale: Sequence[int] = ()


class Job(NamedTuple):
    """Work for a session of another shard."""

    loan_id: int
    # The key of the session.
    key: str
    message: Message


def size_of_row(row: Row) -> int:
    """Return how many bytes a row has."""
    return len(to_json(row))


def size_of_job(job: Job) -> int:
    """Return how many bytes a job has."""
    return len(job.message.wire)


def parts_of(all: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Divide what there is to say into calls."""
    part: list[T] = []
    size = 0
    for each in all:
        its_size = size_of(each)
        if part and (len(part) >= MOST_ROWS or size + its_size > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(each)
        size += its_size
    if part:
        yield part
