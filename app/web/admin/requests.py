"""What requests may say: parameters and bodies with their bounds. More than that is an error."""

import json
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.bayeux.codec import RequestLimits, decode
from app.bayeux.errors import RequestRefused
from app.bayeux.unfit import Unfit
from app.delivery.json_text import to_json
from app.web.admin.operations import LetterFilter, ReplayOptions, SessionFilter
from app.web.admin.shapes import DispatcherState, LetterState, Ms

# Names may have any letter in them, but nothing that nobody can see.
_VISIBLE = r"^[^\x00-\x1f\x7f]+$"
_NO_SLASH = r"^[^/\x00-\x1f\x7f]+$"

Channel = Annotated[str, Field(max_length=1024, pattern=_VISIBLE)]
Name = Annotated[str, Field(max_length=256, pattern=_VISIBLE)]
Subject = Annotated[str, Field(max_length=128, pattern=_NO_SLASH)]
LetterId = Annotated[str, Field(pattern=r"^[0-9]{19}$")]
MessageId = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}-[0-9]{19}$")]
ReplayId = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]
Text = Annotated[str, Field(max_length=1024, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
Fingerprint = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Cursor = Annotated[str, Field(max_length=256, pattern=r"^[!-~]+$")]


class Asked(BaseModel):
    """What every request has in common: nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Paged(Asked):
    """A part of a list."""

    cursor: Cursor | None = Field(default=None, description="From the part before.")
    limit: int = Field(default=100, ge=1, le=500, description="Items at most.")


class SessionsMeant(Asked):
    """Conditions on sessions; all of them hold together."""

    prefix: Annotated[str, Field(max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")] = Field(
        default="", description="Beginning of the key."
    )
    state: DispatcherState | None = Field(default=None, description="Of the dispatcher.")
    held: bool | None = Field(default=None, description="Held back, or not.")
    channel: Channel | None = Field(default=None, description="It subscribed to exactly this.")
    unconnected: bool | None = Field(
        default=None, description="Its client has not connected yet, has left or is lost; or not."
    )
    seen_before: Ms | None = Field(default=None, description="Heard of for the last time before.")
    begun_before: Ms | None = Field(default=None, description="It began before then.")

    def filter(self) -> SessionFilter:
        return SessionFilter(
            prefix=self.prefix,
            state=self.state,
            held=self.held,
            channel=self.channel,
            unconnected=self.unconnected,
            seen_before=self.seen_before,
            begun_before=self.begun_before,
        )


class SessionsAsked(SessionsMeant, Paged):
    """A part of the sessions."""


class SessionsWanted(Asked):
    """Sessions to be ended."""

    filter: SessionsMeant = SessionsMeant()
    all: bool = Field(default=False, description="A filter that any session passes is meant.")
    dry_run: bool = Field(description="Say only what would be done.")
    limit: int = Field(default=500, ge=1, le=5000, description="Sessions to end at most.")

    @property
    def is_sweeping(self) -> bool:
        """All sessions are meant, and nothing says that this is no mistake."""
        conditions = replace(self.filter.filter(), begun_before=None)
        return conditions == SessionFilter() and not self.all


class SessionNamed(Asked):
    """One session."""

    subject: Subject
    number: Annotated[str, Field(pattern=r"^-?[1-9][0-9]{0,19}$")]

    @property
    def key(self) -> str:
        return f"{self.subject}/{self.number}"


class QueueAsked(SessionNamed):
    """The queue of a session."""

    limit: int = Field(default=20, ge=1, le=100, description="Entries at most.")


class HoldWanted(Asked):
    """Why and how long."""

    reason: Text = Field(default="", description="For whoever looks at it later.")
    until: Ms | None = Field(default=None, description="Delivery goes on by itself then.")


class LettersMeant(Asked):
    """Conditions on dead letters; all of them hold together."""

    channel: Channel | None = None
    receiver: Name | None = Field(default=None, description="Key of the session: `joe/1`.")
    subject: Subject | None = Field(default=None, description="Of the receiver.")
    code: Annotated[str, Field(pattern=r"^[A-Za-z.]{1,128}$")] | None = None
    fingerprint: Fingerprint | None = None
    state: LetterState | None = None
    since: Ms | None = Field(default=None, description="Died then or later.")
    until: Ms | None = Field(default=None, description="Died before then.")

    def filter(self, ids: tuple[str, ...] = ()) -> LetterFilter:
        return LetterFilter(
            ids=ids,
            channel=self.channel,
            receiver=self.receiver,
            subject=self.subject,
            code=self.code,
            fingerprint=self.fingerprint,
            state=self.state,
            since=self.since,
            until=self.until,
        )


class LettersAsked(LettersMeant, Paged):
    """A part of the dead letters."""


class GroupsAsked(Paged):
    """Which groups."""

    fingerprint: Fingerprint | None = Field(default=None, description="This one alone.")
    limit: int = Field(default=50, ge=1, le=500, description="Groups at most.")


class GroupNamed(Asked):
    """What failed alike."""

    fingerprint: Fingerprint


class RemarkWanted(Asked):
    """Who looks after what failed alike, and what is known of it."""

    assignee: Annotated[str, Field(max_length=64, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    note: Text = ""


class LetterNamed(Asked):
    """One dead letter."""

    id: LetterId


class LettersChosen(LettersMeant):
    """Conditions, or letters one by one."""

    ids: tuple[LetterId, ...] = Field(default=(), max_length=1000)


class LettersWanted(Asked):
    """Dead letters to do something with."""

    filter: LettersChosen = LettersChosen()
    all: bool = Field(default=False, description="An empty filter is meant.")
    dry_run: bool = Field(description="Say only what would be done.")

    @property
    def is_sweeping(self) -> bool:
        """All letters are meant, and nothing says that this is no mistake."""
        return self.letters() == LetterFilter() and not self.all

    def letters(self) -> LetterFilter:
        return self.filter.filter(self.filter.ids)


class PurgeWanted(LettersWanted):
    """Dead letters to be removed for good."""


# What an edited letter may have, in bytes.
MAX_EDIT = 64 * 1024


class Edit(Asked):
    """What a letter is to say instead."""

    data: Any = Field(description="Takes the place of the letter's data; 64 KiB at most.")

    @field_validator("data")
    @classmethod
    def _is_fit(cls, data: Any) -> Any:  # noqa: ANN401 - whatever JSON has
        # Who has no number must not get null for it.
        json.dumps(data, allow_nan=False)
        written = to_json(data)
        if len(written) > MAX_EDIT:
            raise ValueError(f"data has more than {MAX_EDIT} bytes")
        try:
            (message,) = decode(b'{"data":' + written + b"}", RequestLimits())
        except RequestRefused as refused:
            raise ValueError("nobody could publish such data") from refused
        if isinstance(message, Unfit):
            raise ValueError(f"nobody could publish such data: {message.fault.wire()}")
        return data


class ReplayCare(Asked):
    """How carefully a replay goes."""

    rate: int = Field(default=50, ge=1, le=10_000, description="Letters per second.")
    canary: int = Field(
        default=10, ge=0, le=1000, description="So many go first and must be settled."
    )
    stop_at: float = Field(
        default=0.1, gt=0, le=1, description="Stops when more than this part died again."
    )
    max_replays: int = Field(
        default=3, ge=1, le=100, description="Leaves out what was replayed so often."
    )
    to: Name | None = Field(
        default=None, description="Key of a session that gets all of it: `joe/2`; else its own."
    )

    edit: Edit | None = Field(
        default=None, description="The one letter in `ids` goes out as a new message with this."
    )

    def options(self) -> ReplayOptions:
        data = None if self.edit is None else to_json(self.edit.data).decode()
        return ReplayOptions(self.rate, self.canary, self.stop_at, self.max_replays, self.to, data)


class ReplayWanted(LettersWanted):
    """Dead letters to be delivered once more."""

    options: ReplayCare = ReplayCare()


class ReplayNamed(Asked):
    """One replay."""

    id: ReplayId


class CommandAsked(Asked):
    """A question in the administrative grammar."""

    command: Annotated[str, Field(min_length=1, max_length=4096)] = Field(
        description="Like `client/joe/1/?dispatcherActive`."
    )


class CommandWanted(CommandAsked):
    """A command of the administrative grammar."""

    value: Text | None = Field(default=None, description="To be set, if it is not in the command.")


class ChannelsAsked(Paged):
    """Which channels."""

    prefix: Annotated[str, Field(max_length=1024, pattern=r"^[^\x00-\x1f\x7f]*$")] = Field(
        default="", description="Beginning of the name."
    )


class ResultNamed(Asked):
    """Something that the pipeline finds out."""

    result: Literal["dead", "latency", "poison", "holdback-advice"]


class MessageNamed(Asked):
    """One message, and how far it was read what happened to it."""

    id: MessageId
    cursor: Annotated[str, Field(pattern=r"^[0-9]{1,19}-[0-9]{1,19}$")] | None = Field(
        default=None, description="From the part before."
    )


class ChannelNamed(Asked):
    """One channel."""

    channel: Channel
