"""What an operator can set about the protocol; times in seconds, as the core counts them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from app.bayeux.codec import RequestLimits
from app.delivery.channels import ChannelLimits
from app.delivery.guard import GuardLimits
from app.delivery.queue import QueueLimits


@dataclass(frozen=True, slots=True)
class ChannelRule:
    """What is special about the channels of one pattern."""

    lazy_timeout_s: float | None = None
    broadcast_to_publisher: bool = True
    # Whether publishes are kept if they do not say so themselves; None: if a receiver is durable.
    durable: bool | None = None
    # Whether what is not delivered becomes a dead letter.
    dead_letters: bool = True
    # How often a refused message is handed over before it is dead, and the pauses between.
    attempts: int = 1
    backoff_s: float = 1.0
    longest_backoff_s: float = 60.0
    # After so many hand-overs without an answer a message is dead; None: never for that.
    max_attempts: int | None = None


class Durable(Enum):
    """Which sessions are kept in the store."""

    NONE = "none"
    NAMED = "named"
    ACKED = "acked"


@dataclass(frozen=True, slots=True)
class BudgetRates:
    """So many in a second, for each address and each subject; zero: without limit."""

    requests: int = 2_000
    handshakes: int = 200
    publishes: int = 2_000
    bytes: int = 16 * 1024 * 1024
    letters: int = 200


@dataclass(frozen=True, slots=True)
class Options:
    """One server's protocol options, named as CometD names them."""

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
    # Named ones of one subject; a client may want fewer.
    max_sessions_per_subject: int = 10
    # Where nobody says who may be which subject.
    max_names_per_browser: int = 100
    max_names_per_address: int = 1000
    # How long a session waits for a client that is lost or has left, unless a policy grants more.
    max_session_timeout_s: float = 24 * 3600.0
    # What part of all places unconnected sessions keep when places run out.
    unconnected_share: float = 0.5
    max_subscriptions: int = 10_000
    max_message_size: int = 2 * 1024 * 1024
    durable: Durable = Durable.NAMED
    handshake_rate: float = 20_000.0
    connection_types: tuple[str, ...] = ("websocket", "long-polling")
    channels: Mapping[str, ChannelRule] = field(default_factory=dict)
    request_limits: RequestLimits = field(default_factory=RequestLimits)
    queue_limits: QueueLimits = field(default_factory=QueueLimits)
    guard: GuardLimits = field(default_factory=GuardLimits)
    budgets: BudgetRates = field(default_factory=BudgetRates)
    channel_limits: ChannelLimits = field(default_factory=ChannelLimits)
