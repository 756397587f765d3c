"""The protocol options of a server. Times are in seconds, as the core counts them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from holdfast.bayeux.wire.codec import RequestLimits
from holdfast.delivery.basics.channels import ChannelLimits
from holdfast.delivery.guard.holds import GuardLimits
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.queues.queue import QueueLimits
from holdfast.delivery.routing.histories import HistoryLimits
from holdfast.delivery.shared_queues.shared_queues import SharedQueueLimits
from holdfast.delivery.topics.configured import TopicConfig
from holdfast.settings.limits import QuotaSettings


@dataclass(frozen=True, slots=True)
class ChannelRule:
    """The rule for the channels of one pattern."""

    lazy_timeout_s: float | None = None
    broadcast_to_publisher: bool = True
    # Whether publishes are stored by default; None means if a receiver is durable.
    durable: bool | None = None
    # Whether undelivered messages become dead letters.
    dead_letters: bool = True
    # How many hand-overs before a refused message is dead, and the pauses between them.
    attempts: int = 1
    backoff_s: float = 1.0
    longest_backoff_s: float = 60.0
    # How many hand-overs without an answer before a message is dead; None means no limit.
    max_attempts: int | None = None
    # The configuration of the topic, if the rule makes its channels topics.
    topic: TopicConfig | None = None
    # How much the channels keep for later subscribers; None means nothing.
    history: HistoryDepth | None = None
    # Whether each message goes to one receiver.
    is_work_queue: bool = False
    # Whether the channels are held back when their receivers are broken.
    is_guarded: bool = False
    # Whether clients may see who is on the channels.
    has_presence: bool = False


ORDINARY_RULE = ChannelRule()


class Durable(Enum):
    """Which sessions are stored."""

    NONE = "none"
    NAMED = "named"
    ACKED = "acked"


@dataclass(frozen=True, slots=True)
class Options:
    """The protocol options of one server, with CometD's names."""

    timeout_s: float = 30.0
    interval_s: float = 0.0
    max_interval_s: float = 10.0
    meta_connect_deliver_only: bool = False
    handshake_reconnect: bool = False
    allow_message_delivery_during_handshake: bool = False
    broadcast_to_publisher: bool = True
    trust_client_session: bool = False
    max_sessions_per_browser: int = 1
    multi_session_interval_s: float = 2.0
    ws_require_handshake_per_connection: bool = False
    max_sessions: int = 100_000
    # Named sessions of one subject. Clients may ask for a lower limit.
    max_sessions_per_subject: int = 10
    # Applies if no policy decides on subjects.
    max_names_per_browser: int = 100
    max_names_per_address: int = 1000
    # How many shards there are. Each admits its part of what one address may do.
    shards: int = 1
    # How long a session waits for a client that is lost or has left, unless a policy allows more.
    max_session_timeout_s: float = 24 * 3600.0
    # The share of session slots that unconnected sessions keep when slots run out.
    unconnected_share: float = 0.5
    # Whether messages to named sessions that do not exist may wait for them.
    ptp_create_session: bool = False
    max_subscriptions: int = 10_000
    # For all sessions together. Beyond it, each session may have an equal share.
    max_total_subscriptions: int = 2_000_000
    # Filters of one session's subscriptions, and different filters of all sessions.
    max_session_filters: int = 100
    max_filters: int = 250
    # Outstanding requests of one session, and of all sessions, counted once for each responder.
    max_outstanding: int = 256
    max_total_outstanding: int = 100_000
    # The default deadline of requests, and the longest.
    reply_timeout_ms: int = 10_000
    max_reply_timeout_ms: int = 300_000
    max_topics: int = 100_000
    max_message_size: int = 2 * 1024 * 1024
    durable: Durable = Durable.NAMED
    handshake_rate: float = 20_000.0
    connection_types: tuple[str, ...] = ("websocket", "long-polling")
    channels: Mapping[str, ChannelRule] = field(default_factory=dict)
    request_limits: RequestLimits = field(default_factory=RequestLimits)
    queue_limits: QueueLimits = field(default_factory=QueueLimits)
    history_limits: HistoryLimits = field(default_factory=HistoryLimits)
    subject_limits: SharedQueueLimits = field(default_factory=SharedQueueLimits)
    work_limits: SharedQueueLimits = field(default_factory=SharedQueueLimits)
    delay_limits: SharedQueueLimits = field(default_factory=SharedQueueLimits)
    # The longest delay of a publish.
    max_delay_ms: int = 7 * 24 * 3600 * 1000
    guard: GuardLimits = field(default_factory=GuardLimits)
    quotas: QuotaSettings = field(default_factory=QuotaSettings)
    channel_limits: ChannelLimits = field(default_factory=ChannelLimits)

    @property
    def work_patterns(self) -> Sequence[str]:
        """The patterns of the channels that are work queues."""
        return [pattern for pattern, rule in self.channels.items() if rule.is_work_queue]
