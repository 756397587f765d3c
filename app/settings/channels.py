"""The settings of channels."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from holdfast.delivery.messages.keeping import HISTORY_BYTES, MOST_ENTRIES
from holdfast.settings.section import Limit, Milliseconds, SizeLimit


class ChannelSettings(BaseModel):
    """Settings of the channels that match a pattern."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lazy: bool = False
    lazy_timeout: Milliseconds | None = None
    broadcast_to_publisher: bool = True
    durable: bool | None = None
    dead_letters: bool = True
    attempts: Limit = 1
    backoff: Milliseconds = 1_000
    longest_backoff: Milliseconds = 60_000
    max_attempts: Limit | None = None
    history: Annotated[int, Field(ge=0, le=MOST_ENTRIES)] = 0
    history_bytes: SizeLimit = HISTORY_BYTES
    work_queue: bool = False
    topic: bool = False
    destroy_delay: Annotated[int, Field(ge=-1)] = 60_000
    readonly: bool = False
    presence: bool = False
    guard: bool = False

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
