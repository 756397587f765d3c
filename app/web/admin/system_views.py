"""Views of the server itself, of its channels and of what the pipeline found out."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from holdfast.store.format.operator_input import Count, Ms, one_of
from holdfast.web.admin.tokens import Role
from holdfast.web.admin.views import TableColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """This server, and the caller."""

    role: Annotated[str, one_of(role.title for role in Role)]
    who: str
    node: str
    version: str
    started: Ms
    now: Ms
    journal: Annotated[bool, Field(description="Whether the server writes a journal.")]


@dataclass(frozen=True, slots=True)
class ChannelSummary:
    """A channel, or a pattern."""

    name: str
    subscribers: Annotated[int, Field(ge=0, description="Subscriptions to exactly this name.")]
    rate: Annotated[
        float | None,
        Field(description="Messages per second; null while nobody listens on `/sys/figures`."),
    ]
    held: Annotated[bool, Field(description="It is held back, by the server or by an operator.")]
    letters: Annotated[
        Count | None,
        Field(
            description="Its dead letters; null while the store is unavailable, and if letters "
            "have more than 20,000 causes."
        ),
    ]


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """A result of the pipeline."""

    result: str
    at: Annotated[int, Field(ge=0, description="When it was computed.")]
    since: Annotated[int | None, Field(description="Time of the first event that it covers.")]
    until: Annotated[int | None, Field(description="Time of the last event that it covers.")]
    title: str
    columns: list[TableColumn]
    rows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Latency:
    """Times from the receipt of messages to their hand-over, in microseconds; of a sample."""

    count: Count
    p50: Count
    p99: Count
    longest: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One reading. An entry is one message for one receiver; counts begin with the server."""

    time: Ms
    node: str
    version: str
    started: Ms
    published: Count
    accepted: Count
    restored: Annotated[
        int, Field(ge=0, description="Entries that the server found in the store at its start.")
    ]
    acked: Count
    dead: Count
    expired: Count
    discarded: Count
    moved: Annotated[
        int, Field(ge=0, description="Entries that moved to other queues, each accepted there.")
    ]
    redelivered: Count
    failed: Annotated[int, Field(ge=0, description="Deliveries that were refused or lost.")]
    waiting: Annotated[int, Field(ge=0, description="Entries that wait to be handed over.")]
    in_flight: Annotated[int, Field(ge=0, description="Entries in flight.")]
    unaccounted: Annotated[
        int, Field(description="Accepted and restored, less all others: must be 0.")
    ]
    oldest_ms: Annotated[
        int | None,
        Field(
            description="Age of the entry that waits longest, without those that are held back or "
            "wait for a retry."
        ),
    ]
    sessions: Count
    connected: Annotated[
        int,
        Field(
            ge=0,
            description="Sessions whose client has connected, and has neither left nor been lost.",
        ),
    ]
    away: Annotated[int, Field(ge=0, description="Named sessions whose client has left.")]
    durable: Count
    held_back: Count
    polling: Annotated[
        int, Field(ge=0, description="Sessions that have lost contact or wait for a retry.")
    ]
    connects_held: Count
    readers: Annotated[
        int, Field(ge=0, description="Requests to /streams and /events that wait for messages.")
    ]
    created: Annotated[int, Field(ge=0, description="Sessions that have begun.")]
    ended: Count
    channels: Annotated[int, Field(ge=0, description="Channels and patterns with subscribers.")]
    channels_held_back: Count
    store_available: bool
    alerts: Annotated[int, Field(ge=0, description="Alerts that are raised.")]
    letters: Annotated[
        int | None, Field(description="Dead letters; null while the store is unavailable.")
    ]
    letters_lately: Annotated[
        int | None, Field(description="Of these, those that died in the last hour.")
    ]
    letters_oldest: Annotated[int | None, Field(description="When the oldest of them died.")]
    latency: Annotated[
        Latency | None,
        Field(description="Since the last reading; measured while somebody watches."),
    ]
