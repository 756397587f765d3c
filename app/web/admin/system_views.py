"""Views of the server itself, of its channels and of what the pipeline found out."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from holdfast.store.fields import Count, Ms


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """This server, and who asks it."""

    role: Literal["reader", "operator"]
    who: str
    node: str
    version: str
    started: Ms
    now: Ms
    journal: Annotated[bool, Field(description="Whether it is written down what happens.")]


@dataclass(frozen=True, slots=True)
class ChannelSummary:
    """A channel, or a pattern."""

    name: str
    subscribers: Annotated[int, Field(ge=0, description="Of exactly this name.")]
    rate: Annotated[
        float | None,
        Field(description="Messages per second; null while nobody listens on `/sys/figures`."),
    ]
    held: Annotated[bool, Field(description="The server holds it back.")]


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """What the pipeline found out, as it wrote it back; docs/pipeline.md has the columns."""

    result: str
    at: Annotated[int, Field(ge=0, description="When it was computed.")]
    since: Annotated[int | None, Field(description="The first event that it is made from.")]
    until: Annotated[int | None, Field(description="The last one.")]
    rows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Latency:
    """From the receipt of messages to their hand-over, in microseconds; of a sample."""

    count: Count
    p50: Count
    p99: Count
    longest: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One reading. Entries are messages times receivers, counted since the server began."""

    time: Ms
    node: str
    version: str
    started: Ms
    published: Count
    accepted: Count
    restored: Annotated[int, Field(ge=0, description="Entries that the store had when it began.")]
    acked: Count
    dead: Count
    expired: Count
    discarded: Count
    redelivered: Count
    failed: Annotated[int, Field(ge=0, description="Deliveries that were refused or lost.")]
    waiting: Annotated[int, Field(ge=0, description="Entries in nobody's hands.")]
    handed: Annotated[int, Field(ge=0, description="Entries handed over and not settled.")]
    unaccounted: Annotated[
        int, Field(description="Accepted and restored, less all the others: must be 0.")
    ]
    oldest_ms: Annotated[
        int | None, Field(description="Age of what waits longest, but for what is held back.")
    ]
    sessions: Count
    connected: Count
    away: Count
    durable: Count
    held_back: Count
    polling: Count
    connects_held: Count
    created: Annotated[int, Field(ge=0, description="Sessions that began.")]
    ended: Count
    channels: Annotated[int, Field(ge=0, description="Channels and patterns with subscribers.")]
    channels_held_back: Count
    store_available: bool
    letters: Annotated[int | None, Field(description="Dead letters; null: the store is away.")]
    letters_lately: Annotated[int | None, Field(description="Of these, died in the last hour.")]
    letters_oldest: Annotated[int | None, Field(description="When the oldest of them died.")]
    latency: Annotated[
        Latency | None, Field(description="Since the last reading; measured while somebody looks.")
    ]
