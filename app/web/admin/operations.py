"""The port behind the administration: all that an operator can see and do.

Every method that changes something takes `who` and leaves one entry in the audit, whatever became
of it. A method may be cancelled at any await, when the client that asked for it is gone.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from app.bayeux.commands import Command, Result
from app.web.admin.shapes import (
    AuditEntry,
    DispatcherState,
    Endings,
    Entry,
    Groups,
    HeldChannel,
    Import,
    Letter,
    LetterState,
    LetterSummary,
    Page,
    Purge,
    Remark,
    Replay,
    Session,
    SessionSummary,
)
from app.web.admin.sights import About, ChannelSummary, Figures, PipelineResult, Trace

# What is named does not exist.
UNKNOWN_SESSION = "user.notConnected"
UNKNOWN_LETTER = UNKNOWN_REPLAY = UNKNOWN_CHANNEL = UNKNOWN_RESULT = "user.oid.unknown"
UNKNOWN_GROUP = "user.oid.unknown"
# What is asked for cannot be done now, such as cancelling what is over.
CONFLICT = "user.wrongApiUsage"
ILLEGAL = "user.illegalArgument"
TOO_LARGE = "user.maxSizeExceed"
STORE_AWAY = "resource.db.unavailable"


class OperationFailed(Exception):
    """An operation failed; the caller is told the code, an xmlBlaster one, and the message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions are meant; all conditions hold together."""

    # Beginning of the key.
    prefix: str = ""
    state: DispatcherState | None = None
    held: bool | None = None
    # Exactly this is among its subscriptions.
    channel: str | None = None
    # Its client has not connected yet, has left or is lost.
    unconnected: bool | None = None
    # It was heard of, and began, before then; milliseconds since 1970.
    seen_before: int | None = None
    begun_before: int | None = None


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which dead letters are meant; all conditions hold together, none means all letters."""

    ids: tuple[str, ...] = ()
    channel: str | None = None
    receiver: str | None = None
    subject: str | None = None
    code: str | None = None
    fingerprint: str | None = None
    state: LetterState | None = None
    # When they died: from `since` to before `until`.
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How carefully a replay goes."""

    # Letters per second.
    rate: int = 50
    # So many go first, and must be settled before the rest follows.
    canary: int = 10
    # Stops when more than this part of what was settled died again.
    stop_at: float = 0.1
    # Leaves out what was replayed so often already.
    max_replays: int = 3
    # Key of the session that gets everything; None: each letter's own receiver.
    to: str | None = None
    # JSON that takes the place of the data of the one letter that is meant.
    data: str | None = None


class Operations(Protocol):
    """The administration of one server. Raises `OperationFailed`, and nothing else on purpose."""

    async def sessions(
        self, which: SessionFilter, cursor: str | None, limit: int
    ) -> Page[SessionSummary]:
        """Sessions by key, in order."""
        ...

    async def session(self, key: str) -> Session: ...

    async def peek(self, key: str, limit: int) -> list[Entry]:
        """The first entries of a session's queue, in the order of their delivery."""
        ...

    async def kill(self, key: str, who: str) -> None:
        """End the session; what is in its queue becomes dead letters."""
        ...

    async def end_sessions(
        self, which: SessionFilter, limit: int, *, dry_run: bool, who: str
    ) -> Endings:
        """End so many of these sessions at most; what is in their queues becomes dead letters.

        A dry run only counts them.
        """
        ...

    async def hold(self, key: str, reason: str, until: int | None, who: str) -> Session:
        """Hold the session's delivery back, until then or until it is resumed."""
        ...

    async def resume(self, key: str, who: str) -> Session: ...

    async def clear(self, key: str, who: str) -> int:
        """Discard what is in the session's queue; says how many entries that were."""
        ...

    async def figures(self) -> Figures:
        """What the server is doing at this moment."""
        ...

    async def about(self, who: str) -> About:
        """Which server this is, and as whom it is asked."""
        ...

    async def channels(self, prefix: str, cursor: str | None, limit: int) -> Page[ChannelSummary]:
        """Channels and patterns that somebody subscribed to or publishes on, by name."""
        ...

    async def trace(self, message: str, cursor: str | None) -> Trace:
        """Where a message is, and what happened to it, as far as that is known."""
        ...

    async def pipeline_result(self, name: str) -> PipelineResult:
        """What the pipeline has written back under this name."""
        ...

    async def held_channels(self) -> list[HeldChannel]: ...

    async def release(self, channel: str, who: str) -> None:
        """Let the messages of a held channel flow again."""
        ...

    async def letters(
        self, which: LetterFilter, cursor: str | None, limit: int
    ) -> Page[LetterSummary]:
        """Dead letters, the latest first."""
        ...

    async def letter(self, id: str) -> Letter: ...

    async def groups(self, fingerprint: str | None, cursor: str | None, limit: int) -> Groups:
        """Dead letters by fingerprint, the largest group first; or the one of this fingerprint."""
        ...

    async def remark(self, fingerprint: str, assignee: str, note: str, who: str) -> Remark:
        """Say who looks after the letters of a group, and what is known of them; or nothing."""
        ...

    async def purge(self, which: LetterFilter, *, dry_run: bool, who: str) -> Purge: ...

    async def replay_start(
        self, which: LetterFilter, options: ReplayOptions, *, dry_run: bool, who: str
    ) -> Replay:
        """Begin a replay; returns at once. A dry run only counts, and has no id."""
        ...

    async def replay(self, id: str) -> Replay: ...

    async def replays(self) -> list[Replay]:
        """Replays, the latest first, 100 at most."""
        ...

    async def replay_cancel(self, id: str, who: str) -> Replay:
        """End a replay; what was sent stays sent."""
        ...

    def export(self, which: LetterFilter, who: str) -> AsyncIterator[bytes]:
        """Records as JSON lines without their line ends, each fit for `import_`."""
        ...

    async def import_(self, lines: AsyncIterator[bytes], who: str) -> Import:
        """Keep the records of these lines; one that is here already is left as it is."""
        ...

    async def command(self, command: Command, who: str) -> Result:
        """Run a command of the administrative grammar."""
        ...

    async def audit(self, cursor: str | None, limit: int) -> Page[AuditEntry]:
        """Changes, the latest first."""
        ...
