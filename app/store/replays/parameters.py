"""The replay options, shared by REST, command line and the store."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from holdfast.delivery.basics.json_text import to_json
from holdfast.store.format.operator_input import SessionKey

_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Edit(BaseModel):
    """New content for a letter."""

    model_config = _STRICT

    data: Any = Field(description="Takes the place of the letter's data; 64 KiB at most.")


class ReplayOptions(BaseModel):
    """The options of a replay: how carefully, and to which session."""

    model_config = _STRICT

    rate: int = Field(
        default=50, ge=1, le=10_000, title="Letters per second", description="Letters per second."
    )
    canary: int = Field(
        default=10,
        ge=0,
        le=1000,
        title="Canary size",
        description="Letters that are sent first; the rest waits until these are settled.",
    )
    stop_at: float = Field(
        default=0.1,
        gt=0,
        le=1,
        title="Stop at this failure rate",
        description="Stop when more than this share of the settled letters died again.",
    )
    max_replays: int = Field(
        default=3,
        ge=1,
        le=100,
        title="Skip letters replayed this often",
        description="Skip letters that were replayed this often.",
    )
    to: SessionKey | None = Field(
        default=None,
        title="Session",
        description="Session that gets all letters: joe/2.",
        examples=["joe/2"],
    )
    edit: Edit | None = Field(
        default=None, description="New data for the one letter in `ids`; it becomes a new message."
    )

    @property
    def data(self) -> str | None:
        """The new data as JSON, if there are any."""
        return None if self.edit is None else to_json(self.edit.data).decode()


USUAL_OPTIONS = ReplayOptions()
