"""The stored form of replay jobs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import orjson

from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.letters.dead import DeadLetter, LetterState
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.links.resp import Word
from holdfast.store.replays.parameters import Edit, ReplayOptions

VERSION = 1
# Client property of a message created from a dead letter with other data: the letter's id.
EDITED = "__deadMessageId"


class JobState(Enum):
    """The state of a replay."""

    # A dry run: letters were only counted.
    PLANNED = "planned"
    # The canary is sent, and the rest waits for its outcome.
    CANARY = "canary"
    RUNNING = "running"
    DONE = "done"
    # Too many messages died again.
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    # A fault of the server.
    FAILED = "failed"


_UNDER_WAY = frozenset({JobState.CANARY, JobState.RUNNING})


class SkipReason(Enum):
    """Why a letter was skipped."""

    RECEIVER = "receiver"
    REPLAYED = "replayed"
    GENERATION = "generation"
    # In its receiver's queue.
    WAITING = "waiting"
    # Its message is already being sent to the target session because of another letter.
    REPEATED = "repeated"
    GONE = "gone"


# The words that people read after the number of letters.
SKIP_WORDS = {
    "receiver": "without a receiver",
    "replayed": "replayed already",
    "generation": "replayed too often",
    "waiting": "waiting already",
    "repeated": "of a message that is sent once",
    "gone": "gone meanwhile",
}


class Sent(NamedTuple):
    """A message that was put into a queue again."""

    receiver: str
    id: int


@dataclass(slots=True)
class Job:
    """One replay. Times are in ms since 1970."""

    # Nanoseconds since 1970, by the clock of the shard that gives it to all.
    id: str
    who: str
    which: LetterFilter
    options: ReplayOptions
    state: JobState
    started: int
    # Letters that matched at the start, by channel and by receiver.
    total: int = 0
    channels: dict[str, int] = field(default_factory=dict)
    receivers: dict[str, int] = field(default_factory=dict)
    # In a plan: letters whose receivers are away.
    away: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    acked: int = 0
    failed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    # The position up to which all letters have been examined.
    reached: str = ""
    finished: int | None = None
    # Why it stopped or failed.
    reason: str = ""
    # As letters have ids here: later deaths are not included. Empty if an older server made it.
    begun: str = ""
    # Letters that other shards were to get, which have the sessions.
    moved: int = 0

    @property
    def until(self) -> str:
        """The limit of its letters: all have smaller ids, and later deaths larger ones."""
        return self.begun or self.id

    @property
    def is_under_way(self) -> bool:
        return self.state in _UNDER_WAY

    @property
    def is_over(self) -> bool:
        """Whether it has ended, for any reason."""
        return not (self.is_under_way or self.state is JobState.PLANNED)

    @property
    def reached_message(self) -> int:
        """The message of the last letter examined; 0 if there was none."""
        return int(self.reached.partition(" ")[0] or 0)

    def message(self, letter: DeadLetter) -> DeadLetter:
        """The letter as it is sent: under its message's id, or as a new message with other data.

        Receivers that still wait for the old message must not get other data under its id.
        """
        edit = self.options.edit
        if edit is None:
            return letter
        wire = to_json({**orjson.loads(letter.wire), "data": edit.data}) if letter.wire else b""
        properties = {**(letter.properties or {}), EDITED: letter.id}
        return letter._replace(
            message=int(self.id), wire=wire, size=len(wire), properties=properties
        )

    def skip(self, why: SkipReason, count: int = 1) -> None:
        """Count skipped letters."""
        self.skipped[why.value] = self.skipped.get(why.value, 0) + count


# The script that takes letters counts them in this field. Everything else is one record.
_SENT = "replayed"
# Fields that are in no record.
_UNRECORDED = ("sent", "away", "begun", "moved")
_RECORD, _BEGUN, _MOVED = "record", "begun", "moved"
# Options with another name in the record.
_RECORDED = {"stop_at": "stop_ratio", "max_replays": "max_generation", "to": "target"}


def pack_job(job: Job) -> dict[str, Word]:
    """Return the fields that this process writes."""
    record = {name: getattr(job, name) for name in Job.__slots__ if name not in _UNRECORDED}
    record["which"] = job.which.model_dump()
    options = job.options.model_dump(exclude={"edit"})
    record["options"] = {_RECORDED.get(name, name): value for name, value in options.items()}
    # Data may be nested deeper, and numbers be larger, than the record's JSON allows.
    record["options"]["data"] = job.options.data
    # Older servers do not know it, and could not read a record with it.
    packed = orjson.dumps({"v": VERSION, **record})
    return {_RECORD: packed, _BEGUN: job.begun, _MOVED: job.moved}


def unpack_job(fields: Mapping[bytes, bytes]) -> Job:
    """Undo `pack_job`."""
    record: dict[str, Any] = orjson.loads(fields[_RECORD.encode()])
    del record["v"]
    # Fields of older servers. Their content is now derived from the letters; their position was in
    # the order of death.
    record.pop("canaries", None)
    record.pop("cursor", None)
    record["which"] = LetterFilter(**record["which"])
    record["options"] = _options(record["options"])
    record["state"] = JobState(record["state"])
    taken, moved = (int(fields.get(name.encode(), 0)) for name in (_SENT, _MOVED))
    begun = fields.get(_BEGUN.encode(), b"").decode()
    return Job(**record, sent=taken - moved, begun=begun, moved=moved)


def _options(stored: dict[str, Any]) -> ReplayOptions:
    names = {stored: name for name, stored in _RECORDED.items()}
    data = stored.pop("data", None)
    edit = None if data is None else Edit(data=orjson.loads(data))
    return ReplayOptions(
        **{names.get(name, name): value for name, value in stored.items()}, edit=edit
    )


def is_taken(job: Job, letter: DeadLetter) -> bool:
    """Whether the job has taken the letter, to send it or to move it to another shard."""
    return letter.job == job.id and letter.state is not LetterState.NEW


def is_brought(job: Job, letter: DeadLetter) -> bool:
    """Whether another shard has brought the letter for the job, which sends it."""
    return letter.job == job.id and letter.state is LetterState.NEW
