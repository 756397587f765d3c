"""Views of what an operator asks first: what is stuck now, since when, and whose."""

from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field

from holdfast.store.format.operator_input import Count, Ms
from holdfast.web.admin.alerts import RaisedAlert
from holdfast.web.admin.session_filter import AnyDispatcherState
from holdfast.web.admin.session_views import HeldChannel, Hold
from holdfast.web.admin.system_views import Figures

Item = TypeVar("Item")

# Whether the application that decides about clients answers.
BackendState = Literal["answers", "broken"]
StoreState = Literal["available", "unavailable", "full"]
# Whether the worker of a shard answers others: `silent` ones live and do not, `away` ones cannot be
# reached.
ShardState = Literal["serving", "silent", "away"]

_Oldest = Annotated[
    Ms | None,
    Field(
        description="When its oldest entry was published; copies from histories and replays do not "
        "count."
    ),
]
_Receiver = Annotated[
    str,
    Field(
        description="The queue: of a session (joe/1), of a subject (joe/0) or of work "
        "(work:/jobs/0)."
    ),
]
_WorkChannel = Annotated[str, Field(description="The channel of the work queue.")]
_Waiting = Annotated[int, Field(ge=0, description="Entries that wait to be handed over.")]
_InFlight = Annotated[
    int, Field(ge=0, description="Entries in flight: handed over and not settled.")
]


@dataclass(frozen=True, slots=True)
class FirstItems(Generic[Item]):
    """The first items of a list, and how many more there are."""

    items: list[Item]
    more: Count


@dataclass(frozen=True, slots=True)
class OldestEntry:
    """The entry that has been unacknowledged for longest."""

    id: Annotated[str, Field(description="The message: `<deployment>-<ns>`.")]
    channel: str
    receiver: str
    published: Ms
    state: Literal["waiting", "in_flight"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverNow:
    """One queue of messages."""

    receiver: _Receiver
    state: Annotated[
        AnyDispatcherState | None,
        Field(description="The state of the session; the queue of a subject or of work has none."),
    ]
    since: Annotated[Ms | None, Field(description="Since when it is POLLING or DEAD.")]
    hold: Annotated[Hold | None, Field(description="Why it is held back, by whom, since when.")]
    waiting: _Waiting
    in_flight: _InFlight
    bytes: Annotated[Count, Field(description="The size of these entries.")]
    oldest: _Oldest
    oldest_id: Annotated[
        str | None,
        Field(description="The message of this entry; holdfast message shows where it is."),
    ]


@dataclass(frozen=True, slots=True)
class ChannelNow:
    """One channel."""

    channel: Annotated[str, Field(description="The channel; all channels for replies are /ret/*.")]
    waiting: _Waiting
    in_flight: _InFlight
    receivers: Annotated[Count, Field(description="Queues with entries of it.")]
    held: Annotated[bool, Field(description="It is held back, by the server or by an operator.")]


@dataclass(frozen=True, slots=True)
class WorkerNow:
    """One worker of a work queue."""

    channel: _WorkChannel
    receiver: Annotated[str, Field(description="The session that works.")]
    waiting: Annotated[Count, Field(description="Work that it has, and was not handed yet.")]
    in_work: Annotated[Count, Field(description="Work that it was handed.")]
    oldest: Annotated[Ms | None, Field(description="When its oldest waiting work was published.")]
    since: Annotated[
        Ms | None, Field(description="When it was handed the first of what it has now.")
    ]


@dataclass(frozen=True, slots=True)
class WorkNow:
    """One work queue."""

    channel: _WorkChannel
    waiting: Annotated[Count, Field(description="Work that nobody was handed yet.")]
    unassigned: Annotated[Count, Field(description="Of this, the part that no worker has.")]
    in_work: Annotated[Count, Field(description="Work that workers were handed.")]
    oldest: Annotated[Ms | None, Field(description="When the oldest waiting work was published.")]
    since: Annotated[
        Ms | None, Field(description="When the work was handed over that takes longest.")
    ]
    receivers: Annotated[Count, Field(description="Sessions that have subscribed to it.")]


@dataclass(frozen=True, slots=True)
class CodeNow:
    """Dead letters of the last hour with one code."""

    code: Annotated[
        str | None, Field(description="The error code; without one, all other codes together.")
    ]
    letters: Annotated[Count, Field(description="Dead letters of the last hour.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardNow:
    """The worker of one shard. What only it knows is null while it does not answer."""

    shard: Annotated[Count, Field(description="The number of the shard.")]
    host: Annotated[
        str | None,
        Field(description="The machine that has it, or had it last; null without a list of them."),
    ] = None
    state: Annotated[
        ShardState,
        Field(
            description="`silent` if it has not answered in time, `away` if it cannot be reached."
        ),
    ]
    since: Annotated[
        Ms | None, Field(description="When its process began, or since when it is away.")
    ]
    restarts: Annotated[
        Count,
        Field(
            description="How often the supervisor has started another one because one had ended, "
            "since the last restart of all."
        ),
    ]
    last_end: Annotated[
        str | None, Field(description="How the last of these ended: `signal 9`, `exit code 1`.")
    ]
    pid: Annotated[int | None, Field(description="Its process.")]
    sessions: Annotated[int | None, Field(description="Its sessions.")]
    store: Annotated[StoreState | None, Field(description="Whether its store takes messages.")]
    links: Annotated[int | None, Field(description="Open links from it to other workers.")]
    behind_ms: Annotated[
        int | None,
        Field(description="For how long what another worker has for it has been waiting."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendNow:
    """The questions of one worker to the application that decides about clients."""

    shard: Annotated[Count, Field(description="The number of the shard whose worker asks.")]
    state: Annotated[
        BackendState,
        Field(
            description="`broken` if it has failed again and again; it is hardly asked until it "
            "answers."
        ),
    ]
    since: Annotated[Ms | None, Field(description="Since when it is broken.")]
    open: Annotated[Count, Field(description="Questions that it has not answered yet.")]
    waiting: Annotated[Count, Field(description="Questions that wait until it may be asked.")]
    failure: Annotated[str, Field(description="What its latest failure was.")]
    failed: Annotated[Ms | None, Field(description="When that was.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What waits now, since when, and for whom; counted over some turns of the event loop."""

    sentence: Annotated[str, Field(description="The most important of this in one sentence.")]
    time: Ms
    store: Annotated[
        StoreState,
        Field(description="`full` if too many changes wait until it is available."),
    ]
    alerts: Annotated[FirstItems[RaisedAlert], Field(description="The alerts that are raised.")]
    shards: Annotated[
        FirstItems[ShardNow],
        Field(description="The worker of each shard; nothing if there is only one."),
    ]
    backend: Annotated[
        FirstItems[BackendNow],
        Field(
            description="The application that decides about clients, for each worker whose "
            "questions fail or wait."
        ),
    ]
    waiting: _Waiting
    in_flight: _InFlight
    oldest: OldestEntry | None
    oldest_receivers: Annotated[
        FirstItems[ReceiverNow], Field(description="Receivers with the oldest entries.")
    ]
    receivers: Annotated[
        FirstItems[ReceiverNow], Field(description="Receivers with the most entries.")
    ]
    channels: Annotated[
        FirstItems[ChannelNow],
        Field(description="Channels with the most entries; approximate beyond 10,000 channels."),
    ]
    work_queues: Annotated[
        FirstItems[WorkNow], Field(description="Work queues with the most work.")
    ]
    workers: Annotated[
        FirstItems[WorkerNow], Field(description="The workers of each of these with the most work.")
    ]
    held_back: Annotated[
        FirstItems[ReceiverNow],
        Field(description="Sessions that are held back, those with the most entries first."),
    ]
    held_channels: Annotated[
        FirstItems[HeldChannel], Field(description="Held channels, the longest held first.")
    ]
    unreachable: Annotated[
        FirstItems[ReceiverNow],
        Field(description="Sessions that are POLLING or DEAD, those with the most entries first."),
    ]
    letters: Annotated[
        FirstItems[CodeNow] | None,
        Field(
            description="Dead letters of the last hour, the most frequent code first; null while "
            "the store is unavailable."
        ),
    ]
    figures: Annotated[Figures, Field(description="The live figures.")]
