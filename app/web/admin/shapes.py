"""What the administration tells and is told: the shapes of its JSON, which the schema is made from.

Times are milliseconds since 1970, sizes bytes. What is unknown is null, never left out.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field

Item = TypeVar("Item")

# The end of the year 9999: neither dates nor the store go much further.
_LATEST_MS = 253_402_300_799_999
Ms = Annotated[int, Field(ge=0, le=_LATEST_MS, description="Milliseconds since 1970.")]
Count = Annotated[int, Field(ge=0)]
DispatcherState = Literal["UNDEF", "ALIVE", "POLLING", "DEAD"]
LetterState = Literal["new", "replayed"]
ReplayState = Literal["planned", "canary", "running", "done", "stopped", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """A part of a long list."""

    items: list[Item]
    cursor: Annotated[str | None, Field(description="Asks for the next part; null at the end.")]


@dataclass(frozen=True, slots=True)
class Items(Generic[Item]):
    """A whole list."""

    items: list[Item]


@dataclass(frozen=True, slots=True)
class Hold:
    """A session's delivery is held back."""

    reason: str
    who: Annotated[str, Field(description="A role and perhaps a name, or the session itself.")]
    since: Ms
    until: Ms | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """One receiver."""

    key: Annotated[str, Field(description="Subject and number: `joe/1`.")]
    name: Annotated[str, Field(description="Absolute name: `client/joe/1`.")]
    subject: str
    number: int
    node: str
    state: DispatcherState
    active: Annotated[bool, Field(description="False while it is held back.")]
    hold: Hold | None
    connected: Annotated[bool, Field(description="A connect is held, or a socket is open.")]
    transport: Annotated[str | None, Field(description="What carried its latest connect.")]
    durable: Annotated[bool, Field(description="Survives a restart.")]
    waiting: Annotated[int, Field(ge=0, description="Entries in nobody's hands.")]
    handed: Annotated[int, Field(ge=0, description="Entries handed over and not settled.")]
    bytes: Annotated[int, Field(ge=0, description="Size of all these entries.")]
    max_entries: Count
    max_bytes: Count
    attempts: Annotated[int, Field(ge=0, description="Hand-overs of the entry at the head.")]
    subscriptions: Count
    created: Ms
    last_seen: Ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(SessionSummary):
    """One receiver with all that is known of it."""

    channels: Annotated[list[str], Field(description="Subscribed channels, the first 1000.")]
    acknowledges: Annotated[bool, Field(description="It negotiated batches.")]
    gives_verdicts: Annotated[bool, Field(description="It negotiated verdicts.")]
    expires: Annotated[int | None, Field(description="When it ends if it is not seen again.")]
    retries: int
    delay_ms: Count
    retry: Annotated[int, Field(ge=0, description="Attempts since contact was lost.")]
    next_attempt: Ms | None
    redelivered: Count
    published: Annotated[int, Field(ge=0, description="Publishes since the server began.")]
    acked: Count
    dead: Count
    last_failure: Annotated[str | None, Field(description="Code of its latest failure.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One message in the queue of one session."""

    id: Annotated[str, Field(description="The message: `<node>-<ns>`.")]
    channel: str
    sender: str
    state: Literal["waiting", "handed"]
    priority: Annotated[int, Field(ge=0, le=9)]
    published: Ms
    expires: Ms | None
    durable: bool
    seq: Annotated[int, Field(ge=0, description="Of its latest hand-over; 0: never handed over.")]
    batch: Count
    attempts: Count
    redelivered: Count
    generation: Annotated[int, Field(ge=0, description="How often it was replayed.")]
    bytes: Count
    data: Annotated[Any, Field(description="Null if `is_cut`.")]
    is_cut: Annotated[bool, Field(description="`data` is beyond 64 KiB and left out.")]


@dataclass(frozen=True, slots=True)
class Endings:
    """Which sessions were ended, or would be."""

    matched: Annotated[int, Field(ge=0, description="As many there were of them before.")]
    entries: Annotated[int, Field(ge=0, description="What was in all their queues.")]
    ended: Annotated[int, Field(ge=0, description="If fewer than `matched`, ask again.")]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Clearing:
    """What was discarded."""

    discarded: Count


@dataclass(frozen=True, slots=True)
class HeldChannel:
    """A channel whose delivery is held back, as nobody took its messages any more."""

    channel: str
    reason: str
    since: Ms
    attempts: Annotated[Count, Field(description="How often it was tried again in vain.")]
    next_attempt: Annotated[Ms | None, Field(description="Null while one is under way.")]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One hand-over and what became of it."""

    n: Annotated[int, Field(ge=1)]
    time: Ms
    node: str
    transport: str | None
    outcome: str
    latency_ms: Count | None
    code: str | None
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterSummary:
    """One dead letter."""

    id: Annotated[str, Field(pattern="^[0-9]{19}$")]
    message: Annotated[str, Field(description="The message: `<node>-<ns>`.")]
    channel: str
    receiver: Annotated[str, Field(description="Key of the session that did not take it.")]
    subject: Annotated[str, Field(description="Subject of the receiver.")]
    sender: Annotated[str, Field(description="Absolute name of the publisher, or empty.")]
    code: Annotated[str, Field(description="Why: an xmlBlaster error code.")]
    reason: str
    fingerprint: Annotated[str, Field(description="Alike for channel, code and kind of reason.")]
    state: LetterState
    published: Ms
    died: Ms
    expires: Annotated[int, Field(description="When the record will be removed at the latest.")]
    attempts: Count
    redelivered: Count
    generation: Annotated[int, Field(ge=0, description="Of the message, when it died.")]
    replays: Annotated[int, Field(ge=0, description="Replays of this letter.")]
    replay: Annotated[str | None, Field(description="Id of the one that took it.")]
    bytes: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter(LetterSummary):
    """One dead letter with content and history."""

    data: Any
    properties: dict[str, Any] | None
    priority: Annotated[int, Field(ge=0, le=9)]
    durable: bool
    history: list[Attempt]
    policy: Annotated[dict[str, Any] | None, Field(description="Options that were in force.")]


@dataclass(frozen=True, slots=True)
class Remark:
    """What operators say of dead letters that failed alike."""

    assignee: Annotated[str, Field(description="Who looks after them; empty: nobody.")]
    note: str
    who: Annotated[str, Field(description="Who said so.")]
    at: Ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Dead letters of one fingerprint."""

    fingerprint: str
    channel: str
    code: str
    reason: Annotated[str, Field(description="Of the sample.")]
    count: Count
    receivers: Count
    first: Ms
    last: Ms
    sample: Annotated[str, Field(description="Id of the latest letter.")]
    hours: Annotated[list[int], Field(description="Deaths in each of 24 hours, the present last.")]
    days: Annotated[list[int], Field(description="The same of 30 days, which end with that hour.")]
    remark: Remark | None


@dataclass(frozen=True, slots=True)
class Groups:
    """A part of the groups, the largest first."""

    items: list[Group]
    cursor: Annotated[str | None, Field(description="Asks for the next part; null at the end.")]
    total: Annotated[int, Field(ge=0, description="Dead letters in all groups.")]


@dataclass(frozen=True, slots=True)
class Purge:
    """What a purge removed, or would remove."""

    matched: Count
    purged: Count
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that was not taken."""

    line: Annotated[int, Field(ge=1)]
    text: str


@dataclass(frozen=True, slots=True)
class Import:
    """What became of the lines of an import."""

    imported: Count
    repeated: Annotated[int, Field(ge=0, description="Were here already.")]
    refused: Count
    refusals: Annotated[list[Refusal], Field(description="The first 20.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A replay: planned by a dry run, under way, or over."""

    id: Annotated[str | None, Field(description="Null for a dry run.")]
    state: ReplayState
    who: str
    started: Ms | None
    finished: Ms | None
    filter: dict[str, Any]
    options: dict[str, Any]
    total: Annotated[int, Field(ge=0, description="Letters that match.")]
    sent: Annotated[int, Field(ge=0, description="Put into their receivers' queues again.")]
    acked: Count
    failed: Annotated[int, Field(ge=0, description="Died again.")]
    skipped: Annotated[
        int, Field(ge=0, description="Receiver gone, replayed already or too often, or the like.")
    ]
    skips: Annotated[
        dict[str, int],
        Field(
            description="The same by reason: `receiver` (not there), `replayed` (already), "
            "`generation` (too often), `waiting` (in the queue), `repeated` (same message), `gone`."
        ),
    ]
    channels: Annotated[dict[str, int], Field(description="Letters by channel, 20 at most.")]
    receivers: Annotated[dict[str, int], Field(description="Letters by receiver, 20 at most.")]
    reason: Annotated[str | None, Field(description="Why it stopped.")]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change that somebody made, or tried to make."""

    id: str
    time: Ms
    who: str
    action: Annotated[str, Field(description="Like `session.kill` or `dead.purge`.")]
    target: str
    outcome: Annotated[str, Field(description="`ok`, or the code of the failure.")]
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request failed."""

    code: Annotated[str, Field(description="An xmlBlaster error code.")]
    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer to a request that failed."""

    error: Fault
