"""The view of a topic."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from holdfast.delivery.topics.states import TopicState
from holdfast.store.format.operator_input import values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic, with its configuration and what its state follows from."""

    channel: str
    # A topic that is DEAD is not found.
    state: Annotated[TopicState, values_of(TopicState, without=[TopicState.DEAD])]
    destroy_delay: Annotated[
        int,
        Field(description="Milliseconds that it stays unreferenced; -1: until it is erased."),
    ]
    readonly: bool
    history: Annotated[int, Field(ge=0, description="Messages that its history keeps at most.")]
    kept: Annotated[int, Field(ge=0, description="Messages in its history.")]
    queued: Annotated[int, Field(ge=0, description="Entries in queues.")]
    work: Annotated[int, Field(ge=0, description="Of these, the ones in its work queue.")]
    subscribers: Annotated[int, Field(ge=0, description="Subscriptions to exactly this channel.")]
