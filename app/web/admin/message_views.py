"""Views of messages: what they are, where they are, and what happened to them."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from holdfast.delivery.basics.json_text import part
from holdfast.delivery.basics.node import NS_PER_MS, Node
from holdfast.delivery.messages.message import Message
from holdfast.journal.schema import Event
from holdfast.store.format.operator_input import Count, Ms
from holdfast.web.admin.letter_views import LetterSummary
from holdfast.web.admin.views import view_of

# Larger data is not shown.
_LARGEST = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMessage:
    """One message in the history of a channel, or in a queue."""

    id: Annotated[str, Field(description="The message: `<deployment>-<ns>`.")]
    channel: str
    sender: str
    priority: Annotated[int, Field(ge=0, le=9)]
    published: Ms
    durable: bool
    bytes: Count
    data: Annotated[Any, Field(description="Null if `is_cut`.")]
    is_cut: Annotated[bool, Field(description="`data` is beyond 64 KiB and left out.")]


@dataclass(frozen=True, slots=True)
class TraceQueue:
    """A message in the queue of one session."""

    receiver: str
    state: Literal["waiting", "in_flight"]
    held: Annotated[bool, Field(description="The session is held back.")]
    attempts: Count
    redelivered: Count
    gone_since: Annotated[
        Ms | None,
        Field(description="When its client was last seen, if it has left or was silent for long."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    """One line of the journal about a message."""

    at_us: Annotated[int, Field(ge=0, description="Microseconds since 1970.")]
    node: str
    kind: Annotated[str, Field(description="Such as `published`, `handed`, `acked`, `dead`.")]
    receiver: str | None
    channel: str | None
    attempt: int | None
    code: str | None
    letter: str | None
    copies: int | None
    sender: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A message's places and history. Only the first part has the places; all have history."""

    id: Annotated[str, Field(description="The message: `<deployment>-<ns>`.")]
    published: Annotated[
        int | None, Field(description="Null if this part knows nothing of such a message.")
    ]
    journal: Annotated[bool, Field(description="Whether the server writes a journal.")]
    lakes: Annotated[
        list[str],
        Field(
            description="Tables that have its steps for longer: `machine:folder`, or "
            "`s3://bucket/prefix`."
        ),
    ]
    queues: Annotated[list[TraceQueue], Field(description="Queues that have it, the first 1000.")]
    letters: Annotated[list[LetterSummary], Field(description="Its dead letters, the first 100.")]
    is_cut: Annotated[bool, Field(description="Not all queues and letters were looked at.")]
    steps: list[TraceStep]
    cursor: Annotated[
        str | None, Field(description="For the next part; null at the end of the journal.")
    ]


def kept_message(node: Node, message: Message) -> KeptMessage:
    """Return a message without what only one receiver has of it."""
    is_cut = len(message.wire) > _LARGEST
    return view_of(
        KeptMessage,
        message,
        id=node.id_of(message.id),
        published=message.id // NS_PER_MS,
        durable=message.is_durable,
        bytes=len(message.wire),
        data=None if is_cut else part(orjson.loads(message.wire).get("data")),
        is_cut=is_cut,
    )


def step_of(event: Event) -> TraceStep:
    """One event of the journal."""
    letter = None if event.letter is None else f"{event.letter:019d}"
    return view_of(TraceStep, event, at_us=event.ts, letter=letter)
