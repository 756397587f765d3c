"""Settings of failed deliveries and dead letters."""

from typing import Annotated, ClassVar

from pydantic import Field

from holdfast.settings.section import Limit, Milliseconds, Section, SizeLimit
from holdfast.units import Unit


class DeliverySettings(Section):
    heading: ClassVar[str] = "Delivery and dead letters"

    delivery: bool = Field(
        default=True, description="Offer reliable delivery, with verdicts on single messages."
    )
    dead_letter_age: Milliseconds = Field(
        default=30 * 24 * 3600 * 1000, description="Time after which dead letters are removed."
    )
    dead_letter_count: Limit = Field(default=100_000, description="Maximum number of dead letters.")
    dead_letter_bytes: SizeLimit = Field(
        default=256 * 1024**2, description="Maximum size of all dead letters."
    )
    dead_letter_share_bytes: SizeLimit = Field(
        default=64 * 1024**2,
        description="Maximum size of the dead letters of one channel, and of one subject.",
    )
    guard_window: Annotated[int, Unit.MS] = Field(
        default=60_000,
        ge=1_000,
        description="Time for which the [guard](delivery.md#channel-holds) remembers refusals.",
    )
    guard_receivers: Limit = Field(
        default=3,
        description="Minimum number of receivers that refuse before a guarded channel is held.",
    )
    guard_messages: int = Field(
        default=5,
        ge=1,
        le=1_000,
        description="Minimum number of refused messages before a channel is held.",
    )
    guard_retry: Annotated[int, Unit.MS] = Field(
        default=5_000,
        ge=100,
        le=300_000,
        description="Delay before a held channel is probed; it doubles, up to 5 minutes.",
    )
    ptp_create_session: bool = Field(
        default=False,
        description="Let messages with `forceQueuing` wait for a named session that does not "
        "exist: see [point-to-point](point-to-point.md#sessions-that-do-not-exist).",
    )
