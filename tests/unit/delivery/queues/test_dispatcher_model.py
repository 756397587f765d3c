"""The dispatcher against a naive model of its rules."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.delivery.queues.dispatcher import Dispatcher, DispatcherState, Policy, QueueHold
from tests.effort import TIMES

HELD = QueueHold("disk full", "joe/1", since=1_000)


class Naive:
    """The rules one by one: every question has its own flag."""

    def __init__(self, retries: int, delay_s: float) -> None:
        self.retries, self.delay_s = retries, delay_s
        self.has_connected = self.is_gone = self.is_dead = self.is_held = False
        self.must_wait = self.was_awaited = self.has_refused = False
        self.failures = 0
        self.attempt_at: float | None = None
        self.paused_until = 0.0

    @property
    def state(self) -> str:
        if self.is_dead:
            return "DEAD"
        if self.is_gone or self.must_wait:
            return "POLLING"
        return "ALIVE" if self.has_connected or self.was_awaited else "UNDEF"

    def flows(self, now: float) -> bool:
        return self.state == "ALIVE" and not self.is_held and now >= self.paused_until

    def fail(self, now: float, pause_s: float | None = None, least_s: float = 0.0) -> None:
        self.paused_until = 0.0
        if self.delay_s == 0 or (self.retries >= 0 and self.failures >= self.retries):
            self.is_dead = True
            return
        self.failures += 1
        if pause_s is None:
            pause_s = 0.4 if self.failures == 1 else self.delay_s
        self.attempt_at = now + max(pause_s, least_s)

    def tick(self, now: float) -> None:
        if self.attempt_at is None or now < self.attempt_at or self.is_dead:
            return
        self.attempt_at = None
        if self.must_wait:
            self.must_wait = False
            self.was_awaited = True
        if self.is_gone:
            self.fail(now)

    def contact(self, now: float) -> None:
        self.has_connected = True
        self.is_gone = False
        if self.must_wait:
            self.tick(now)
            return
        self.attempt_at = None
        if not self.has_refused:
            self.failures = 0

    def lost(self, now: float) -> None:
        if self.is_gone:
            return
        self.is_gone = True
        if self.is_held:
            self.must_wait, self.attempt_at, self.paused_until = False, None, 0.0
        elif not self.must_wait:
            self.fail(now)

    def refused(self, now: float, delay_s: float | None, attempts: int) -> None:
        self.has_refused = True
        if self.is_held or self.is_gone:
            return
        least_s = min(0.1 * 2 ** (attempts - 1), max(self.delay_s, 1.0))
        if not self.must_wait:
            self.must_wait = True
            self.fail(now, delay_s, least_s)
        elif self.attempt_at is not None:
            self.attempt_at = max(self.attempt_at, now + max(delay_s or 0.0, least_s))

    def acked(self) -> None:
        self.has_refused = False
        pending = self.is_gone or self.must_wait
        self.failures = min(self.failures, 1) if pending else 0

    def pause(self, now: float, pause_s: float) -> None:
        if self.state == "ALIVE":
            self.paused_until = max(self.paused_until, now + pause_s)

    def hold(self) -> None:
        self.is_held = True
        if self.is_gone:
            self.must_wait, self.attempt_at = False, None

    def resume(self, now: float) -> None:
        self.is_held = False
        if self.is_gone and self.attempt_at is None:
            self.attempt_at = now + (0.4 if self.failures <= 1 else self.delay_s)


REFUSALS: dict[str, tuple[float | None, int]] = {
    "refused": (None, 1),
    "refused 3": (3.0, 1),
    "refused at once": (0.0, 1),
    "refused at once again": (0.0, 4),
    "refused at once for ever": (0.0, 100),
}
ACTS = ["contact", "lost", *REFUSALS, "acked", "pause", "hold", "resume", "tick"]


@pytest.mark.slow
@settings(max_examples=100 * TIMES)
@given(
    st.sampled_from([-1, 0, 1, 2, 3]),
    st.sampled_from([0.0, 1.0, 1.0, 1.0]),
    st.lists(st.tuples(st.sampled_from(ACTS), st.sampled_from([0.0, 0.3, 0.5, 2.0])), max_size=40),
)
def test_the_dispatcher_decides_like_the_naive_model(
    retries: int, delay_s: float, acts: list[tuple[str, float]]
) -> None:
    real, naive, now = Dispatcher(Policy(retries, delay_s)), Naive(retries, delay_s), 10.0
    for act, pause_s in acts:
        now += pause_s
        if naive.is_dead:
            assert real.is_dead
            return
        match act:
            case "contact" | "lost":
                getattr(real, act)(now)
                getattr(naive, act)(now)
            case said if said in REFUSALS:
                real.refused(now, *REFUSALS[said])
                naive.refused(now, *REFUSALS[said])
            case "acked":
                real.acked()
                naive.acked()
            case "pause":
                real.pause(now, 1.0)
                naive.pause(now, 1.0)
            case "hold":
                real.hold_back(HELD)
                naive.hold()
            case "resume":
                real.resume(now)
                naive.resume(now)
            case _:
                real.due(now)
                naive.tick(now)
        assert real.state.name == naive.state
        assert real.is_active != naive.is_held
        if not naive.is_dead:
            assert real.attempt == naive.failures
            assert real.flows(now) == naive.flows(now)
            assert (real.state is DispatcherState.POLLING and real.deadline) == (
                naive.state == "POLLING" and naive.attempt_at
            )
