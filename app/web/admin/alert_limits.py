"""The alerts and their limits, which the file named by the setting `alerts` may change."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from holdfast.units import Unit

_Ms = Annotated[int, Field(ge=0), Unit.MS]
_Number = Annotated[int, Field(ge=0)]


class Alert(StrEnum):
    """What operators are alerted to. The metrics have exactly these labels."""

    OLDEST = "oldest"
    ABSENT = "absent"
    LETTERS = "letters"
    REFUSED = "refused"
    INGEST = "ingest"
    AUDIT = "audit"
    SHARDS = "shards"
    REPLICAS = "replicas"
    FILES = "files"


class AlertLimits(BaseModel):
    """From which value on each alert is raised; 0 switches it off."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    oldest: _Ms = Field(
        default=600_000,
        description="Age of the oldest entry in a work queue, or in the queue of a client that is "
        "not absent.",
    )
    absent: _Ms = Field(
        default=0,
        description="Age of the oldest entry that waits for an absent client or for a subject. Off "
        "by default: users may stay away.",
    )
    letters: _Number = Field(default=60, description="Dead letters within a minute.")
    refused: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.2,
        description="Share of refusals among all verdicts and acks within five minutes.",
    )
    refused_at_least: Annotated[int, Field(ge=1)] = Field(
        default=20,
        description="With fewer refusals within five minutes, their share does not matter.",
    )
    ingest: _Ms = Field(
        default=7_200_000,
        description="Age of the oldest events that some tables of the pipeline lack.",
    )
    audit: _Number = Field(default=1, description="Violations that the latest audit found.")
    shards: _Ms = Field(
        default=5_000,
        description="For how long another worker cannot be reached. A restart takes less.",
    )
    replicas: Annotated[int, Field(ge=0, le=1)] = Field(
        default=1,
        description="Too few replicas confirm messages, so publishers get `unknown`; only with "
        "`durability = replicas:N`. It is cleared as soon as they do.",
    )
    files: _Number = Field(
        default=1,
        description="Files of rights, limits, users, keys, tokens or TLS that were changed and "
        "cannot be used. It is cleared as soon as they can.",
    )
    clear_after: _Ms = Field(
        default=300_000,
        description="How long a value must be at most four fifths of its limit until the alert is "
        "cleared.",
    )

    def of(self, alert: Alert) -> float:
        """Return the limit of this alert."""
        limit: float = getattr(self, alert.value)
        return limit
