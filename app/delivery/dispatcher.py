"""Whether a receiver's queue may flow: the state of its connection, and whether it is held back."""

from dataclasses import dataclass
from enum import Enum

# The first attempt after a failure comes soon, whatever the delay between later ones (seconds).
FIRST_ATTEMPT_S = 0.4
# A message that was refused stays away for this long at least, twice as long with each hand-over
# (seconds), ...
_LEAST_PAUSE_S = 0.1
# ... up to this, or to the session's delay if that is longer.
_LONGEST_LEAST_PAUSE_S = 1.0


class State(Enum):
    """What is known of the receiver."""

    # Rows are looked up by identity; the usual hash of enums is a function in Python.
    __hash__ = object.__hash__

    UNDEF = "undef"
    ALIVE = "alive"
    POLLING = "polling"
    DEAD = "dead"


class Input(Enum):
    """What can happen to a receiver."""

    __hash__ = object.__hash__

    CONTACT = "contact"
    ATTEMPT = "attempt"
    LOSS = "loss"
    REFUSAL = "refusal"
    # Has no rows: being held back is independent of the connection, whose state stays.
    HOLD = "hold"
    GIVE_UP = "give up"
    END = "end"


NEXT: dict[tuple[State, Input], State] = {
    (State.UNDEF, Input.CONTACT): State.ALIVE,
    (State.UNDEF, Input.LOSS): State.POLLING,
    (State.UNDEF, Input.REFUSAL): State.POLLING,
    (State.UNDEF, Input.GIVE_UP): State.DEAD,
    (State.UNDEF, Input.END): State.DEAD,
    (State.ALIVE, Input.LOSS): State.POLLING,
    (State.ALIVE, Input.REFUSAL): State.POLLING,
    (State.ALIVE, Input.GIVE_UP): State.DEAD,
    (State.ALIVE, Input.END): State.DEAD,
    (State.POLLING, Input.CONTACT): State.ALIVE,
    (State.POLLING, Input.ATTEMPT): State.ALIVE,
    (State.POLLING, Input.GIVE_UP): State.DEAD,
    (State.POLLING, Input.END): State.DEAD,
}


def least_pause_s(attempts: int, longest_s: float = 0.0) -> float:
    """How long a message that was handed over so often stays away, whatever its receiver says."""
    grown_s = _LEAST_PAUSE_S * 2.0 ** min(attempts - 1, 30)
    return min(grown_s, max(longest_s, _LONGEST_LEAST_PAUSE_S))


def step(state: State, seen: Input) -> State:
    """The state after `seen`: without a row it stays, so nothing leads out of DEAD."""
    return NEXT.get((state, seen), state)


class Awaited(Enum):
    """What a receiver that is POLLING waits for."""

    # Contact is lost: a connect is a successful attempt, an attempt without one fails.
    CLIENT = "client"
    # It said that it cannot take messages, or said nothing: connects wait for the attempt.
    TIME = "time"
    # Both: it said so, then contact was lost before the attempt fell due.
    CLIENT_AND_TIME = "client and time"


@dataclass(frozen=True, slots=True)
class Policy:
    """How failures are met; `retries` -1 is for ever, a `delay_s` of 0 switches retries off."""

    retries: int = 0
    delay_s: float = 60.0
    response_timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Hold:
    """Why, since when and until when (ms since 1970) a queue is held back, and who said so."""

    reason: str
    who: str
    since: int
    until: int | None = None

    def is_over(self, now_ms: int) -> bool:
        return self.until is not None and now_ms >= self.until


DEFAULT_POLICY = Policy()


class Dispatcher:
    """One receiver's; `deadline` is when `due` must be called, None if nothing falls due.

    `attempt` is the retry counter: the number of the attempt that is awaited or has been made. A
    connect resets it unless the receiver itself refused since an entry was acked the last time.
    While POLLING the deadline is that of the attempt; while ALIVE it is the end of a pause.
    `since` is when the state was entered; None: as long as there is a receiver, or when it ended.
    """

    __slots__ = (
        "_awaited",
        "_has_refused",
        "attempt",
        "deadline",
        "hold_record",
        "is_calm",
        "policy",
        "since",
        "state",
    )

    def __init__(self, policy: Policy = DEFAULT_POLICY, hold: Hold | None = None) -> None:
        self.policy = policy
        self.state = State.UNDEF
        self.since: float | None = None
        self.attempt = 0
        self.deadline: float | None = None
        self.hold_record = hold
        self._awaited: Awaited | None = None
        self._has_refused = False
        # Whether all is well, certainly: then everything flows, and neither contact nor acks change
        # anything. Most are never told of either.
        self.is_calm = False

    @property
    def is_active(self) -> bool:
        """Whether the queue is not held back."""
        return self.hold_record is None

    @property
    def is_dead(self) -> bool:
        return self.state is State.DEAD

    def flows(self, now: float) -> bool:
        """Whether anything may be handed over."""
        return (
            self.state is State.ALIVE
            and self.hold_record is None
            and (self.deadline is None or now >= self.deadline)
        )

    def gives_up(self) -> bool:
        """Whether one more failure is the last; who is held back or awaited cannot fail."""
        if self.is_dead:
            return True
        return self.hold_record is None and self._awaited is None and self._is_exhausted()

    def contact(self, now: float) -> None:
        """The receiver connects."""
        if self._awaited in (Awaited.TIME, Awaited.CLIENT_AND_TIME):
            self._awaited = Awaited.TIME
            self.due(now)
            return
        if not self._has_refused:
            self.attempt = 0
        if self.state is not State.ALIVE:
            self._flow(Input.CONTACT, now)
        self.is_calm = (
            self.state is State.ALIVE
            and self.hold_record is None
            and self.deadline is None
            and not self._has_refused
        )

    def lost(self, now: float) -> None:
        """Nothing has been heard of the receiver for too long."""
        if self.is_dead:
            return
        if self._awaited is not None:
            self._lose_waiting()
        elif self.hold_record is not None:
            self._await(Input.LOSS, Awaited.CLIENT, now, None)
        else:
            self._fail(Input.LOSS, Awaited.CLIENT, now, None)

    def refused(self, now: float, delay_s: float | None = None, attempts: int = 1) -> None:
        """The receiver could not take a message, or gave no verdict in time.

        The message was handed over so often: the pause grows with that, even if the receiver asks
        for none.
        """
        self.is_calm = False
        self._has_refused = True
        if self.hold_record is not None or self.is_dead:
            return
        least_s = least_pause_s(attempts, self.policy.delay_s)
        if self._awaited is None:
            self._fail(Input.REFUSAL, Awaited.TIME, now, delay_s, least_s)
        elif self._awaited is Awaited.TIME and self.deadline is not None:
            # What was handed over before the failure belongs to the same failure.
            self.deadline = max(self.deadline, now + max(delay_s or 0.0, least_s))

    def due(self, now: float) -> None:
        """What falls due by now happens."""
        if self.deadline is None or now < self.deadline:
            return
        if self._awaited in (Awaited.CLIENT, Awaited.CLIENT_AND_TIME):
            self._fail(Input.LOSS, Awaited.CLIENT, now, None)
        else:
            self._flow(Input.ATTEMPT, now)

    def pause(self, now: float, pause_s: float) -> None:
        """Hand nothing over for a while; no failure is counted."""
        self.is_calm = False
        if self.state is State.ALIVE:
            self.deadline = max(self.deadline or now, now + pause_s)

    def acked(self) -> None:
        """The receiver has taken an entry: an attempt that is awaited is the first again."""
        self._has_refused = False
        self.attempt = min(self.attempt, 1) if self._awaited else 0

    def hold(self, record: Hold) -> None:
        """Hold the queue back; who is held back is not given up, however long contact is lost."""
        self.is_calm = False
        self.hold_record = record
        if self._awaited in (Awaited.CLIENT, Awaited.CLIENT_AND_TIME):
            self._lose_waiting()

    def resume(self, now: float) -> None:
        """Let the queue flow again, as far as the connection allows it."""
        self.hold_record = None
        if self._awaited is Awaited.CLIENT and self.deadline is None:
            # Who is away may still come back in time.
            self.deadline = now + self._pause_s()

    def end(self, why: Input = Input.END) -> None:
        """Nothing will be handed over any more."""
        self._flow(why)

    def _lose_waiting(self) -> None:
        if self.hold_record is not None:
            self._awaited = Awaited.CLIENT
            self.deadline = None
        elif self._awaited is Awaited.TIME:
            self._awaited = Awaited.CLIENT_AND_TIME

    def _fail(
        self,
        seen: Input,
        awaited: Awaited,
        now: float,
        delay_s: float | None,
        least_s: float = 0.0,
    ) -> None:
        if self._is_exhausted():
            self._flow(Input.GIVE_UP)
            return
        self.attempt += 1
        pause_s = self._pause_s() if delay_s is None else delay_s
        self._await(seen, awaited, now, now + max(pause_s, least_s))

    def _is_exhausted(self) -> bool:
        return self.policy.delay_s == 0 or 0 <= self.policy.retries <= self.attempt

    def _pause_s(self) -> float:
        return FIRST_ATTEMPT_S if self.attempt <= 1 else self.policy.delay_s

    def _await(self, seen: Input, awaited: Awaited, now: float, deadline: float | None) -> None:
        self._enter(step(self.state, seen), now)
        self._awaited = awaited
        self.deadline = deadline

    def _flow(self, seen: Input, now: float | None = None) -> None:
        """Nothing is awaited any more, because all is well or all is over."""
        self._enter(step(self.state, seen), now)
        self._awaited = None
        self.deadline = None

    def _enter(self, state: State, now: float | None) -> None:
        if state is not self.state:
            self.state, self.since = state, now
            self.is_calm = False
