"""The letter filter, shared by REST and console, command line, replays and the store.

`pipeline.replay` has its conditions in SQL, for letters in the tables.
"""

from pydantic import BaseModel, ConfigDict, Field

from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.store.format.operator_input import (
    AnyLetterState,
    Channel,
    Code,
    Fingerprint,
    LetterId,
    Ms,
    SessionKey,
    Subject,
)

_LATEST = 10**19 - 1


class LetterFilter(BaseModel):
    """Conditions on dead letters, all of which must hold. Without any, all letters match."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    ids: tuple[LetterId, ...] = Field(default=(), max_length=1000)
    channel: Channel | None = Field(default=None, description="Published on this channel.")
    receiver: SessionKey | None = Field(
        default=None,
        description="Session that the letter was for: joe/1.",
        examples=["joe/1"],
    )
    code: Code | None = Field(default=None, description="Died with this error code.")
    state: AnyLetterState | None = Field(default=None, description="new or replayed.")
    fingerprint: Fingerprint | None = Field(
        default=None, description="In the group with this fingerprint; see dead list --groups."
    )
    subject: Subject | None = Field(default=None, description="Subject of the receiver.")
    since: Ms | None = Field(
        default=None, title="Died since", description="Died at this time or later."
    )
    until: Ms | None = Field(
        default=None, title="Died before", description="Died before this time."
    )

    def matches(self, letter: DeadLetter) -> bool:
        """Return whether the letter meets all conditions except conditions on id and time."""
        pairs = (
            (self.channel, letter.channel),
            (self.receiver, letter.key),
            (self.subject, letter.subject),
            (self.code, letter.code),
            (self.fingerprint, letter.fingerprint),
            (self.state, letter.state),
        )
        return all(wanted is None or wanted == found for wanted, found in pairs)

    def range(self) -> tuple[str, str]:
        """Return the smallest and the largest matching id."""
        first = 0 if self.since is None else self.since * NS_PER_MS
        last = _LATEST if self.until is None else self.until * NS_PER_MS - 1
        return letter_id(first), letter_id(last)


ALL_LETTERS = LetterFilter()


def letter_id(ns: int) -> str:
    """Return the id of a letter that died at this time."""
    return f"{min(max(ns, 0), _LATEST):019d}"
