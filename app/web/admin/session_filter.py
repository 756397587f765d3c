"""The session filter, shared by REST and the command line."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.store.format.operator_input import Channel, Ms, values_of

AnyDispatcherState = Annotated[DispatcherState, values_of(DispatcherState)]


class SessionFilter(BaseModel):
    """Conditions on sessions. All of them hold together; none means all sessions."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    prefix: Annotated[str, Field(max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")] = Field(
        default="",
        title="Begins with",
        description="Beginning of the session name.",
        examples=["joe/"],
    )
    state: AnyDispatcherState | None = Field(
        default=None,
        description="The `connectionState`: UNDEF, ALIVE, POLLING or DEAD.",
        json_schema_extra={
            "x-words": {
                "ALIVE": "alive",
                "POLLING": "lost or retrying",
                "UNDEF": "away or not connected yet",
                "DEAD": "dead",
            }
        },
    )
    held: bool | None = Field(
        default=None,
        title="Delivery",
        description="Held back, or active.",
        json_schema_extra={"x-words": {"true": "held back", "false": "active"}},
    )
    channel: Channel | None = Field(
        default=None,
        title="Subscribed to",
        description="Subscribed to exactly this channel or pattern.",
        examples=["/orders"],
    )
    unconnected: bool | None = Field(
        default=None,
        title="Client",
        description="Its client has not connected yet or is absent; or the opposite.",
        json_schema_extra={"x-words": {"true": "unconnected", "false": "connected"}},
    )
    seen_before: Ms | None = Field(
        default=None,
        title="Not seen since",
        description="Its client has not been seen since this time.",
    )
    begun_before: Ms | None = Field(
        default=None, title="Begun before", description="It began before this time."
    )


ALL_SESSIONS = SessionFilter()
