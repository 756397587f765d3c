"""The guard holds a channel whose receivers are broken; poison messages are not enough."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.guard.holds import ChannelHold, Guard
from holdfast.delivery.messages.message import Message
from tests.unit.delivery.lone_hub import GUARD_LIMITS

CHANNEL = "/orders"
# A channel without a guard.
PLAIN = "/plain"
NOW_MS = 1_700_000_000_000
# Ids of messages that were published while the guard listened.
LATER = (NOW_MS + 10_000_000) * 1_000_000


class TimedGuard:
    """A guard and its clock."""

    def __init__(self, **limits: float) -> None:
        # For most rules, one message shows as much as five.
        chosen = {"window_s": 10.0, "min_messages": 1, "grace_s": 0.0, **limits}
        usual = replace(GUARD_LIMITS, **chosen)  # type: ignore[arg-type]
        self.guard = Guard(lambda channel: channel != PLAIN, usual)
        self.now = 100.0
        # Receivers of the channel besides those that give verdicts.
        self.reached: list[str] = []
        self.asked = 0

    @property
    def now_ms(self) -> int:
        return NOW_MS + round(self.now * 1000)

    def refuse(
        self,
        *people: object,
        channel: str = CHANNEL,
        message: int = 1,
        publisher: str = "ann",
        knew: bool = True,
    ) -> list[bool]:
        """Whether each of these refusals holds the channel back."""
        sent = Message(b"", id=LATER + message, channel=channel, sender=publisher)
        return [self._refuses(str(person), sent, knew=knew) for person in people]

    def _refuses(self, person: str, message: Message, *, knew: bool) -> bool:
        if not self.guard.refused(message, person, self.now, self.now_ms, knew=knew):
            return False
        held = self.guard.hold_channel(message.channel, self._reached(), self.now, self.now_ms)
        return held is not None

    def _reached(self) -> Iterable[str]:
        self.asked += 1
        return self.reached

    def take(
        self, *people: object, channel: str = CHANNEL, message: int = 0, publisher: str = "bob"
    ) -> None:
        """Take messages, by default some that were published before the guard listened."""
        sent = Message(b"", id=message and LATER + message, channel=channel, sender=publisher)
        for person in people:
            self.guard.taken([sent], str(person), self.now)

    def is_held(self, channel: str = CHANNEL) -> bool:
        return self.guard.is_held(channel)


def test_a_channel_without_a_guard_is_not_held() -> None:
    timed = TimedGuard()
    assert not any(timed.refuse(*range(1, 20), channel=PLAIN))
    assert not timed.guard.watched_until
    assert not timed.guard.restore(PLAIN, ChannelHold(NOW_MS, "why"), timed.now)
    assert not timed.is_held(PLAIN)


def test_a_channel_is_held_as_soon_as_enough_receivers_have_refused() -> None:
    timed = TimedGuard()
    assert timed.refuse(1, 2) == [False, False]
    assert not timed.is_held()
    assert timed.refuse(3) == [True]
    assert timed.is_held()


def test_a_channel_hold_has_its_time_and_its_reason() -> None:
    timed = TimedGuard()
    timed.reached = ["4"]
    timed.refuse(1, 1, 2, 3)
    held = timed.guard.held[CHANNEL]
    assert held == ChannelHold(timed.now_ms, "3 of 4 receivers refused 4 of 4 messages")


def test_very_many_refusals_by_one_receiver_hold_no_channel() -> None:
    timed = TimedGuard()
    assert not any(timed.refuse(*[1] * 1000))


def test_refusals_of_too_few_messages_hold_no_channel() -> None:
    timed = TimedGuard(min_messages=5)
    assert not any(timed.refuse(*range(100), message=1))
    for number in (2, 3, 4):
        assert timed.refuse(1, message=number) == [False]
    assert timed.refuse(1, message=5) == [True]


def test_messages_refused_half_a_window_ago_still_count() -> None:
    timed = TimedGuard(min_messages=2)
    timed.refuse(1, 2, 3, message=1)
    timed.now += 5.0
    assert timed.refuse(1, message=2) == [True]


def test_many_refusals_by_half_of_the_receivers_hold_no_channel() -> None:
    timed = TimedGuard()
    timed.reached = [str(number) for number in range(10)]
    assert not any(timed.refuse(*[1, 2, 3, 4, 5] * 100))
    assert timed.refuse(6) == [True]


def test_a_channel_is_held_when_more_than_half_of_its_receivers_refuse() -> None:
    timed = TimedGuard()
    timed.reached = ["1", "2", "3", "4", "5", "6"]
    assert timed.refuse(1, 2, 3) == [False] * 3
    timed.now += 1.0
    assert timed.refuse(1) == [False]
    assert timed.refuse(4) == [True]


# Receivers that give no verdicts


def test_receivers_without_verdicts_count_among_those_of_the_channel() -> None:
    timed = TimedGuard()
    timed.reached = ["a", "b", "c", "d", "e", "f"]
    assert not any(timed.refuse(*[1, 2, 3] * 10))
    assert not any(timed.refuse(4, 5, 6))
    assert timed.refuse(7) == [True]
    assert timed.guard.held[CHANNEL].reason.startswith("7 of 13 receivers")


def test_the_guard_does_not_ask_for_all_receivers_while_too_few_refuse() -> None:
    timed = TimedGuard()
    timed.refuse(1, 2)
    assert timed.asked == 0


# Poison, and receivers that are broken


def test_refusals_of_messages_that_another_receiver_takes_hold_no_channel() -> None:
    timed = TimedGuard(grace_s=1.0)
    for number in range(1, 20):
        timed.refuse(*range(50), message=number)
        timed.take("good", message=number, publisher="ann")
        timed.now += 0.5
    assert not timed.is_held()


def test_refusals_of_some_publishers_hold_no_channel_while_messages_of_another_pass() -> None:
    timed = TimedGuard()
    timed.refuse(1, publisher="eve")
    for number in range(100):
        timed.take(1, 2, 3, message=2 * number, publisher="ann")
        assert not any(timed.refuse(1, 2, 3, message=2 * number + 1, publisher=f"eve {number}"))
        timed.now += 0.1


def test_a_receiver_is_not_broken_if_it_refuses_a_publisher_that_it_never_accepted() -> None:
    timed = TimedGuard()
    for number in range(100):
        refused = timed.refuse(*range(10), message=number, publisher=f"eve {number}", knew=False)
        assert not any(refused)
    assert timed.refuse(1, 2, 3, message=100, knew=True)[-1] is False
    assert any(timed.refuse(*range(10), message=101, knew=True))


def test_a_channel_is_held_only_after_the_grace_time() -> None:
    timed = TimedGuard(grace_s=5.0)
    assert not any(timed.refuse(*range(10), message=1))
    timed.now += 4.9
    assert not any(timed.refuse(*range(10), message=2))
    timed.now += 0.2
    assert any(timed.refuse(*range(10), message=3))


def test_the_grace_time_starts_again_when_a_message_is_taken() -> None:
    timed = TimedGuard(grace_s=3.0)
    timed.refuse(*range(10), message=1)
    timed.take("good", message=1, publisher="ann")
    timed.now += 2.0
    timed.refuse(*range(10), message=2)
    timed.refuse(*range(10), message=3)
    timed.now += 2.0
    assert not any(timed.refuse(*range(10), message=4))
    timed.now += 1.1
    assert any(timed.refuse(*range(10), message=5))


def test_messages_published_before_the_guard_listened_do_not_count() -> None:
    timed = TimedGuard(min_messages=2)
    old = [Message(b"", id=number, channel=CHANNEL, sender="ann") for number in range(1, 100)]
    for message in old:
        for person in ("1", "2", "3"):
            assert not timed.guard.refused(message, person, timed.now, timed.now_ms)
    assert not any(timed.refuse(1, 2, 3, message=1))
    assert timed.refuse(1, message=2) == [True]


def test_messages_published_while_the_guard_did_not_listen_do_not_count() -> None:
    timed = TimedGuard(min_messages=3)
    timed.refuse(1, 2, 3, message=1)
    # The guard listens for a window after the last refusal.
    timed.now += 9.9
    timed.guard.taken([Message(b"", channel=CHANNEL)], "1", timed.now)
    timed.now += 0.2
    unheard = Message(b"", id=timed.now_ms * 1_000_000 - 1, channel=CHANNEL, sender="ann")
    timed.guard.refused(unheard, "1", timed.now, timed.now_ms)
    assert timed.refuse(1, message=2) == [False]
    assert timed.refuse(1, message=3) == [True]


def test_a_publisher_whose_messages_pass_is_remembered_among_very_many_others() -> None:
    timed = TimedGuard()
    timed.refuse(1, publisher="eve")
    timed.take(2, message=1, publisher="ann")
    for number in range(1000):
        assert not any(timed.refuse(1, 2, 3, message=number, publisher=f"eve {number}"))


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from("pr"), st.integers(0, 9), st.integers(0, 9), st.booleans()),
        max_size=300,
    )
)
def test_strangers_cannot_hold_a_channel_whose_other_messages_pass(
    moves: list[tuple[str, int, int, bool]],
) -> None:
    """Ten of them publish and receive; ann publishes ten messages a second, which bob takes."""
    timed = TimedGuard(min_messages=5, grace_s=2.0, window_s=24.0)
    on_the_way: list[int] = []
    poison = 0
    timed.refuse("stranger 1", message=0, publisher="stranger 1")
    for number, (kind, stranger, other, knew) in enumerate(moves * 3, 1):
        timed.now += 0.1
        # What ann says arrives, and bob's answer three messages later.
        on_the_way.append(2 * number)
        assert not any(
            timed.refuse(
                *(f"stranger {each}" for each in range(stranger + 1)),
                message=2 * number,
                publisher="ann",
            )
        )
        if len(on_the_way) > 3:
            timed.take("bob", message=on_the_way.pop(0), publisher="ann")
        poison = 2 * number + 1
        sender = f"stranger {other}"
        if kind == "p":
            assert not any(timed.refuse("bob", message=poison, publisher=sender, knew=knew))
        else:
            everybody = ["bob", *(f"stranger {each}" for each in range(stranger))]
            assert not any(timed.refuse(*everybody, message=poison, publisher=sender, knew=knew))
    assert not timed.is_held()


def test_a_receiver_of_the_channel_that_also_gave_a_verdict_counts_once() -> None:
    timed = TimedGuard()
    timed.reached = ["1", "2", "3", "4", "4", "4"]
    assert timed.refuse(1, 2, 3) == [False, False, True]


def test_the_guard_does_not_ask_for_all_receivers_at_each_refusal() -> None:
    timed = TimedGuard()
    timed.reached = ["a", "b", "c", "d", "e", "f"]
    timed.refuse(*[1, 2, 3] * 100)
    assert timed.asked == 1
    timed.refuse(4)
    assert timed.asked == 2
    timed.now += 1.0
    timed.reached = []
    assert timed.refuse(1) == [True]


# Time


def test_channels_are_watched_separately() -> None:
    timed = TimedGuard()
    timed.refuse(1, 2, channel="/a")
    assert timed.refuse(3, channel="/b") == [False]
    assert timed.refuse(3, channel="/a") == [True]
    assert not timed.is_held("/b")


def test_verdicts_of_a_window_ago_are_forgotten() -> None:
    timed = TimedGuard()
    timed.refuse(1, 2)
    timed.now += 10.0
    assert timed.refuse(3) == [False]


def test_verdicts_of_half_a_window_ago_still_count() -> None:
    timed = TimedGuard()
    timed.refuse(1, 2)
    timed.now += 5.0
    assert timed.refuse(3) == [True]


def test_the_halves_of_the_guard_window_are_forgotten_one_after_the_other() -> None:
    timed = TimedGuard()
    timed.refuse(1)
    timed.now += 5.0
    timed.refuse(2)
    timed.now += 5.0
    assert timed.refuse(3) == [False]
    assert timed.refuse(4) == [True]


# Channel holds


def test_a_held_channel_is_not_held_again() -> None:
    timed = TimedGuard()
    timed.refuse(1, 2, 3)
    assert not any(timed.refuse(1, 2, 3, 4, 5, 6))
    assert timed.guard.held[CHANNEL].reason.startswith("3 of 3")


def test_verdicts_on_a_released_channel_are_counted_anew() -> None:
    timed = TimedGuard()
    timed.refuse(1, 2, 3)
    timed.refuse(4, 5, 6)
    assert timed.guard.release(CHANNEL)
    assert not timed.is_held()
    assert timed.refuse(1, 2, 3) == [False, False, True]


def test_a_channel_without_a_hold_cannot_be_released() -> None:
    assert not TimedGuard().guard.release(CHANNEL)


def test_a_restored_channel_hold_can_be_released() -> None:
    timed = TimedGuard()
    assert timed.guard.restore(CHANNEL, ChannelHold(NOW_MS, "why"), timed.now)
    assert timed.is_held()
    assert not any(timed.refuse(1, 2, 3))
    assert timed.guard.release(CHANNEL)


def by_hand(until: int | None = None) -> ChannelHold:
    return ChannelHold(NOW_MS, "stock-taking", "operator/ann", until)


def test_operators_can_hold_channels_without_a_guard() -> None:
    timed, other = TimedGuard(), TimedGuard()
    assert timed.guard.hold(PLAIN, by_hand())
    assert timed.is_held(PLAIN)
    assert other.guard.restore(PLAIN, by_hand(), other.now)
    assert other.guard.held == timed.guard.held


def test_a_channel_held_by_an_operator_is_not_probed_even_if_the_guard_held_it_first() -> None:
    timed = TimedGuard()
    assert timed.guard.restore(CHANNEL, ChannelHold(NOW_MS, "why"), timed.now)
    assert CHANNEL in timed.guard.probes
    assert timed.guard.hold(CHANNEL, by_hand())
    assert CHANNEL not in timed.guard.probes
    assert timed.guard.held[CHANNEL].who == "operator/ann"


def test_a_channel_hold_is_over_when_its_time_has_come() -> None:
    timed = TimedGuard()
    timed.guard.hold("/a", by_hand())
    timed.guard.hold("/b", by_hand(NOW_MS + 5))
    assert timed.guard.ended_holds(NOW_MS + 4) == []
    assert timed.guard.ended_holds(NOW_MS + 5) == ["/b"]


def test_operators_cannot_hold_more_channels_than_the_limit() -> None:
    timed = TimedGuard(channels=1)
    assert timed.guard.hold("/a", by_hand())
    assert not timed.guard.hold("/b", by_hand())
    assert timed.guard.hold("/a", by_hand(NOW_MS))


def test_the_held_channels_are_read_only_outside_the_guard() -> None:
    timed = TimedGuard()
    with pytest.raises(TypeError):
        timed.guard.held[CHANNEL] = None  # type: ignore[index]


# Bounds


@pytest.mark.slow
def test_a_sample_of_very_many_receivers_decides_for_all() -> None:
    timed = TimedGuard(receivers=100)
    timed.reached = [str(number) for number in range(3000)]
    assert any(timed.refuse(*list(range(3000)) * 2))
    assert timed.guard.held[CHANNEL].reason.startswith("about ")


def test_receivers_in_the_sample_count_for_all_that_they_stand_for() -> None:
    timed = TimedGuard(receivers=100, min_receivers=2000)
    assert not any(timed.refuse(*range(500)))
    assert any(timed.refuse(*range(500, 5000)))


def test_a_minority_of_receivers_cannot_choose_the_sample() -> None:
    timed = TimedGuard(receivers=20)
    timed.reached = [f"good {number}" for number in range(700)]
    for _ in range(10):
        assert not any(timed.refuse(*range(100)))
        timed.now += 0.3


def test_the_sample_has_all_receivers_again_when_few_are_left() -> None:
    timed = TimedGuard(receivers=20)
    timed.refuse(1)
    timed.take(*range(10, 500))
    for _ in range(20):
        timed.now += 5.0
        timed.refuse("lonely")
    timed.refuse(1, 2)
    assert timed.is_held()


def test_the_channel_that_was_silent_for_longest_is_forgotten_first() -> None:
    timed = TimedGuard(channels=2)
    timed.refuse(1, 2, channel="/old")
    timed.refuse(1, 2, channel="/busy")
    timed.now += 5.0
    timed.refuse(2, channel="/busy")
    timed.refuse(1, channel="/new")
    assert timed.refuse(3, channel="/busy") == [True]
    timed.refuse(1, 2, channel="/newer")
    assert timed.refuse(3, channel="/old") == [False]


def test_the_guard_holds_no_more_channels_than_the_limit() -> None:
    timed = TimedGuard(channels=1)
    assert timed.refuse(1, 2, 3, channel="/a")[-1]
    assert not any(timed.refuse(1, 2, 3, 4, channel="/b"))
    assert timed.guard.release("/a")
    assert timed.refuse(5, channel="/b") == [True]


NOTE = st.tuples(
    st.integers(0, 4),
    st.booleans(),
    st.sampled_from([0.0, 0.0, 1.0, 4.0, 9.0, 11.0]),
    st.sampled_from("abc"),
    st.booleans(),
)


@pytest.mark.slow
@given(st.lists(NOTE, max_size=60), st.integers(1, 3), st.integers(1, 3))
def test_the_guard_decides_like_a_model_that_remembers_every_verdict(
    notes: list[tuple[int, bool, float, str, bool]], min_receivers: int, min_messages: int
) -> None:
    timed = TimedGuard(min_receivers=min_receivers, min_messages=min_messages)
    # The verdicts of each half: by whom, whether a refusal, of whose message, and whether it knew.
    halves: list[list[tuple[int, bool, str, bool]]] = [[], []]
    start: float | None = None
    for number, (person, refuses, pause_s, publisher, knew) in enumerate(notes, 1):
        timed.now += pause_s
        if start is None and not refuses:
            timed.take(person, message=number, publisher=publisher)
            continue
        if start is None or timed.now - start >= 5.0:
            gap = start is not None and timed.now - start < 10.0
            halves, start = [halves[1] if gap else [], []], timed.now
        halves[1].append((person, refuses, publisher, knew))
        said = halves[0] + halves[1]
        if not refuses:
            timed.take(person, message=number, publisher=publisher)
            continue
        is_bad = _is_bad(said, min_receivers, min_messages)
        refused = timed.refuse(person, message=number, publisher=publisher, knew=knew)
        assert refused == [is_bad]
        if is_bad:
            timed.guard.release(CHANNEL)
            halves, start = [[], []], None


def _is_bad(said: list[tuple[int, bool, str, bool]], min_receivers: int, min_messages: int) -> bool:
    """Most receivers refuse publishers that they accepted before, and no publisher passes often."""
    balance: Counter[int] = Counter()
    refused, passed = Counter[str](), Counter[str]()
    for who, was_refusal, publisher, _ in said:
        balance[who] += 1 if was_refusal else -1
        (refused if was_refusal else passed)[publisher] += 1
    knew = {who for who, was_refusal, _, knew in said if was_refusal and knew}
    broken = sum(more > 0 and who in knew for who, more in balance.items())
    return (
        broken >= min_receivers
        and 2 * broken > len(balance)
        and not any(2 * count >= refused[publisher] for publisher, count in passed.items())
        and refused.total() >= min_messages
    )
