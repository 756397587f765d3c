"""When most receivers refuse most messages of a channel it is held back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.delivery.guard import Guard, GuardLimits

CHANNEL = "/orders"


class Watch:
    """A guard and its clock."""

    def __init__(self, **limits: float) -> None:
        self.guard = Guard(GuardLimits(**{"window_s": 10.0, **limits}))  # type: ignore[arg-type]
        self.now = 100.0

    def refuse(self, *receivers: int, channel: str = CHANNEL) -> list[bool]:
        return [self.guard.note(channel, number, True, self.now) for number in receivers]

    def take(self, *receivers: int, channel: str = CHANNEL) -> None:
        for number in receivers:
            assert not self.guard.note(channel, number, False, self.now)

    def is_held(self, channel: str = CHANNEL) -> bool:
        return self.guard.is_held(channel)


def test_a_channel_is_held_back_at_the_moment_when_enough_receivers_have_refused() -> None:
    watch = Watch()
    assert watch.refuse(1, 2) == [False, False]
    assert not watch.is_held()
    assert watch.refuse(3) == [True]
    assert watch.is_held()


def test_it_says_since_when_and_why() -> None:
    watch = Watch()
    watch.take(1, 4)
    watch.refuse(1, 2, 3)
    held = watch.guard.held[CHANNEL]
    assert held.since == 100.0
    assert held.reason == "3 of 4 receivers refused 3 of 5 messages"


def test_one_receiver_that_refuses_everything_holds_nothing_back() -> None:
    watch = Watch()
    assert not any(watch.refuse(*[1] * 1000))


def test_many_refusals_by_few_of_many_receivers_hold_nothing_back() -> None:
    watch = Watch()
    watch.take(*range(10))
    assert not any(watch.refuse(*[1, 2, 3, 4, 5] * 100))
    assert watch.refuse(6) == [True]


def test_few_refusals_by_many_receivers_hold_nothing_back() -> None:
    watch = Watch()
    watch.take(*list(range(10)) * 3)
    assert not any(watch.refuse(*range(10)))


def test_half_is_not_most() -> None:
    watch = Watch()
    watch.take(1, 2, 3)
    assert watch.refuse(4, 5, 6, 6) == [False] * 4
    assert watch.refuse(3) == [True]


def test_a_message_that_is_taken_never_holds_a_channel_back() -> None:
    watch = Watch(min_receivers=1)
    watch.take(1, 1, 2)
    watch.refuse(1, 2)
    watch.now += 5.0
    watch.take(1)
    watch.now += 5.0
    watch.take(1)
    assert not watch.is_held()


def test_channels_are_watched_separately() -> None:
    watch = Watch()
    watch.refuse(1, 2, channel="/a")
    assert watch.refuse(3, channel="/b") == [False]
    assert watch.refuse(3, channel="/a") == [True]
    assert not watch.is_held("/b")


def test_what_was_said_a_window_ago_is_forgotten() -> None:
    watch = Watch()
    watch.refuse(1, 2)
    watch.now += 10.0
    assert watch.refuse(3) == [False]


def test_what_was_said_half_a_window_ago_still_counts() -> None:
    watch = Watch()
    watch.refuse(1, 2)
    watch.now += 5.0
    assert watch.refuse(3) == [True]


def test_halves_are_forgotten_one_after_the_other() -> None:
    watch = Watch()
    watch.refuse(1)
    watch.now += 5.0
    watch.refuse(2)
    watch.now += 5.0
    assert watch.refuse(3) == [False]
    assert watch.refuse(4) == [True]


def test_a_channel_that_is_held_back_is_not_held_back_again() -> None:
    watch = Watch()
    watch.refuse(1, 2, 3)
    assert not any(watch.refuse(1, 2, 3, 4, 5, 6))
    assert watch.guard.held[CHANNEL].reason.startswith("3 of 3")


def test_a_released_channel_is_counted_anew() -> None:
    watch = Watch()
    watch.refuse(1, 2, 3)
    watch.refuse(4, 5, 6)
    assert watch.guard.release(CHANNEL)
    assert not watch.is_held()
    assert watch.refuse(1, 2, 3) == [False, False, True]


def test_what_is_not_held_back_is_not_released() -> None:
    assert not Watch().guard.release(CHANNEL)


def test_the_first_receivers_stand_for_all_when_there_are_too_many() -> None:
    watch = Watch(receivers=5)
    watch.take(1, 2, 3, 4, 5)
    assert not any(watch.refuse(*range(100, 200)))
    assert watch.refuse(1, 2, 3) == [False, False, True]
    assert watch.guard.held[CHANNEL].reason.startswith("3 of 5 receivers")


def test_who_only_took_messages_half_a_window_ago_has_refused_nothing() -> None:
    watch = Watch(min_receivers=1)
    watch.take(1, 1, 2, 2)
    watch.now += 5.0
    assert not any(watch.refuse(*[3] * 10))


def test_the_channel_that_was_silent_for_longest_is_forgotten_first() -> None:
    watch = Watch(channels=2)
    watch.refuse(1, 2, channel="/old")
    watch.refuse(1, 2, channel="/busy")
    watch.now += 5.0
    watch.refuse(2, channel="/busy")
    watch.refuse(1, channel="/new")
    assert watch.refuse(3, channel="/busy") == [True]
    watch.refuse(1, 2, channel="/newer")
    assert watch.refuse(3, channel="/old") == [False]


def test_no_more_channels_are_held_back_than_can_be_remembered() -> None:
    watch = Watch(channels=1)
    assert watch.refuse(1, 2, 3, channel="/a")[-1]
    assert not any(watch.refuse(1, 2, 3, 4, channel="/b"))
    assert watch.guard.release("/a")
    assert watch.refuse(5, channel="/b") == [True]


def test_what_is_held_back_can_only_be_changed_by_the_guard() -> None:
    watch = Watch()
    with pytest.raises(TypeError):
        watch.guard.held[CHANNEL] = None  # type: ignore[index]


NOTE = st.tuples(st.integers(0, 6), st.booleans(), st.sampled_from([0.0, 0.0, 1.0, 4.0, 9.0, 11.0]))


@given(st.lists(NOTE, max_size=60), st.integers(1, 4))
def test_the_guard_decides_like_one_that_remembers_everything(
    notes: list[tuple[int, bool, float]], min_receivers: int
) -> None:
    watch = Watch(min_receivers=min_receivers)
    halves: list[list[tuple[int, bool]]] = [[], []]
    start: float | None = None
    for receiver, refused, pause_s in notes:
        watch.now += pause_s
        if start is None or watch.now - start >= 5.0:
            gap = start is not None and watch.now - start < 10.0
            halves, start = [halves[1] if gap else [], []], watch.now
        halves[1].append((receiver, refused))
        said = halves[0] + halves[1]
        refusers = {number for number, was_refused in said if was_refused}
        is_bad = (
            len(refusers) >= min_receivers
            and 2 * len(refusers) > len({number for number, _ in said})
            and 2 * sum(was_refused for _, was_refused in said) > len(said)
        )
        held = watch.guard.note(CHANNEL, receiver, refused, watch.now)
        assert held == (refused and is_bad)
        if held:
            watch.guard.release(CHANNEL)
            halves, start = [[], []], None
