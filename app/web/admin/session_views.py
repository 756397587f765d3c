"""Views of sessions, of what is in their queues, and of channels that are held back."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from holdfast.bayeux.session import Session as LiveSession
from holdfast.bayeux.sessions.status import (
    created_ms,
    expires_ms,
    first_entries,
    hold_of,
    last_seen_ms,
    limits,
    wall_ms,
)
from holdfast.delivery.basics.node import NS_PER_MS, Node
from holdfast.delivery.guard.holds import Guard
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages import entries
from holdfast.delivery.queues.dispatcher import DEFAULT_POLICY, DispatcherState
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.settings import Settings
from holdfast.store.format.operator_input import Count, Ms
from holdfast.web.admin.message_views import KeptMessage, kept_message
from holdfast.web.admin.session_filter import AnyDispatcherState
from holdfast.web.admin.views import view_of

_CHANNELS = 1000
Unstored = Annotated[
    bool,
    Field(
        description="The store does not have this change yet: it is in effect, and is stored as "
        "soon as the store is available. If the server is killed before, it is undone."
    ),
]


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
    state: AnyDispatcherState
    active: Annotated[bool, Field(description="False while it is held back.")]
    hold: Hold | None
    has_connection: Annotated[bool, Field(description="A connect is held, or a socket is open.")]
    absent: Annotated[bool, Field(description="Its client has left, or was silent for too long.")]
    transport: Annotated[str | None, Field(description="What carried its latest connect.")]
    durable: Annotated[bool, Field(description="Survives a restart.")]
    waiting: Annotated[int, Field(ge=0, description="Entries that wait to be handed over.")]
    in_flight: Annotated[
        int, Field(ge=0, description="Entries in flight: handed over and not settled.")
    ]
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
    acknowledges: Annotated[bool, Field(description="Whether it acknowledges batches.")]
    gives_verdicts: Annotated[bool, Field(description="Whether it gives verdicts.")]
    expires: Annotated[int | None, Field(description="When it ends unless its client returns.")]
    retries: int
    delay_ms: Count
    retry: Annotated[int, Field(ge=0, description="Attempts since contact was lost.")]
    next_attempt: Ms | None
    redelivered: Count
    acked: Count
    dead: Count
    last_failure: Annotated[str | None, Field(description="Code of its latest failure.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSession(Session):
    """A session that an operator has held back, or whose delivery was resumed."""

    unstored: Unstored


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(KeptMessage):
    """One message in the queue of one session."""

    state: Literal["waiting", "in_flight"]
    expires: Ms | None
    seq: Annotated[int, Field(ge=0, description="Of its latest hand-over; 0: never handed over.")]
    batch: Count
    attempts: Count
    redelivered: Count
    generation: Annotated[int, Field(ge=0, description="How often it was replayed.")]


@dataclass(frozen=True, slots=True)
class EndedSessions:
    """The result of ending sessions, or of its dry run."""

    matched: Annotated[int, Field(ge=0, description="Number of sessions that matched before.")]
    entries: Annotated[int, Field(ge=0, description="Number of entries in all their queues.")]
    ended: Annotated[
        int,
        Field(ge=0, description="Sessions ended now; if fewer than `matched`, repeat the request."),
    ]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class ClearedQueue:
    """The number of discarded messages."""

    discarded: Count


@dataclass(frozen=True, slots=True)
class HeldChannel:
    """A held channel: its receivers refused its messages, or an operator holds it back."""

    channel: Annotated[str, Field(description="The channel.")]
    reason: Annotated[str, Field(description="Why.")]
    who: Annotated[
        str, Field(description="Who holds it back: guard, whose holds are probed, or an operator.")
    ]
    since: Annotated[Ms, Field(description="Since when it is held back.")]
    until: Annotated[Ms | None, Field(description="When the hold ends, if that is known.")]
    attempts: Annotated[Count, Field(description="Number of probes without success.")]
    next_attempt: Annotated[
        Ms | None, Field(description="Time of the next probe; null while one is under way.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedChannel(HeldChannel):
    """A channel that an operator holds back from now on."""

    unstored: Unstored


@dataclass(frozen=True, slots=True)
class ReleasedChannel:
    """A channel that is not held back any more."""

    channel: Annotated[str, Field(description="The channel.")]
    unstored: Unstored


def held_channel(guard: Guard, node: Node, channel: str, now: float) -> HeldChannel:
    """Return a held channel with its probes."""
    probe = guard.probes.get(channel)
    is_due = probe is not None and not probe.is_under_way
    return view_of(
        HeldChannel,
        guard.held[channel],
        channel=channel,
        attempts=0 if probe is None else probe.failures,
        next_attempt=wall_ms(node, probe.due, now) if probe is not None and is_due else None,
    )


def session_summary(
    options: Settings, node: Node, session: LiveSession, now: float
) -> SessionSummary:
    """Return a session as lists show it."""
    queue, hold, limit = session.queue, hold_of(session), limits(options, session)
    head = next(first_entries(queue, 1), None)
    return view_of(
        SessionSummary,
        session,
        number=int(session.key.rpartition("/")[2]),
        node=node.name,
        state=session.connection_state,
        active=hold is None,
        hold=None if hold is None else view_of(Hold, hold),
        absent=session.is_absent,
        transport=session.transport or None,
        durable=session.is_durable,
        waiting=queue.count - queue.in_flight_count,
        in_flight=queue.in_flight_count,
        bytes=queue.size,
        max_entries=limit.entries,
        max_bytes=limit.bytes,
        attempts=0 if head is None else head.attempts,
        subscriptions=len(session.subscriptions),
        created=created_ms(session),
        last_seen=last_seen_ms(options, node, session, now),
    )


def whole_session(
    options: Settings,
    node: Node,
    session: LiveSession,
    dead: int,
    last_letter: DeadLetter | None,
    now: float,
) -> Session:
    """Return a session with everything that is known of it."""
    dispatcher = session.dispatcher
    policy = DEFAULT_POLICY if dispatcher is None else dispatcher.policy
    is_polling = session.connection_state is DispatcherState.POLLING
    deadline = dispatcher.deadline if dispatcher is not None and is_polling else None
    queue = session.queue
    return view_of(
        Session,
        session_summary(options, node, session, now),
        session,
        channels=sorted(session.subscriptions)[:_CHANNELS],
        acknowledges=queue.settling is entries.SettledBy.BATCH,
        gives_verdicts=queue.gives_verdicts,
        expires=expires_ms(options, node, session, now),
        retries=policy.retries,
        delay_ms=round(policy.delay_s * 1000),
        acked=0 if dispatcher is None else dispatcher.acknowledged,
        retry=0 if dispatcher is None else dispatcher.attempt,
        next_attempt=None if deadline is None else wall_ms(node, deadline, now),
        redelivered=sum(entry.redelivered for entry in first_entries(queue, queue.count)),
        dead=dead,
        last_failure=_last_failure(queue, last_letter),
    )


def _last_failure(queue: CallbackQueue, letter: DeadLetter | None) -> str | None:
    """Code of the latest failure of anything that is in the queue or died."""
    tried = [attempt for each in first_entries(queue, queue.count) for attempt in each.trail]
    # A lost reply is no failure of the receiver's.
    failures = [(each.time, each.code) for each in tried if each.code == each.outcome]
    if letter is not None:
        failures.append((int(letter.id) // NS_PER_MS, letter.code))
    return max(failures)[1] if failures else None


def entry(node: Node, session: LiveSession, entry: entries.Entry) -> Entry:
    """One message in the queue of one session."""
    message = entry.message
    return view_of(
        Entry,
        kept_message(node, message),
        entry,
        message,
        state="in_flight" if entry.seq in session.queue.in_flight() else "waiting",
        expires=message.expires_ms or None,
    )
