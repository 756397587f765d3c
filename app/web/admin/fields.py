"""Types of request fields besides filters and options, with their limits."""

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from holdfast.bayeux.wire.codec import RequestLimits, decode
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.bayeux.wire.unfit import Unfit
from holdfast.delivery.basics.json_text import to_json
from holdfast.settings.limits import LimitSettings
from holdfast.store.format.operator_input import GroupedBy, Ms, values_of
from holdfast.store.replays.parameters import ReplayOptions

# The most bytes that the data of an edited letter may have.
MAX_EDIT = 64 * 1024

Prefix = Annotated[
    str,
    Field(
        max_length=1024,
        pattern=r"^[^\x00-\x1f\x7f]*$",
        title="Begins with",
        description="Beginning of the name.",
        examples=["/orders"],
    ),
]
Text = Annotated[str, Field(max_length=1024, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
Assignee = Annotated[str, Field(max_length=64, pattern=r"^[^\x00-\x1f\x7f]*$", title="Who")]
SessionNumber = Annotated[str, Field(pattern=r"^-?[1-9][0-9]{0,19}$")]
MessageId = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9\-]{1,32}-[0-9]{19}$",
        title="Message id",
        examples=["holdfast-1763000000000000000"],
    ),
]
ReplayId = Annotated[str, Field(pattern=r"^[A-Za-z0-9\-]{1,64}$")]
CommandText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4096,
        description="The command, such as `client/joe/1/?dispatcherActive`.",
    ),
]
HoldEnd = Annotated[
    Ms | None,
    Field(title="Until (optional)", description="Time at which delivery resumes by itself."),
]
ResultName = Literal[
    "funnel",
    "dead",
    "causes",
    "latency",
    "poison",
    "holdback-advice",
    "trend",
    "lag",
    "refused-publishes",
    "audit",
]

_FROM_THE_PART_BEFORE = "The `cursor` of the previous part."
Sort = Annotated[
    str,
    Field(
        pattern=r"^(-?[a-z_]{1,64})?$",
        description="Sort by this field of the items; with a `-` before it, the largest first. "
        "Each part reads the whole list.",
    ),
]
By = Annotated[
    GroupedBy,
    values_of(GroupedBy),
    Field(
        description="What a group has in common: channel and code, the code, or the code and a "
        "channel pattern, in which a `*` stands for parts with digits."
    ),
]
Cursor = Annotated[
    Annotated[str, Field(max_length=4096, pattern=r"^[!-~]+$")] | None,
    Field(description=_FROM_THE_PART_BEFORE),
]
FrameCursor = Annotated[
    Annotated[str, Field(pattern=r"^[0-9]{1,19}-[0-9]{1,19}$")] | None,
    Field(description=_FROM_THE_PART_BEFORE),
]
FilterText = Annotated[
    Annotated[str, Field(max_length=1000, examples=["data.price > 100"])] | None,
    Field(description="Only messages that this filter of subscriptions passes."),
]
Limit = Annotated[int, Field(ge=1, le=500, description="Maximum number of items.")]
EntryLimit = Annotated[int, Field(ge=1, le=100, description="Maximum number of entries.")]
SessionLimit = Annotated[
    int, Field(ge=1, le=5000, description="Maximum number of sessions to end.")
]
All = Annotated[bool, Field(description="Confirms that an empty filter is meant.")]
DryRun = Annotated[bool, Field(description="Count only; change nothing.")]


def _with_publishable_data(options: ReplayOptions) -> ReplayOptions:
    """Refuse data for a letter that no client could publish."""
    if options.edit is None:
        return options
    # A number beyond JSON must not become null.
    json.dumps(options.edit.data, allow_nan=False)
    written = to_json(options.edit.data)
    if len(written) > MAX_EDIT:
        raise ValueError(f"edit.data has more than {MAX_EDIT} bytes")
    try:
        (message,) = decode(b'{"data":' + written + b"}", RequestLimits(LimitSettings()))
    except RequestRefused as refused:
        raise ValueError("edit.data cannot be published") from refused
    if isinstance(message, Unfit):
        raise ValueError(f"edit.data cannot be published: {message.fault.wire()}")
    return options


PublishableOptions = Annotated[ReplayOptions, AfterValidator(_with_publishable_data)]
