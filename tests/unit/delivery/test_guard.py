"""When most receivers refuse most messages of a channel it is held back."""

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.delivery.guard import Guard, GuardLimits, Held
from app.delivery.messages import Message

CHANNEL = "/orders"
NOW_MS = 1_700_000_000_000


class Watch:
    """A guard and its clock."""

    def __init__(self, **limits: float) -> None:
        # Of most rules one message shows as much as five.
        chosen = {"window_s": 10.0, "min_messages": 1, **limits}
        self.guard = Guard(GuardLimits(**chosen))  # type: ignore[arg-type]
        self.now = 100.0
        # Who would be hit besides those that say something.
        self.reached: list[str] = []
        self.asked = 0

    def refuse(self, *people: object, channel: str = CHANNEL, message: int = 1) -> list[bool]:
        """Whether each of these refusals holds the channel back."""
        return [self._refuses(str(person), channel, message) for person in people]

    def _refuses(self, person: str, channel: str, message: int) -> bool:
        if not self.guard.refused(Message(b"", id=message, channel=channel), person, self.now):
            return False
        return self.guard.hold(channel, self._reached(), self.now, NOW_MS) is not None

    def _reached(self) -> Iterable[str]:
        self.asked += 1
        return self.reached

    def take(self, *people: object, channel: str = CHANNEL) -> None:
        for person in people:
            self.guard.taken([Message(b"", channel=channel)], str(person), self.now)

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
    watch.take(4)
    watch.refuse(1, 1, 2, 3)
    held = watch.guard.held[CHANNEL]
    assert held == Held(NOW_MS, "3 of 4 receivers refused 4 of 5 messages")


def test_one_receiver_that_refuses_everything_holds_nothing_back() -> None:
    watch = Watch()
    assert not any(watch.refuse(*[1] * 1000))


def test_one_message_that_everybody_refuses_holds_nothing_back() -> None:
    watch = Watch(min_messages=5)
    assert not any(watch.refuse(*range(100), message=1))
    for number in (2, 3, 4):
        assert watch.refuse(1, message=number) == [False]
    assert watch.refuse(1, message=5) == [True]


def test_messages_that_were_refused_half_a_window_ago_still_count() -> None:
    watch = Watch(min_messages=2)
    watch.refuse(1, 2, 3, message=1)
    watch.now += 5.0
    assert watch.refuse(1, message=2) == [True]


def test_many_refusals_by_few_of_many_receivers_hold_nothing_back() -> None:
    watch = Watch()
    watch.take(*range(10))
    assert not any(watch.refuse(*[1, 2, 3, 4, 5] * 100))
    assert watch.refuse(6, 6) == [False, True]


def test_few_refusals_by_many_receivers_hold_nothing_back() -> None:
    watch = Watch()
    watch.take(*list(range(10)) * 3)
    assert not any(watch.refuse(*range(10)))


def test_somebody_who_refuses_very_often_does_not_speak_for_those_who_seldom_do() -> None:
    watch = Watch()
    watch.take(*[1, 2, 3] * 10)
    watch.refuse(1, 2, 3)
    assert not any(watch.refuse(*["loud"] * 1000))


def test_half_is_not_most() -> None:
    watch = Watch()
    watch.take(1, 2, 3)
    assert watch.refuse(4, 5, 6, 6) == [False] * 4
    assert watch.refuse(3) == [False]
    assert watch.refuse(3) == [True]


# Those that are reached but say nothing of single messages


def test_receivers_that_say_nothing_of_messages_are_counted_when_it_matters() -> None:
    watch = Watch()
    watch.reached = ["a", "b", "c", "d", "e", "f"]
    assert not any(watch.refuse(*[1, 2, 3] * 10))
    assert not any(watch.refuse(4, 5, 6))
    assert watch.refuse(7) == [True]
    assert watch.guard.held[CHANNEL].reason.startswith("7 of 13 receivers")


def test_nobody_asks_who_is_reached_while_too_few_refuse() -> None:
    watch = Watch()
    watch.take(*range(10))
    watch.refuse(1, 2, 11, 12)
    assert watch.asked == 0


def test_who_is_reached_and_has_said_something_counts_once() -> None:
    watch = Watch()
    watch.reached = ["1", "2", "3", "4", "4", "4"]
    assert watch.refuse(1, 2, 3) == [False, False, True]


def test_many_refusals_do_not_ask_each_time_who_is_reached() -> None:
    watch = Watch()
    watch.reached = ["a", "b", "c", "d", "e", "f"]
    watch.refuse(*[1, 2, 3] * 100)
    assert watch.asked == 1
    watch.refuse(4)
    assert watch.asked == 2
    watch.now += 1.0
    watch.reached = []
    assert watch.refuse(1) == [True]


# Time


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


def test_who_only_took_messages_half_a_window_ago_has_refused_nothing() -> None:
    watch = Watch(min_receivers=1)
    watch.take(1, 1, 2, 2)
    watch.now += 5.0
    assert not any(watch.refuse(*[3] * 10))


# What is held back


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


def test_what_was_held_back_before_can_be_held_back_again_and_released() -> None:
    watch = Watch()
    assert watch.guard.restore(CHANNEL, Held(NOW_MS, "why"))
    assert watch.is_held()
    assert not any(watch.refuse(1, 2, 3))
    assert watch.guard.release(CHANNEL)


def test_a_guard_that_is_off_holds_nothing_back() -> None:
    watch = Watch(is_on=False)
    watch.take(1)
    assert not any(watch.refuse(*range(10)))
    assert not watch.guard.restore(CHANNEL, Held(NOW_MS, "why"))
    assert not watch.is_held()


def test_what_is_held_back_can_only_be_changed_by_the_guard() -> None:
    watch = Watch()
    with pytest.raises(TypeError):
        watch.guard.held[CHANNEL] = None  # type: ignore[index]


# Bounds


def test_a_few_of_many_receivers_stand_for_all() -> None:
    watch = Watch(receivers=100)
    watch.take(*range(3000))
    assert any(watch.refuse(*list(range(3000)) * 2))
    assert watch.guard.held[CHANNEL].reason.startswith("about ")


def test_those_who_stand_for_all_count_for_as_many_as_they_stand_for() -> None:
    watch = Watch(receivers=100, min_receivers=2000)
    assert not any(watch.refuse(*range(500)))
    assert any(watch.refuse(*range(500, 5000)))


def test_it_cannot_be_chosen_who_stands_for_all() -> None:
    watch = Watch(receivers=20)
    watch.reached = [f"good {number}" for number in range(700)]
    for _ in range(10):
        assert not any(watch.refuse(*range(100)))
        watch.now += 0.3


def test_more_receivers_are_looked_at_again_when_fewer_are_left() -> None:
    watch = Watch(receivers=20)
    watch.refuse(1)
    watch.take(*range(10, 500))
    for _ in range(20):
        watch.now += 5.0
        watch.refuse("lonely")
    watch.refuse(1, 2)
    assert watch.is_held()


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


NOTE = st.tuples(st.integers(0, 6), st.booleans(), st.sampled_from([0.0, 0.0, 1.0, 4.0, 9.0, 11.0]))


@given(st.lists(NOTE, max_size=60), st.integers(1, 4), st.integers(1, 3))
def test_the_guard_decides_like_one_that_remembers_everything(
    notes: list[tuple[int, bool, float]], min_receivers: int, min_messages: int
) -> None:
    watch = Watch(min_receivers=min_receivers, min_messages=min_messages)
    # Of each half: who said it, whether that was a refusal, of which message.
    halves: list[list[tuple[int, bool, int]]] = [[], []]
    start: float | None = None
    for number, (person, refuses, pause_s) in enumerate(notes):
        watch.now += pause_s
        if start is None or watch.now - start >= 5.0:
            gap = start is not None and watch.now - start < 10.0
            halves, start = [halves[1] if gap else [], []], watch.now
        halves[1].append((person, refuses, number % 5))
        said = halves[0] + halves[1]
        balance: Counter[int] = Counter()
        for who, was_refusal, _ in said:
            balance[who] += 1 if was_refusal else -1
        refusing = sum(more > 0 for more in balance.values())
        is_bad = (
            refusing >= min_receivers
            and 2 * refusing > len(balance)
            and len({message for _, was_refusal, message in said if was_refusal}) >= min_messages
        )
        if not refuses:
            watch.take(person)
            continue
        assert watch.refuse(person, message=number % 5) == [is_bad]
        if is_bad:
            watch.guard.release(CHANNEL)
            halves, start = [[], []], None
