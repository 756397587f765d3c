"""Limits for all clients together, for one address, and for one subject."""

from typing import Annotated, ClassVar

from pydantic import Field

from holdfast.delivery.basics.channels import MAX_LENGTH, MAX_SEGMENTS
from holdfast.settings.section import Limit, Section, SizeLimit, TimeLimit
from holdfast.units import Unit

# 0 is unlimited.
Quota = Annotated[int, Field(ge=0)]
SizeQuota = Annotated[Quota, Unit.BYTES]
_EACH = "of one address, and of one subject; 0 is unlimited."


class LimitSettings(Section):
    heading: ClassVar[str] = "Limits"

    max_message_size: SizeLimit = Field(
        default=2 * 1024**2, description="Maximum size of one message."
    )
    max_request_size: SizeLimit = Field(
        default=4 * 1024**2, description="Maximum size of one request, decompressed."
    )
    max_unfinished_bytes: SizeLimit = Field(
        default=256 * 1024**2,
        description="Maximum size of all incomplete and waiting requests together; one address "
        "may use half of it.",
    )
    max_batch: Limit = Field(default=5_000, description="Maximum messages in one request.")
    max_depth: int = Field(default=512, ge=8, le=512, description="Maximum nesting of JSON.")
    max_values: Limit = Field(
        default=65_000,
        description="Maximum number of JSON values and member names in one request; an array "
        "or an object counts as two.",
    )
    max_subscriptions: Limit = Field(
        default=10_000, description="Maximum subscriptions of one session."
    )
    max_session_filters: Limit = Field(
        default=100, description="Maximum subscriptions of one session that have a filter."
    )
    max_topics: Limit = Field(default=100_000, description="Maximum number of topics.")
    max_outstanding: Limit = Field(
        default=256, description="Maximum outstanding [requests](requests.md) of one session."
    )
    max_total_outstanding: Limit = Field(
        default=100_000,
        description="Maximum outstanding requests of all sessions together. A request also counts "
        "once for each session that may answer it.",
    )
    reply_timeout: TimeLimit = Field(
        default=10_000,
        description="Time for replies to a request that has no `timeout`, at most "
        "max_reply_timeout.",
    )
    max_reply_timeout: TimeLimit = Field(
        default=300_000, description="Longest `timeout` that a request may have."
    )
    max_filters: Limit = Field(
        default=250, description="Maximum different filters of all subscriptions together."
    )
    max_total_subscriptions: Limit = Field(
        default=2_000_000,
        description="Maximum subscriptions of all sessions together. Beyond it, each session "
        "may still have this number divided by max_sessions.",
    )
    max_queue: Limit = Field(
        default=10_000, description="Maximum messages in the queue of one session."
    )
    max_queue_bytes: SizeLimit = Field(
        default=16 * 1024**2, description="Maximum size of the queue of one session."
    )
    max_subject_queue: Limit = Field(
        default=10_000, description="Maximum messages that wait for one subject."
    )
    max_subject_queue_bytes: SizeLimit = Field(
        default=16 * 1024**2, description="Maximum size of the messages that wait for one subject."
    )
    max_subject_queues: Limit = Field(
        default=10_000, description="Maximum number of subjects that messages wait for."
    )
    max_history: Limit = Field(
        default=100_000, description="Maximum messages in the histories of all channels together."
    )
    max_history_bytes: SizeLimit = Field(
        default=64 * 1024**2, description="Maximum size of the messages in all histories."
    )
    max_readers: Limit = Field(
        default=10_000,
        description="Maximum requests to [`/streams` and `/events`](../how-to/streams.md) that "
        "wait for "
        "messages, for each worker.",
    )
    max_work_queue: Limit = Field(
        default=10_000,
        description="Maximum messages that wait in one [work queue](work-queues.md).",
    )
    max_work_queue_bytes: SizeLimit = Field(
        default=16 * 1024**2,
        description="Maximum size of the messages that wait in one work queue.",
    )
    max_work_queues: Limit = Field(
        default=10_000, description="Maximum number of work queues that messages wait in."
    )
    max_delay: TimeLimit = Field(
        default=7 * 24 * 3600 * 1000, description="Longest delay that a publish may ask for."
    )
    max_delayed: Limit = Field(default=10_000, description="Maximum delayed messages.")
    max_delayed_bytes: SizeLimit = Field(
        default=16 * 1024**2, description="Maximum bytes of all delayed messages."
    )
    max_publish_keys: Limit = Field(
        default=1_000_000, description="Maximum number of publish keys that the server remembers."
    )
    max_sessions: Limit = Field(default=100_000, description="Maximum number of sessions.")
    max_sessions_per_subject: Limit = Field(
        default=10,
        description="Maximum named sessions of one subject; a client may ask for a lower limit.",
    )
    max_names_per_browser: Limit = Field(
        default=100,
        description="Maximum named sessions of one browser cookie, if no policy decides who may "
        "use which name.",
    )
    max_names_per_address: Limit = Field(
        default=1_000,
        description="Maximum named sessions of one address, as trusted_proxies report it, if no "
        "policy decides who may use which name.",
    )
    max_session_timeout: TimeLimit = Field(
        default=24 * 3600 * 1000,
        description="Longest session timeout that a client may ask for; a policy may grant more.",
    )
    unconnected_share: int = Field(
        default=50,
        ge=0,
        le=100,
        description="Percentage of max_sessions that unconnected sessions may keep when session "
        "slots run out; the idlest ones beyond it are evicted first.",
    )
    max_channel_length: Limit = Field(
        default=MAX_LENGTH, description="Maximum length of a channel name."
    )
    max_channel_segments: Limit = Field(
        default=MAX_SEGMENTS, description="Maximum segments of a channel name."
    )
    handshake_rate: Limit = Field(default=20_000, description="Maximum handshakes per second.")

    @property
    def max_session_timeout_s(self) -> float:
        return self.max_session_timeout / 1000


class QuotaSettings(Section):
    heading: ClassVar[str] = "Budgets and quotas"

    budget_requests: Quota = Field(
        default=2_000,
        description=f"Maximum requests per second {_EACH}",
    )
    budget_handshakes: Quota = Field(
        default=200, description=f"Maximum handshakes per second {_EACH}"
    )
    budget_publishes: Quota = Field(
        default=2_000, description=f"Maximum publishes and service calls per second {_EACH}"
    )
    budget_bytes: SizeQuota = Field(
        default=16 * 1024**2, description=f"Maximum bytes of requests per second {_EACH}"
    )
    budget_letters: Quota = Field(
        default=200,
        description="Maximum refusals per second, most of which create dead letters, and of ids "
        f"that were never given, {_EACH}",
    )
    quota_sessions: Quota = Field(
        default=5_000,
        description=f"Maximum sessions {_EACH}",
    )
    quota_subscriptions: Quota = Field(
        default=200_000, description=f"Maximum subscriptions {_EACH}"
    )
    quota_waiting_bytes: SizeQuota = Field(
        default=512 * 1024**2, description=f"Maximum bytes that wait in the queues {_EACH}"
    )
    quota_addressed: Quota = Field(
        default=1_000,
        description="Maximum messages from one address, and from one subject, that wait for "
        "subjects, in work queues or until they are due; 0 is unlimited.",
    )
    quota_addressed_bytes: SizeQuota = Field(
        default=64 * 1024**2,
        description="Maximum bytes of the messages that quota_addressed counts; 0 is unlimited.",
    )
    quota_history: Quota = Field(
        default=50_000,
        description="Maximum messages of one subject, or of one address without subjects, in all "
        "histories; the oldest of them make room. 0 is unlimited.",
    )
    quota_history_bytes: SizeQuota = Field(
        default=32 * 1024**2,
        description="Maximum bytes of the messages that quota_history counts; 0 is unlimited.",
    )
    quota_readers: Quota = Field(
        default=1_000,
        description="Maximum requests of one address or subject that max_readers counts; "
        "0 is unlimited.",
    )
    quota_topics: Quota = Field(
        default=10_000,
        description="Maximum topics that publishes of one address, and of one subject, have made; "
        "0 is unlimited.",
    )
