"""How receivers behave, and what they say of a message."""

from dataclasses import dataclass, field
from typing import Any

HOLDBACK = "user.update.holdback"
STUMBLE = "communication.noConnection"
STOPS = (HOLDBACK, STUMBLE)
STUMBLE_MS = 200
RESPONSE_TIMEOUT_MS = 60_000
# Refusals take turns.
REFUSALS = ("user.update.error", "user.update.deadMessage", "user.clientCode")


@dataclass(frozen=True, slots=True)
class Manner:
    """How a receiver behaves; of so many messages it refuses one, by the tag and not by chance."""

    acks: bool = True
    gives_verdicts: bool = True
    # Says OK to each entry even where the ack would do.
    is_explicit: bool = False
    refuses_one_in: int = 0
    # Once for each of these it stops there: it wants to be held back, or to be asked again soon.
    holds_back_at: int = 0
    held_s: float = 1.0
    stumbles_at: int = 0
    # After so many answers it forgets its session, as if its process had died.
    crashes_after: int = 0
    # Each time after so many answers it ends its session, whatever it has in hands.
    leaves_after: int = 0
    # Whenever it sees this message, the same happens, and it says nothing of what came with it.
    dies_of: str = ""
    # Each time after so many answers it acknowledges what was never sent.
    lies_after: int = 0
    # It remembers the cursor of its last answer, and goes on behind it in each session.
    goes_on: bool = False
    options: dict[str, Any] = field(default_factory=lambda: {"retries": -1})

    @property
    def timeout_ms(self) -> int | None:
        """How long the server waits for verdicts, where there are no acks to tell what was lost."""
        if self.acks or not self.gives_verdicts:
            return None
        timeout_ms: int = self.options.get("responseTimeout", RESPONSE_TIMEOUT_MS)
        return timeout_ms


@dataclass(frozen=True, slots=True)
class Entry:
    """One delivery, and the word on it: nothing is acceptance."""

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
