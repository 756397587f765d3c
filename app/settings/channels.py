"""The settings of channels."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from holdfast.delivery.messages.keeping import HISTORY_BYTES, MOST_ENTRIES
from holdfast.settings.section import Limit, Milliseconds, SizeLimit


class ChannelSettings(BaseModel):
    """Settings of the channels that match a pattern."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lazy: bool = Field(
        default=False,
        description="Messages are [lazy](lazy-messages.md): they wait for other messages.",
    )
    lazy_timeout: Milliseconds | None = Field(
        default=None,
        description="Maximum delay, by default `max_lazy_timeout`; setting it makes the channel "
        "lazy.",
    )
    broadcast_to_publisher: bool = Field(
        default=True,
        description="Publishers receive their own messages if they subscribed.",
    )
    durable: bool | None = Field(
        default=None,
        description="Whether publishes that do not set `persistent` themselves are "
        "[durable](../explanation/durability.md). By default they are if a receiver is.",
    )
    dead_letters: bool = Field(
        default=True,
        description="Undelivered messages become [dead letters](../how-to/dead-letters.md); "
        "`false` discards them.",
    )
    attempts: Limit = Field(
        default=1,
        description="Attempts to deliver a [refused message](delivery.md#per-channel) before it "
        "becomes a dead letter.",
    )
    backoff: Milliseconds = Field(
        default=1_000,
        description="Longest delay before the second attempt; it doubles with each attempt. The "
        "delay is random, from half of it up.",
    )
    longest_backoff: Milliseconds = Field(
        default=60_000,
        description="Maximum delay between attempts.",
    )
    max_attempts: Limit | None = Field(
        default=None,
        description="Number of hand-overs [without an answer](delivery.md#per-channel) after which "
        "a message becomes a dead letter; by default there is no limit.",
    )
    history: Annotated[int, Field(ge=0, le=MOST_ENTRIES)] = Field(
        default=0,
        description="Number of messages that each channel [keeps](replay.md) for those who "
        "subscribe later, up to 10,000.",
    )
    history_bytes: SizeLimit = Field(
        default=HISTORY_BYTES,
        description="Maximum size of what each of these channels keeps.",
    )
    work_queue: bool = Field(
        default=False,
        description="Each message goes to one receiver: the channel is a [work "
        "queue](work-queues.md).",
    )
    topic: bool = Field(
        default=False,
        description="The channels are [topics](topics.md), with a life of their own.",
    )
    destroy_delay: Annotated[int, Field(ge=-1)] = Field(
        default=60_000,
        description="How long a topic stays, in milliseconds, when nothing refers to it any more; "
        "`-1` keeps it until it is erased.",
    )
    readonly: bool = Field(
        default=False,
        description="Topics refuse a second message.",
    )
    presence: bool = Field(
        default=False,
        description="Clients with the right may see [who is on the channels](presence.md).",
    )
    guard: bool = Field(
        default=False,
        description="The server [holds a channel back](delivery.md#channel-holds) when most of its "
        "receivers refuse most messages.",
    )

    @model_validator(mode="after")
    def _check_topic(self) -> Self:
        """Refuse options that have no effect."""
        if "history_bytes" in self.model_fields_set and not self.history:
            raise ValueError("history_bytes has no effect without history")
        if self.work_queue and self.history:
            raise ValueError("work_queue excludes history: what one receiver takes is not kept")
        of_topics = {"destroy_delay", "readonly"} & self.model_fields_set
        if of_topics and not self.topic:
            raise ValueError(f"{min(of_topics)} needs topic = true")
        return self
