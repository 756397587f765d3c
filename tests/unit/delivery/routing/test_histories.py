"""Histories: a channel keeps its newest messages, and a floor tells what may be missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.channels import Channels, covers
from holdfast.delivery.messages.keeping import HistoryDepth, Keeping
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.histories import Histories, HistoryLimits
from holdfast.delivery.routing.kept_messages import KeptMessages, cursor_of
from tests.unit.delivery.fake_keeper import FakeKeeper

US = 1000
MS = 1_000_000
MUCH = 1_000_000


def message(
    number: int, channel: str = "/a", *, size: int = 10, life_ms: int | None = None
) -> Message:
    """Return a message whose id is this many microseconds."""
    made = Message(b"." * size, id=number * US, channel=channel)
    made.life_ms = life_ms
    return made


@pytest.fixture
def histories() -> Histories:
    return Histories(HistoryLimits(entries=100, bytes=10_000), FakeKeeper())


def put(histories: Histories, message: Message, entries: int, size: int) -> None:
    message.keeping = Keeping(HistoryDepth(entries, size))
    histories.append(message, message.keeping)


def kept(histories: Histories, channel: str = "/a") -> KeptMessages:
    found = histories.get(channel)
    assert found is not None
    return found


def numbers(messages: list[Message]) -> list[int]:
    return [cursor_of(each.id) for each in messages]


def test_a_history_returns_its_newest_messages_in_order(histories: Histories) -> None:
    for number in range(1, 6):
        put(histories, message(number), 3, MUCH)
    assert numbers(kept(histories).newest(2, 0)) == [4, 5]
    assert numbers(kept(histories).newest(-1, 0)) == [3, 4, 5]
    assert kept(histories).newest(0, 0) == []
    assert numbers(kept(histories).newest(2**64, 0)) == [3, 4, 5]
    assert histories.dropped == 2


def test_a_history_returns_the_messages_after_a_cursor(histories: Histories) -> None:
    for number in (2, 4, 6):
        put(histories, message(number), 3, MUCH)
    assert numbers(kept(histories).since(2, 0)) == [4, 6]
    assert numbers(kept(histories).since(3, 0)) == [4, 6]
    assert kept(histories).since(6, 0) == []


def test_the_floor_is_the_cursor_of_the_newest_missing_message(histories: Histories) -> None:
    for number in range(1, 6):
        put(histories, message(number), 3, MUCH)
    assert kept(histories).floor == 2


def test_the_bytes_of_a_history_are_limited(histories: Histories) -> None:
    for number in range(1, 6):
        put(histories, message(number, size=10), 10, 25)
    assert numbers(kept(histories).newest(-1, 0)) == [4, 5]
    assert histories.size == 20


def test_a_message_larger_than_the_depth_empties_its_history(histories: Histories) -> None:
    put(histories, message(1), 10, 25)
    put(histories, message(2, size=30), 10, 25)
    assert histories.get("/a") is None
    assert histories.floor_of("/a") == 2
    assert (len(histories), histories.size) == (0, 0)


def test_all_histories_together_are_limited_and_the_oldest_message_leaves() -> None:
    histories = Histories(HistoryLimits(entries=3, bytes=35), FakeKeeper())
    for number, channel in enumerate(("/a", "/b", "/a", "/c"), 1):
        put(histories, message(number, channel), 10, MUCH)
    assert numbers(kept(histories).newest(-1, 0)) == [3]
    assert kept(histories).floor == 1
    put(histories, message(5, "/c", size=30), 10, MUCH)
    assert histories.get("/b") is None
    assert numbers(kept(histories, "/c").newest(-1, 0)) == [5]


def test_a_kept_message_leaves_when_its_lifetime_ends(histories: Histories) -> None:
    put(histories, message(1000, life_ms=5), 10, MUCH)
    put(histories, message(2000), 10, MUCH)
    assert numbers(kept(histories).newest(-1, 5)) == [1000, 2000]
    assert numbers(kept(histories).newest(-1, 6)) == [2000]
    histories.forget_expired(5, 10)
    assert len(histories) == 2
    histories.forget_expired(6, 10)
    assert [each.id for each in histories] == [2000 * US]
    assert kept(histories).floor == 0, "an expired message is not missing"
    assert histories.dropped == 0


def test_one_call_removes_a_limited_number_of_expired_messages(histories: Histories) -> None:
    for number in (1000, 2000, 3000):
        put(histories, message(number, life_ms=1), 10, MUCH)
    histories.forget_expired(100, 2)
    assert len(histories) == 1
    histories.forget_expired(100, 2)
    assert histories.get("/a") is None


def test_lifetimes_of_messages_that_left_are_forgotten(histories: Histories) -> None:
    for number in range(1, 1000):
        put(histories, message(number, life_ms=1_000_000), 1, MUCH)
    assert len(histories._ends) <= 70


def passed(histories: Histories, cursors: range) -> list[int]:
    """The cursors that have passed a late message."""
    return [each for each in cursors if kept(histories).passed_over(each) is not None]


def late(number: int) -> Message:
    found = message(number)
    found.is_late = True
    return found


def test_a_late_message_takes_its_place_and_is_noted(histories: Histories) -> None:
    coming = message(2)
    for each in (message(1), message(4), coming, message(6)):
        put(histories, each, 10, MUCH)
    assert numbers(kept(histories).newest(-1, 0)) == [1, 2, 4, 6]
    assert coming in histories
    assert kept(histories).floor == 0
    assert passed(histories, range(8)) == [3, 4]


def test_a_late_message_is_noted_although_it_leaves_at_once(histories: Histories) -> None:
    for each in (message(3), late(2)):
        put(histories, each, 1, MUCH)
    assert numbers(kept(histories).newest(-1, 0)) == [3]
    assert passed(histories, range(2, 5)) == [3]


def test_a_late_message_is_noted_although_later_ones_have_left(histories: Histories) -> None:
    put(histories, message(3, life_ms=1), 10, MUCH)
    histories.forget_expired(10, 1)
    put(histories, late(2), 10, MUCH)
    assert passed(histories, range(2, 5)) == [3]
    histories.erase("/a")
    assert histories.floor_of("/a") == 3


def test_a_history_notes_a_limited_number_of_late_messages(histories: Histories) -> None:
    for number in range(10, 1000, 10):
        put(histories, message(number), 1000, MUCH)
        put(histories, late(number - 5), 1000, MUCH)
    assert len(kept(histories).passed) == 8
    missed = set(passed(histories, range(1000)))
    assert {
        number for each in range(10, 1000, 10) for number in range(each - 4, each + 1)
    } <= missed
    # The newest ones are still told apart.
    assert not missed & {
        number for each in range(940, 990, 10) for number in range(each + 1, each + 5)
    }


def test_erasing_a_history_removes_its_messages_and_raises_the_floor(histories: Histories) -> None:
    put(histories, message(1), 10, MUCH)
    put(histories, message(2), 10, MUCH)
    assert histories.erase("/a") == 2
    assert histories.erase("/a") == 0
    assert histories.floor_of("/a") == 2
    assert histories.newest == 2 * US


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("/a", ["/a"]),
        ("/a/*", ["/a/b", "/a/c"]),
        ("/a/**", ["/a/b", "/a/b/c", "/a/c"]),
        ("/*", ["/a", "/a!", "/a0", "/b"]),
        ("/**", ["/a", "/a!", "/a/b", "/a/b/c", "/a/c", "/a0", "/b"]),
        ("/x", []),
    ],
)
def test_a_pattern_finds_the_histories_of_its_channels(
    histories: Histories, pattern: str, names: list[str]
) -> None:
    for number, name in enumerate(["/b", "/a/b", "/a", "/a0", "/a!", "/a/b/c", "/a/c"], 1):
        put(histories, message(number, name), 1, MUCH)
    found, looked = histories.covered_by(Channels().named(pattern))
    assert looked >= len(found)
    assert [each.channel for each in found] == names


@pytest.mark.parametrize(
    ("pattern", "most", "names", "looked"),
    [
        ("/a/**", 2, ["/a/b", "/a/b/c"], 3),
        ("/a/**", 4, ["/a/b", "/a/b/c", "/a/b/d", "/a/c"], 4),
        # All channels below /a/b count as one.
        ("/a/*", 3, ["/a/b", "/a/c"], 3),
        ("/a/*", 2, ["/a/b"], 3),
        ("/a/b", 0, [], 1),
        ("/a/b", 1, ["/a/b"], 1),
    ],
)
def test_a_pattern_looks_at_a_limited_number_of_channels(
    histories: Histories, pattern: str, most: int, names: list[str], looked: int
) -> None:
    for number, name in enumerate(["/a/b", "/a/b/c", "/a/b/d", "/a/c"], 1):
        put(histories, message(number, name), 1, MUCH)
    found, count = histories.covered_by(Channels().named(pattern), most)
    assert [each.channel for each in found] == names
    assert count == looked


def test_a_pattern_finds_histories_in_order_while_some_are_erased_and_made() -> None:
    pattern = Channels().named("/**")
    big = Histories(HistoryLimits(entries=1000, bytes=MUCH), FakeKeeper())
    for number in range(400):
        put(big, message(number + 1, f"/{number:03}"), 1, MUCH)
    assert len(big.covered_by(pattern)[0]) == 400
    for name in ("/000", "/100"):
        big.erase(name)
    put(big, message(1000, "/100"), 1, MUCH)
    put(big, message(1001, "/2000"), 1, MUCH)
    put(big, message(1002, "/2001"), 1, MUCH)
    big.erase("/2001")
    found, looked = big.covered_by(pattern)
    names = [each.channel for each in found]
    assert names == sorted(names)
    assert len(names) == looked == 400
    assert {"/100", "/2000"} <= set(names)


class Model:
    """All messages in one list."""

    def __init__(self, depth: int, most: int) -> None:
        self.depth, self.most = depth, most
        self.messages: list[Message] = []
        # By channel, the newest message that left before it expired.
        self.lost: dict[str, int] = {}

    def of(self, channel: str) -> list[Message]:
        return [each for each in self.messages if each.channel == channel]

    def append(self, message: Message) -> None:
        self.messages.append(message)
        self.lose(self.of(message.channel)[: -self.depth or None])
        self.lose(self.messages[: -self.most])

    def lose(self, gone: list[Message]) -> None:
        for each in gone:
            self.messages.remove(each)
            self.lost[each.channel] = max(self.lost.get(each.channel, 0), cursor_of(each.id))

    def expire(self, now_ms: int) -> None:
        self.messages = [
            each
            for each in self.messages
            if each.life_ms is None or each.id // MS + each.life_ms > now_ms
        ]


NAMES = st.sampled_from(["/a", "/a/b", "/a/b/c", "/a/c", "/b", "/a0"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), NAMES, st.none() | st.integers(1, 20)),
        st.tuples(st.just("erase"), NAMES, st.none()),
        st.tuples(st.just("expire"), NAMES, st.integers(0, 100)),
    ),
    max_size=60,
)


@pytest.mark.slow
@given(STEPS, st.integers(0, 4), st.integers(1, 8))
def test_histories_agree_with_a_model_of_one_list(
    steps: list[tuple[str, str, int | None]], depth: int, most: int
) -> None:
    histories = Histories(HistoryLimits(entries=most, bytes=MUCH), FakeKeeper())
    model = Model(depth, most)
    now_ms = 0
    for number, (what, name, value) in enumerate(steps, 1):
        if what == "append":
            made = message(number * 1000, name, life_ms=value)
            put(histories, made, depth, MUCH)
            model.append(made)
        elif what == "erase":
            histories.erase(name)
            model.lose(model.of(name))
        else:
            now_ms = max(now_ms, value or 0)
            histories.forget_expired(now_ms, 1000)
            model.expire(now_ms)
        agree(histories, model)


def agree(histories: Histories, model: Model) -> None:
    for channel in "/a", "/b", "/a/b":
        found = histories.get(channel)
        assert (list(found) if found else []) == model.of(channel)
        floor = histories.floor_of(channel)
        assert floor >= model.lost.get(channel, 0)
    assert histories.size == sum(len(each.wire) for each in model.messages)
    for pattern in "/**", "/a/*", "/a/**":
        expected = sorted({e.channel for e in model.messages if covers(pattern, e.channel)})
        names = [each.channel for each in histories.covered_by(Channels().named(pattern))[0]]
        assert names == expected
