"""Decides whether a queue may flow and when the next attempt is due."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

# The first attempt after a failure follows soon, whatever the configured delay (seconds).
FIRST_ATTEMPT_S = 0.4
# The shortest pause after a refusal (seconds). It doubles with each hand-over, ...
_LEAST_PAUSE_S = 0.1
# ... up to this, or to the session's delay if that is longer.
_LONGEST_LEAST_PAUSE_S = 1.0


class DispatcherState(Enum):
    """The receiver's state."""

    # Members are compared by identity; Enum's own hash is a slow Python function.
    __hash__ = object.__hash__

    UNDEF = "UNDEF"
    ALIVE = "ALIVE"
    POLLING = "POLLING"
    DEAD = "DEAD"


class DispatcherInput(Enum):
    """Inputs that change a receiver's state."""

    __hash__ = object.__hash__

    CONTACT = "contact"
    ATTEMPT = "attempt"
    LOSS = "loss"
    REFUSAL = "refusal"
    # Not in the table: a hold leaves the connection state unchanged.
    HOLD = "hold"
    GIVE_UP = "give up"
    END = "end"


NEXT: dict[tuple[DispatcherState, DispatcherInput], DispatcherState] = {
    (DispatcherState.UNDEF, DispatcherInput.CONTACT): DispatcherState.ALIVE,
    (DispatcherState.UNDEF, DispatcherInput.LOSS): DispatcherState.POLLING,
    (DispatcherState.UNDEF, DispatcherInput.REFUSAL): DispatcherState.POLLING,
    (DispatcherState.UNDEF, DispatcherInput.GIVE_UP): DispatcherState.DEAD,
    (DispatcherState.UNDEF, DispatcherInput.END): DispatcherState.DEAD,
    (DispatcherState.ALIVE, DispatcherInput.LOSS): DispatcherState.POLLING,
    (DispatcherState.ALIVE, DispatcherInput.REFUSAL): DispatcherState.POLLING,
    (DispatcherState.ALIVE, DispatcherInput.GIVE_UP): DispatcherState.DEAD,
    (DispatcherState.ALIVE, DispatcherInput.END): DispatcherState.DEAD,
    (DispatcherState.POLLING, DispatcherInput.CONTACT): DispatcherState.ALIVE,
    (DispatcherState.POLLING, DispatcherInput.ATTEMPT): DispatcherState.ALIVE,
    (DispatcherState.POLLING, DispatcherInput.GIVE_UP): DispatcherState.DEAD,
    (DispatcherState.POLLING, DispatcherInput.END): DispatcherState.DEAD,
}


def least_pause_s(attempts: int, longest_s: float = 0.0) -> float:
    """The shortest pause before a message is handed over again, whatever the receiver asks for."""
    grown_s = _LEAST_PAUSE_S * 2.0 ** min(attempts - 1, 30)
    return min(grown_s, max(longest_s, _LONGEST_LEAST_PAUSE_S))


def step(state: DispatcherState, seen: DispatcherInput) -> DispatcherState:
    """Return the next state. Without a row the state stays, so DEAD is final."""
    return NEXT.get((state, seen), state)


class WaitReason(Enum):
    """What a POLLING receiver waits for."""

    # Contact was lost: a connect counts as a successful attempt, a missing one as a failed one.
    CLIENT = "client"
    # The receiver refused or gave no verdict: connects are held until the attempt is due.
    TIME = "time"
    # Both: it refused, and then contact was lost before the attempt was due.
    CLIENT_AND_TIME = "client and time"


@dataclass(frozen=True, slots=True)
class Policy:
    """When to retry: `retries` -1 is unlimited, `delay_s` 0 turns retries off."""

    retries: int = 0
    delay_s: float = 60.0


@dataclass(frozen=True, slots=True)
class QueueHold:
    """Who holds a queue back, why, since when and until when (ms since 1970)."""

    reason: str
    who: str
    since: int
    until: int | None = None


DEFAULT_POLICY = Policy()


class Dispatcher:
    """The dispatcher of one receiver. Call `due` at `deadline`; None means never.

    `attempt` is the retry counter: the number of the attempt that is awaited or was made. A connect
    resets it, unless the receiver refused something after its last ack. While POLLING, `deadline`
    is the time of the next attempt; while ALIVE, the end of a pause. `since` is when the state was
    entered; None means when the receiver began or, if DEAD, when it ended.
    """

    __slots__ = (
        "_awaited",
        "_has_refused",
        "acknowledged",
        "attempt",
        "deadline",
        "hold_ends_at",
        "hold_record",
        "is_calm",
        "policy",
        "since",
        "state",
    )

    def __init__(self, policy: Policy = DEFAULT_POLICY) -> None:
        self.policy = policy
        self.state = DispatcherState.UNDEF
        self.since: float | None = None
        self.attempt = 0
        self.deadline: float | None = None
        self.hold_record: QueueHold | None = None
        # When the hold ends by the clock of the deadlines; zero if only somebody ends it.
        self.hold_ends_at = 0.0
        self._awaited: WaitReason | None = None
        self._has_refused = False
        # How many messages the receiver has acknowledged, for operators.
        self.acknowledged = 0
        # Whether everything flows and contact and acks change nothing. This is the common case, in
        # which callers skip those calls.
        self.is_calm = False

    @property
    def is_active(self) -> bool:
        """Whether the queue is not held back."""
        return self.hold_record is None

    @property
    def is_dead(self) -> bool:
        return self.state is DispatcherState.DEAD

    def flows(self, now: float) -> bool:
        """Return whether the queue may hand anything over."""
        return (
            self.state is DispatcherState.ALIVE
            and self.hold_record is None
            and (self.deadline is None or now >= self.deadline)
        )

    def gives_up(self) -> bool:
        """Return whether the next failure is the last. Not while held back or POLLING."""
        if self.is_dead:
            return True
        return self.hold_record is None and self._awaited is None and self._is_exhausted()

    def contact(self, now: float) -> None:
        """Record that the receiver connected."""
        if self._awaited in (WaitReason.TIME, WaitReason.CLIENT_AND_TIME):
            self._awaited = WaitReason.TIME
            self.due(now)
            return
        if not self._has_refused:
            self.attempt = 0
        if self.state is not DispatcherState.ALIVE:
            self._step(DispatcherInput.CONTACT, now)
        self.is_calm = (
            self.state is DispatcherState.ALIVE
            and self.hold_record is None
            and self.deadline is None
            and not self._has_refused
        )

    def heard(self, now: float) -> None:
        """Record that the receiver has said something of a message, ahead of its next connect."""
        if self.state is DispatcherState.UNDEF or self._awaited is WaitReason.CLIENT:
            self.contact(now)

    def lost(self, now: float) -> None:
        """Record that the receiver was silent for too long."""
        if self.is_dead:
            return
        if self._awaited is not None:
            self._lose_waiting()
        elif self.hold_record is not None:
            self._step(DispatcherInput.LOSS, now, WaitReason.CLIENT)
        else:
            self._fail(DispatcherInput.LOSS, WaitReason.CLIENT, now=now)

    def refused(self, now: float, delay_s: float | None = None, attempts: int = 1) -> None:
        """Record that the receiver refused a message or gave no verdict in time.

        `attempts` is how often the message was handed over; the shortest pause grows with it.
        """
        self.is_calm = False
        self._has_refused = True
        if self.hold_record is not None or self.is_dead:
            return
        least_s = least_pause_s(attempts, self.policy.delay_s)
        if self._awaited is None:
            self._fail(
                DispatcherInput.REFUSAL, WaitReason.TIME, now=now, delay_s=delay_s, least_s=least_s
            )
        elif self._awaited is WaitReason.TIME and self.deadline is not None:
            # Refusals of entries handed over before the failure are part of the same failure.
            self.deadline = max(self.deadline, now + max(delay_s or 0.0, least_s))

    def due(self, now: float) -> None:
        """Handle a deadline that has passed."""
        if self.deadline is None or now < self.deadline:
            return
        if self._awaited in (WaitReason.CLIENT, WaitReason.CLIENT_AND_TIME):
            self._fail(DispatcherInput.LOSS, WaitReason.CLIENT, now=now)
        else:
            self._step(DispatcherInput.ATTEMPT, now)

    def pause(self, now: float, pause_s: float) -> None:
        """Hand nothing over for a while. This is not a failure."""
        self.is_calm = False
        if self.state is DispatcherState.ALIVE:
            self.deadline = max(self.deadline or now, now + pause_s)

    def acked(self) -> None:
        """Record that the receiver accepted an entry: the retry counter starts over."""
        self._has_refused = False
        self.attempt = min(self.attempt, 1) if self._awaited else 0

    def hold_back(self, record: QueueHold) -> None:
        """Hold the queue back. While it is held, lost contact never ends the receiver."""
        self.is_calm = False
        self.hold_record, self.hold_ends_at = record, 0.0
        if self._awaited in (WaitReason.CLIENT, WaitReason.CLIENT_AND_TIME):
            self._lose_waiting()

    def resume(self, now: float) -> None:
        """Resume the queue. It flows if the connection allows it."""
        self.hold_record, self.hold_ends_at = None, 0.0
        if self._awaited is WaitReason.CLIENT and self.deadline is None:
            # A client that is away still gets time to return.
            self.deadline = now + self._pause_s()

    def left(self, now: float) -> dict[str, Any]:
        """Return how far it is, for the next process, without the policy and the hold."""
        return {
            "state": self.state.value,
            "since": None if self.since is None else now - self.since,
            "attempt": self.attempt,
            "deadline": None if self.deadline is None else self.deadline - now,
            "awaited": None if self._awaited is None else self._awaited.value,
            "refused": self._has_refused,
            "acknowledged": self.acknowledged,
            "calm": self.is_calm,
        }

    def go_on(self, left: Mapping[str, Any], now: float) -> None:
        """Continue as `left` by an earlier process."""
        self.state = DispatcherState(left["state"])
        self.since = None if left["since"] is None else now - left["since"]
        self.attempt = left["attempt"]
        self.deadline = None if left["deadline"] is None else now + left["deadline"]
        self._awaited = None if left["awaited"] is None else WaitReason(left["awaited"])
        self._has_refused = left["refused"]
        self.acknowledged = left["acknowledged"]
        self.is_calm = left["calm"]

    def end(self, why: DispatcherInput = DispatcherInput.END) -> None:
        """Hand nothing over from now on."""
        self._step(why)

    def _lose_waiting(self) -> None:
        if self.hold_record is not None:
            self._awaited = WaitReason.CLIENT
            self.deadline = None
        elif self._awaited is WaitReason.TIME:
            self._awaited = WaitReason.CLIENT_AND_TIME

    def _fail(
        self,
        seen: DispatcherInput,
        awaited: WaitReason,
        *,
        now: float,
        delay_s: float | None = None,
        least_s: float = 0.0,
    ) -> None:
        """Wait for the next attempt, or give up if this was the last."""
        if self._is_exhausted():
            self._step(DispatcherInput.GIVE_UP)
            return
        self.attempt += 1
        pause_s = self._pause_s() if delay_s is None else delay_s
        self._step(seen, now, awaited, now + max(pause_s, least_s))

    def _is_exhausted(self) -> bool:
        return self.policy.delay_s == 0 or 0 <= self.policy.retries <= self.attempt

    def _pause_s(self) -> float:
        return FIRST_ATTEMPT_S if self.attempt <= 1 else self.policy.delay_s

    def _step(
        self,
        seen: DispatcherInput,
        now: float | None = None,
        awaited: WaitReason | None = None,
        deadline: float | None = None,
    ) -> None:
        """Change the state. Without `awaited`, the receiver is alive or dead."""
        state = step(self.state, seen)
        if state is not self.state:
            self.state, self.since = state, now
            self.is_calm = False
        self._awaited = awaited
        self.deadline = deadline
