"""The settings of webhooks."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from holdfast.delivery.basics.channels import Channels, Kind
from holdfast.delivery.queues.receivers import WEBHOOK_NAME
from holdfast.settings.section import (
    Milliseconds,
    Section,
    SignedPostSettings,
    TimeLimit,
)

_MOST_DELAYS = 20
_LONGEST_TIMEOUT_MS = 60_000
# A queue pauses no longer.
_LONGEST_DELAY_MS = 24 * 3_600_000

EventName = Literal["letters", "holdbacks", "presence", "session_ends", "alerts"]


class WebhookSettings(SignedPostSettings):
    """One webhook: where messages are posted, and which ones."""

    channels: list[str] = Field(
        default=[], description="Channels and patterns whose messages are posted."
    )
    events: list[EventName] = Field(
        default=[], description="[Events of the server](#events-of-the-server) that are posted."
    )
    delays: Annotated[
        list[Annotated[Milliseconds, Field(le=_LONGEST_DELAY_MS)]], Field(max_length=_MOST_DELAYS)
    ] = Field(
        default=[5_000, 30_000, 120_000, 600_000],
        description="Pauses before further attempts, in ms: at most 20, of a day at most.",
    )
    timeout: Annotated[TimeLimit, Field(le=_LONGEST_TIMEOUT_MS)] = Field(
        default=15_000, description="How long a call may take, at most a minute."
    )
    in_flight: Annotated[int, Field(ge=1, le=16)] = Field(
        default=1,
        description="How many calls are made at the same time, at most 16. With more than one, "
        "their order is open.",
    )

    @field_validator("channels")
    @classmethod
    def _check_channels(cls, channels: list[str]) -> list[str]:
        known = Channels()
        for pattern in channels:
            channel = known.get(pattern)
            if channel is None or channel.kind is not Kind.BROADCAST:
                raise ValueError(f"{pattern!r} is neither a channel nor a pattern of channels")
        return channels

    @model_validator(mode="after")
    def _check_what(self) -> Self:
        if not self.channels and not self.events:
            raise ValueError("channels or events must say what is posted")
        return self


class WebhooksSettings(Section):
    heading: ClassVar[str] = "Webhooks"

    webhooks: dict[str, WebhookSettings] = Field(
        default={}, description="[Webhooks](../how-to/webhooks.md), by name."
    )

    @field_validator("webhooks")
    @classmethod
    def _check_webhooks(cls, webhooks: dict[str, WebhookSettings]) -> dict[str, WebhookSettings]:
        for name in webhooks:
            if not WEBHOOK_NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r}: a name is a small letter and up to 30 small letters, digits or -"
                )
        return webhooks
