"""A process speaks only while the store confirms that no other process has opened it."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.store.opening.lease import LEASE_S, SPEAK_S, Lease, RivalLease

BEAT_S = 0.1


class Holder:
    """A lease whose clock a test moves, as a server that looks at it ten times a second."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.lease = Lease(lambda: self.now)
        self.silences = 0
        self.lease.on_silent = self._fell_silent

    def _fell_silent(self) -> None:
        self.silences += 1

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / BEAT_S)):
            self.now += BEAT_S
            self.lease.may_speak()

    def freeze(self, seconds: float) -> None:
        self.now += seconds

    def raise_(self, *, takes_s: float = 0.0) -> None:
        sent_at = self.now
        self.run(takes_s)
        self.lease.raised(sent_at)


def test_nobody_speaks_before_the_first_raise_is_confirmed() -> None:
    holder = Holder()
    assert not holder.lease.may_speak()
    holder.raise_()
    assert holder.lease.may_speak()


def test_a_holder_speaks_for_two_and_a_half_seconds_after_it_sent_the_last_raise() -> None:
    holder = Holder()
    holder.raise_(takes_s=1.0)
    holder.run(1.4)
    assert holder.lease.may_speak()
    holder.run(0.2)
    assert not holder.lease.may_speak()
    assert holder.silences == 1


def test_a_raise_that_was_sent_before_the_silence_does_not_end_it() -> None:
    holder = Holder()
    holder.raise_()
    holder.run(1.0)
    sent_at = holder.now
    holder.run(2.0)
    holder.lease.raised(sent_at)
    assert not holder.lease.may_speak()
    holder.raise_(takes_s=0.5)
    assert holder.lease.may_speak()


def test_a_process_that_was_frozen_for_a_moment_raises_before_it_speaks() -> None:
    holder = Holder()
    holder.raise_()
    holder.freeze(0.3)
    assert not holder.lease.may_speak()
    holder.raise_()
    assert holder.lease.may_speak()


def test_an_answer_that_came_while_the_process_was_frozen_ends_no_silence() -> None:
    holder = Holder()
    holder.raise_()
    holder.run(0.5)
    sent_at = holder.now
    holder.freeze(2.0)
    holder.lease.raised(sent_at)
    assert not holder.lease.may_speak()


def test_an_answer_that_took_longer_than_the_lease_proves_nothing() -> None:
    holder = Holder()
    holder.raise_(takes_s=SPEAK_S + 0.2)
    assert not holder.lease.may_speak()


def test_work_that_waits_for_the_end_of_the_silence_is_called_once() -> None:
    holder = Holder()
    called: list[str] = []
    holder.lease.when_speaking(lambda: called.append("now"))
    holder.raise_()
    holder.freeze(1.0)
    holder.lease.may_speak()
    holder.raise_()
    assert called == ["now"]


def test_work_that_fails_after_a_silence_stops_neither_the_rest_nor_the_lease() -> None:
    holder = Holder()
    called: list[str] = []

    def fail() -> None:
        raise RuntimeError("a fault of ours")

    holder.lease.when_speaking(fail)
    holder.lease.when_speaking(lambda: called.append("now"))
    holder.raise_()
    assert called == ["now"]
    assert holder.lease.may_speak()


def test_a_lease_that_is_over_never_returns() -> None:
    holder = Holder()
    called: list[str] = []
    holder.raise_()
    holder.lease.end()
    holder.lease.when_speaking(lambda: called.append("never"))
    holder.raise_()
    assert not holder.lease.may_speak()
    assert not called


def test_silences_are_counted_with_their_length() -> None:
    holder = Holder()
    holder.raise_()
    holder.run(4.0)
    holder.raise_()
    assert holder.lease.silences == 1
    assert 1.3 < holder.lease.silent_s < 1.7


@dataclass
class World:
    """A holder, and a store whose counter a rival watches, as seen from outside."""

    holder: Holder = field(default_factory=Holder)
    # When the raises that are on their way were sent.
    sent: list[float] = field(default_factory=list)
    # When the store carried out the newest raise.
    raised_at: float = 1000.0
    is_taken: bool = False

    def deliver(self) -> None:
        """The oldest raise arrives at the store, and its answer at the holder."""
        if self.sent:
            sent_at = self.sent.pop(0)
            if self.is_taken:
                self.holder.lease.end()
            else:
                self.raised_at = self.holder.now
                self.holder.lease.raised(sent_at)

    def look_as_rival(self) -> None:
        if self.holder.now - self.raised_at >= LEASE_S:
            self.is_taken = True


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.floats(0.1, 1.5)),
        st.tuples(st.just("freeze"), st.floats(0.0, 6.0)),
        st.tuples(st.sampled_from(["send", "deliver", "lose", "rival"]), st.just(0.0)),
    ),
    max_size=40,
)


@given(STEPS)
def test_the_holder_is_silent_before_any_rival_can_open(steps: list[tuple[str, float]]) -> None:
    world = World()
    for step, seconds in steps:
        match step:
            case "run":
                world.holder.run(seconds)
            case "freeze":
                world.holder.freeze(seconds)
            case "send":
                world.sent.append(world.holder.now)
            case "deliver":
                world.deliver()
            case "lose":
                world.sent = world.sent[:-1]
            case _:
                world.look_as_rival()
        if world.holder.lease.may_speak():
            assert not world.is_taken


def test_a_rival_counts_no_time_in_which_it_did_not_see_the_store() -> None:
    now = 1000.0
    rival = RivalLease(lambda: now)
    rival.saw("epoch 7")
    now += 10.0
    rival.saw("epoch 7")
    assert rival.unraised != "epoch 7"
    for _ in range(12):
        now += 0.25
        rival.saw("epoch 7")
    assert rival.unraised == "epoch 7"
    assert not rival.is_raised


def test_a_holder_that_leaves_is_silent_whatever_is_confirmed() -> None:
    holder = Holder()
    holder.raise_()
    holder.lease.leave()
    holder.raise_()
    holder.run(1.0)
    assert not holder.lease.may_speak()


def test_a_holder_that_stays_speaks_after_the_next_raise() -> None:
    holder = Holder()
    holder.raise_()
    holder.lease.leave()
    heard: list[str] = []
    holder.lease.when_speaking(lambda: heard.append("again"))
    holder.run(1.0)
    holder.lease.stay()
    assert not holder.lease.may_speak()
    assert holder.silences == 1
    holder.raise_()
    assert holder.lease.may_speak()
    assert heard == ["again"]


def test_a_process_among_others_catches_up_before_it_speaks_again() -> None:
    holder = Holder()
    holder.raise_()
    then: list[Any] = []
    holder.lease.catch_up = then.append
    holder.freeze(1.0)
    holder.lease.may_speak()
    holder.raise_()
    holder.raise_()
    assert not holder.lease.may_speak()
    [caught_up] = then
    caught_up()
    assert holder.lease.may_speak()


def test_a_process_that_was_frozen_while_it_caught_up_does_so_again() -> None:
    holder = Holder()
    then: list[Any] = []
    holder.lease.catch_up = then.append
    holder.raise_()
    holder.freeze(SPEAK_S + 0.1)
    then.pop()()
    assert not holder.lease.may_speak()
    holder.raise_()
    then.pop()()
    assert holder.lease.may_speak()


def test_a_lease_that_was_not_raised_while_its_holder_caught_up_lets_it_do_so_again() -> None:
    holder = Holder()
    then: list[Any] = []
    holder.lease.catch_up = then.append
    holder.raise_()
    holder.freeze(SPEAK_S + 0.1)
    holder.raise_()
    # A rival may have opened other shards since this process looked.
    then.pop()()
    assert not holder.lease.may_speak()
    holder.raise_()
    assert holder.lease.was_unraised
    then.pop()()
    assert holder.lease.may_speak()
