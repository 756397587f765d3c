"""Replay jobs as they stand in the store."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import orjson

from app.delivery.dead_letters import DeadLetter, State
from app.delivery.json_text import to_json
from app.store.letter_search import LetterFilter
from app.store.wire import Word

VERSION = 1
# The property of a message that was made of a dead letter with other data: id of that letter.
EDITED = "__deadMessageId"


class JobState(Enum):
    """How far a replay is."""

    # A dry run: it only counted.
    PLANNED = "planned"
    # The first few are out; the rest waits for what becomes of them.
    CANARY = "canary"
    RUNNING = "running"
    DONE = "done"
    # Too many died again.
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    # A fault of ours.
    FAILED = "failed"


UNDER_WAY = frozenset({JobState.CANARY, JobState.RUNNING})


class Skip(Enum):
    """Why a letter was not replayed."""

    # Nobody is there to get it.
    RECEIVER = "receiver"
    # Replayed so often already.
    GENERATION = "generation"
    # Its message waits for the receiver already.
    WAITING = "waiting"
    # Its message goes to the one receiver for another letter.
    REPEATED = "repeated"
    # Somebody else was faster.
    REPLAYED = "replayed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How carefully a replay goes, and where to."""

    # Letters per second.
    rate: float = 50.0
    # So many go first, and must be settled before the rest follows.
    canary: int = 10
    # Stops when more than this part of what was settled died again.
    stop_ratio: float = 0.1
    # Leaves out what was replayed so often already.
    max_generation: int = 3
    # Key of the session that gets everything; None: each letter's own receiver.
    target: str | None = None
    # JSON that takes the place of the data of the one letter that is meant.
    data: str | None = None

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise ValueError("a replay needs a rate")


class Sent(NamedTuple):
    """A message that was put into a receiver's queue again."""

    key: str
    id: int


@dataclass(slots=True)
class Job:
    """One replay; times in ms since 1970."""

    # Nanoseconds since 1970: what died later is not meant.
    id: str
    who: str
    which: LetterFilter
    options: ReplayOptions
    state: JobState
    started: int
    # Letters that matched when it was planned, by channel and by receiver.
    total: int = 0
    channels: dict[str, int] = field(default_factory=dict)
    receivers: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    acked: int = 0
    failed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    # The place in its order up to which all letters have been looked at.
    reached: str = ""
    finished: int | None = None
    # Why it stopped or failed.
    reason: str = ""

    @property
    def is_under_way(self) -> bool:
        return self.state in UNDER_WAY

    @property
    def reached_message(self) -> int:
        """The message whose letter was the last that was looked at; 0: none."""
        return int(self.reached.partition(" ")[0] or 0)

    def message(self, letter: DeadLetter) -> DeadLetter:
        """The letter as its message goes out: of its own, or with other data as a new one.

        Whoever waits for the message of before must not get other data under its id.
        """
        data = self.options.data
        if data is None:
            return letter
        wire = _with_data(letter.wire, data) if letter.wire else b""
        properties = {**(letter.properties or {}), EDITED: letter.id}
        return letter._replace(
            message=int(self.id), wire=wire, size=len(wire), properties=properties
        )

    def skip(self, why: Skip, count: int = 1) -> None:
        """Count letters that are left out."""
        self.skipped[why.value] = self.skipped.get(why.value, 0) + count


def _with_data(wire: bytes, data: str) -> bytes:
    event: dict[str, Any] = orjson.loads(wire)
    return to_json({**event, "data": orjson.loads(data)})


# The script that takes letters counts them in this field; the rest is one record.
_SENT = "replayed"
_RECORD = "record"


def pack_job(job: Job) -> dict[str, Word]:
    """The fields of the job that this process writes."""
    record = {name: getattr(job, name) for name in Job.__slots__ if name != "sent"}
    record["which"] = asdict(job.which)
    record["options"] = asdict(job.options)
    return {_RECORD: orjson.dumps({"v": VERSION, **record})}


def unpack_job(fields: Mapping[bytes, bytes]) -> Job:
    """The job again."""
    record: dict[str, Any] = orjson.loads(fields[_RECORD.encode()])
    del record["v"]
    # Servers wrote these down: what they learn from the letters now, and how far they were in the
    # order of deaths. What they had taken says so itself.
    record.pop("canaries", None)
    record.pop("cursor", None)
    which = record["which"]
    which["ids"] = tuple(which["ids"])
    which["state"] = None if which["state"] is None else State(which["state"])
    record["which"] = LetterFilter(**which)
    record["options"] = ReplayOptions(**record["options"])
    record["state"] = JobState(record["state"])
    return Job(**record, sent=int(fields.get(_SENT.encode(), 0)))
