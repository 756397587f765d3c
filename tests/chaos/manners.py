"""How receivers behave, and which verdicts they give."""

from dataclasses import dataclass, field
from typing import Any

HOLDBACK = "user.update.holdback"
STUMBLE = "communication.noConnection"
STOPS = (HOLDBACK, STUMBLE)
STUMBLE_MS = 200
RESPONSE_TIMEOUT_MS = 60_000
# Receivers use these codes in turn.
REFUSALS = ("user.update.error", "user.update.deadMessage", "user.clientCode")


@dataclass(frozen=True, slots=True)
class Manner:
    """How a receiver behaves; the tag of a message, not chance, decides whether it is refused."""

    acks: bool = True
    gives_verdicts: bool = True
    # Gives the verdict OK on each entry even where the ack would do.
    is_explicit: bool = False
    refuses_one_in: int = 0
    # At these messages, once each, it asks to be held back, or to get the message again soon.
    holds_back_at: int = 0
    held_s: float = 1.0
    stumbles_at: int = 0
    # After so many answers it forgets its session, as if its process had died.
    crashes_after: int = 0
    # Each time after so many answers it ends its session, whatever is in flight.
    leaves_after: int = 0
    # It crashes whenever it gets this message, without a verdict on the rest of the batch.
    dies_of: str = ""
    # Each time after so many answers it acknowledges what was never sent.
    lies_after: int = 0
    # It remembers the cursor of its last answer, and catches up from it in each session.
    goes_on: bool = False
    options: dict[str, Any] = field(default_factory=lambda: {"retries": -1})

    @property
    def timeout_ms(self) -> int | None:
        """How long the server waits for verdicts if there are no acks that show lost replies."""
        if self.acks or not self.gives_verdicts:
            return None
        timeout_ms: int = self.options.get("responseTimeout", RESPONSE_TIMEOUT_MS)
        return timeout_ms


@dataclass(frozen=True, slots=True)
class Entry:
    """One delivery and its verdict; an empty code is acceptance."""

    tag: str
    generation: int
    seq: int
    code: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"tag": self.tag, "generation": self.generation, "seq": self.seq, "code": self.code}

    def verdict(self) -> dict[str, Any]:
        if not self.code:
            return {"seq": self.seq, "state": "OK"}
        verdict = {"seq": self.seq, "errorCode": self.code, "message": f"{self.tag} is not wanted"}
        return verdict | ({"delay": STUMBLE_MS} if self.code == STUMBLE else {})
