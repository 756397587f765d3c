"""What channels that keep nothing now have lost is known, also to the next process."""

from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.messages.keeping import HistoryDepth, Keeping
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.floors import MOST_OWN, RULES, SHARED
from holdfast.delivery.routing.histories import Histories, HistoryLimits
from tests.unit.delivery.fake_keeper import FakeKeeper

US = 1000
START = 10
RULES_NOW = 7


def _is_durable(name: str) -> bool:
    return not name.startswith("/passing")


def process(keeper: FakeKeeper, start: int = START, rules: int = RULES_NOW) -> Histories:
    """Return the histories of a process that starts at this time, after one that was killed."""
    made = Histories(HistoryLimits(), keeper, start * US, stores_all=_is_durable)
    made.start_at(start * US)
    made.floors.restore(dict(keeper.floors), rules)
    return made


def put(histories: Histories, number: int, channel: str, *, depth: int = 1) -> Message:
    message = Message(b".", id=number * US, channel=channel)
    message.is_durable = True
    message.keeping = Keeping(HistoryDepth(depth, 1000))
    histories.append(message, message.keeping)
    return message


def below(histories: Histories, pattern: str) -> int:
    return histories.floors.below(Channels().named(pattern))


def test_only_the_channel_that_has_lost_messages_has_another_floor_afterwards() -> None:
    keeper = FakeKeeper()
    before = process(keeper)
    put(before, 20, "/a/x")
    before.erase("/a/x")
    after = process(keeper, 90)
    assert [after.floor_of(each) for each in ("/a/x", "/a/y", "/b")] == [20, START, START]
    assert [below(after, each) for each in ("/a/*", "/**", "/b/**")] == [20, 20, START]


def test_a_history_begins_with_the_floor_that_the_store_has() -> None:
    keeper = FakeKeeper()
    before = process(keeper)
    put(before, 20, "/a")
    kept = put(before, 30, "/a")
    put(before, 40, "/b")
    after = process(keeper, 90)
    for each in kept, before.get("/b").oldest:  # type: ignore[union-attr]
        after.restore(each.channel, [each], HistoryDepth(1, 1000), is_whole=True)
    assert [after.floor_of(each) for each in ("/a", "/b")] == [20, START]


def test_channels_of_which_a_killed_process_loses_messages_start_anew() -> None:
    keeper = FakeKeeper()
    before = process(keeper)
    put(before, 20, "/passing")
    before.erase("/passing")
    assert keeper.floors.keys() == {SHARED, RULES}
    after = process(keeper, 90)
    assert [after.floor_of(each) for each in ("/passing", "/a")] == [90, START]


def test_with_other_rules_it_is_unknown_what_was_lost() -> None:
    keeper = FakeKeeper()
    before = process(keeper)
    put(before, 20, "/a")
    before.erase("/a")
    after = process(keeper, 90, rules=RULES_NOW + 1)
    assert [after.floor_of(each) for each in ("/a", "/b")] == [90, 90]
    assert keeper.floors == {SHARED: 90, RULES: RULES_NOW + 1}
    assert process(keeper, 95, rules=RULES_NOW + 1).floor_of("/b") == 90


def test_the_oldest_floors_become_one_and_leave_the_store() -> None:
    keeper = FakeKeeper()
    histories = process(keeper)
    for number in range(MOST_OWN + 2):
        put(histories, 20 + number, f"/a/{number}")
        histories.erase(f"/a/{number}")
    assert len(keeper.floors) == MOST_OWN + 2
    for each in histories, process(keeper, 5000):
        assert [each.floor_of(f"/a/{number}") for number in (0, 1, 2)] == [21, 21, 22]
        assert each.floor_of("/b") == 21


def test_a_floor_that_is_not_higher_than_that_of_all_leaves_the_store() -> None:
    keeper = FakeKeeper()
    histories = process(keeper)
    put(histories, 20, "/a")
    last = put(histories, 30, "/a")
    assert keeper.floors["/a"] == 20
    histories.floors.raise_all(25)
    last.life_ms = 0
    histories.floors.lift("/a", 20, is_stored=True)
    assert "/a" not in keeper.floors


def test_the_next_process_goes_on_with_all_floors_of_one_that_leaves() -> None:
    keeper = FakeKeeper()
    before = process(keeper)
    for channel in "/a", "/passing":
        put(before, 20, channel)
        before.erase(channel)
    after = process(keeper, 90)
    after.go_on(before.left())
    assert [after.floor_of(each) for each in ("/a", "/passing", "/b")] == [20, 20, START]


def test_a_store_that_lost_its_floors_gets_all_again() -> None:
    keeper = FakeKeeper()
    histories = process(keeper)
    for number, channel in enumerate(("/a", "/b", "/passing"), 20):
        put(histories, number, channel)
    put(histories, 30, "/a")
    histories.erase("/b")
    histories.erase("/passing")
    assert histories.stored_floors() == keeper.floors
    assert keeper.floors.keys() == {SHARED, RULES, "/a", "/b"}
