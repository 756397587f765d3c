"""The log of a shard: what its turns leave for others, in order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from unittest.mock import patch

from holdfast.cluster.frames import MESSAGE, Behind, Facts, LogEntry, read
from holdfast.cluster.log import Log, Parts
from holdfast.cluster.places import Place

PLACE = Place("xxxxxxxx", 1, 5, 9)


@dataclass
class Store:
    """Remembers the frames in its log."""

    is_available: bool = True
    frames: list[Parts] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    facts: list[Facts] = field(default_factory=list)
    dones: list[Callable[[bool], None]] = field(default_factory=list)

    def append(self, count: int, parts: Parts, done: Callable[[bool], None]) -> None:
        self.frames.append(parts)
        self.counts.append(count)
        self.dones.append(done)

    def append_facts(
        self, facts: Facts, parts: Parts, done: Callable[[Place | None], None]
    ) -> None:
        self.frames.append(parts)
        done(PLACE)
        self.facts.append(facts)

    def ids(self, name: str = "all") -> list[list[int]]:
        parts = [frame[name] for frame in self.frames if name in frame]
        return [[each.id for each in read(part).all_entries()] for part in parts]


def entry(id: int, data: bytes = b"{}") -> LogEntry:
    return LogEntry(MESSAGE, "/a", id, "ann", 0, data)


def test_a_turn_makes_one_frame() -> None:
    store = Store()
    log = Log(store)
    log.pass_on(entry(1))
    log.pass_on(entry(2))
    log.flush(0.0)
    log.flush(0.0)
    assert store.ids() == [[1, 2]]
    assert store.counts == [2]


def test_entries_for_one_shard_are_in_a_part_that_others_do_not_read() -> None:
    store = Store()
    log = Log(store)
    log.pass_on(entry(1))
    log.pass_on(entry(2), 3)
    log.pass_on(entry(3), 7)
    log.flush(0.0)
    assert [*store.frames[0]] == ["all", "3", "7"]
    assert (store.ids(), store.ids("3"), store.counts) == ([[1]], [[2]], [3])


def test_a_large_turn_makes_several_frames_in_order() -> None:
    store = Store()
    log = Log(store)
    for id in range(6):
        log.pass_on(entry(id, bytes(100_000)), 3 if id == 5 else None)
    log.flush(0.0)
    assert store.ids() == [[0, 1], [2, 3], [4]]
    assert store.ids("3") == [[5]]


def test_the_books_say_what_is_in_the_log_and_what_was_dropped() -> None:
    store = Store()
    log = Log(store)
    for id in range(2):
        log.pass_on(entry(id))
        log.flush(0.0)
    store.dones[0](True)
    store.dones[1](False)
    assert (log.appended, log.dropped) == (1, 1)


def test_entries_wait_five_seconds_for_a_store_that_is_away() -> None:
    store = Store(is_available=False)
    log = Log(store)
    for now in (0.0, 3.0):
        log.pass_on(entry(int(now)))
        log.flush(now)
    log.tick(4.9)
    assert log.dropped == 0
    log.tick(5.0)
    assert log.dropped == 1
    store.is_available = True
    log.tick(7.0)
    assert store.ids() == [[3]]


def test_entries_that_wait_for_the_store_are_limited_in_size() -> None:
    store = Store(is_available=False)
    log = Log(store)
    for id in range(100):
        log.pass_on(entry(id, bytes(200_000)))
        log.flush(0.0)
    assert log.dropped == 59
    store.is_available = True
    log.flush(0.0)
    assert [id for ids in store.ids() for id in ids] == [*range(59, 100)]


def test_places_are_told_every_second_while_there_is_something_new() -> None:
    store = Store()
    log = Log(store)
    log.see(3, PLACE)
    log.tick(1.0)
    assert read(store.frames[0]["all"]).seen == {3: PLACE}
    log.see(3, PLACE._replace(n=6, total=10))
    log.tick(1.9)
    log.see(3, PLACE._replace(n=7, total=11))
    log.tick(2.0)
    log.tick(4.0)
    assert [read(frame["all"]).seen for frame in store.frames[1:]] == [
        {3: PLACE._replace(n=7, total=11)}
    ]


def test_the_last_places_are_told_once_more_when_others_may_let_frames_go() -> None:
    store = Store()
    log = Log(store)
    log.see(3, PLACE)
    log.tick(1.0)
    log.tick(12.9)
    assert len(store.frames) == 1
    log.tick(13.0)
    assert read(store.frames[1]["all"]).seen == {3: PLACE}
    for now in range(14, 100):
        log.tick(float(now))
    assert len(store.frames) == 2


def test_places_that_a_shard_waits_for_are_told_every_50_ms() -> None:
    store = Store()
    log = Log(store)
    log.see(3, PLACE)
    log.tick(1.0)
    later = PLACE._replace(n=6, total=10)
    log.see(3, later, awaited=PLACE)
    assert not log.is_awaited
    log.see(3, later, awaited=later)
    assert log.is_awaited
    log.tick(1.04)
    assert len(store.frames) == 1
    log.tick(1.06)
    assert read(store.frames[1]["all"]).seen == {3: later}
    assert not log.is_awaited


def test_a_place_is_not_told_for_frames_that_only_tell_places() -> None:
    """Two shards would never be still."""
    store = Store()
    log = Log(store)
    log.see(3, PLACE)
    log.tick(1.0)
    log.see(3, PLACE._replace(n=6))
    log.tick(2.0)
    assert len(store.frames) == 1
    log.see(3, PLACE._replace(nonce="yyyyyyyy"))
    log.tick(3.0)
    assert len(store.frames) == 2


def test_facts_follow_the_messages_before_them() -> None:
    store = Store()
    log = Log(store)
    log.pass_on(entry(1))
    places: list[Place | None] = []
    log.state({"fact": "1"}, 0.0, places.append)
    assert places == [PLACE]
    assert store.ids() == [[1], []]
    assert read(store.frames[1]["all"]).facts == {"fact": "1"}
    assert store.facts == [{"fact": "1"}]


def test_a_log_that_is_opened_again_tells_all_places() -> None:
    store = Store()
    log = Log(store)
    log.see(3, PLACE)
    log.tick(1.0)
    log.begin_again()
    log.tick(2.0)
    assert read(store.frames[1]["all"]).seen == {3: PLACE}


def test_places_are_told_with_messages_that_leave_when_they_are_due() -> None:
    store = Store()
    log = Log(store)
    log.see(3, PLACE)
    log.pass_on(entry(1))
    log.flush(1.0)
    log.tick(2.0)
    assert [read(frame["all"]).seen for frame in store.frames] == [{3: PLACE}]


def test_places_in_a_frame_that_the_store_refused_are_told_again() -> None:
    store = Store()
    log = Log(store)
    log.see(3, PLACE)
    with patch.object(store, "append", lambda count, parts, done: done(False)):
        log.pass_on(entry(1))
        log.flush(1.0)
    assert store.frames == []
    log.tick(2.0)
    assert [read(frame["all"]).seen for frame in store.frames] == [{3: PLACE}]


def test_places_wait_for_the_next_message_while_messages_are_frequent() -> None:
    store = Store()
    log = Log(store)
    log.pass_on(entry(1))
    log.flush(1.0)
    store.dones[0](True)
    log.see(3, PLACE)
    log.tick(1.02)
    log.pass_on(entry(2))
    log.flush(1.04)
    store.dones[1](True)
    assert [read(frame["all"]).seen for frame in store.frames] == [{}, {3: PLACE}]


def test_places_leave_alone_when_no_message_follows_soon() -> None:
    store = Store()
    log = Log(store)
    log.pass_on(entry(1))
    log.flush(1.0)
    store.dones[0](True)
    log.see(3, PLACE, awaited=PLACE)
    log.tick(1.02)
    log.tick(1.05)
    assert [read(frame["all"]).seen for frame in store.frames] == [{}, {3: PLACE}]


def told(store: Store) -> list[Facts]:
    return [read(frame["all"]).facts for frame in store.frames if "all" in frame]


def test_news_are_told_together_with_places() -> None:
    store = Store()
    log = Log(store)
    news = iter("123")
    log.news = lambda: {"news": next(news)}
    log.see(3, PLACE)
    log.tick(1.0)
    log.see(3, PLACE._replace(n=6, total=10))
    log.pass_on(entry(1))
    log.pass_on(entry(2), 3)
    log.flush(1.06)
    # These are not stored.
    assert (told(store), store.facts) == ([{"news": "1"}, {"news": "2"}], [{}])


def test_news_are_told_soon_if_nothing_else_is() -> None:
    store = Store()
    log = Log(store)
    log.news = lambda: {"news": "1"}
    log.tick(1.0)
    log.tell_news()
    log.tick(1.1)
    log.tick(2.0)
    assert told(store) == [{"news": "1"}]


def test_news_come_behind_all_that_has_waited() -> None:
    store = Store(is_available=False)
    log = Log(store)
    log.news = lambda: {"news": "1"}
    log.tell_news()
    for id in range(2):
        log.pass_on(entry(id))
        log.flush(1.0)
    store.is_available = True
    log.flush(1.1)
    log.tick(1.2)
    assert (told(store), store.ids()) == ([{}, {}, {"news": "1"}], [[0], [1], []])


def test_news_that_the_log_did_not_get_are_told_again() -> None:
    store = Store()
    log = Log(store)
    log.news = lambda: {"news": "1"}
    log.tell_news()
    log.pass_on(entry(1))
    log.flush(1.0)
    store.dones[0](False)
    log.tick(2.0)
    assert told(store) == [{"news": "1"}] * 2


def test_a_large_turn_tells_news_with_its_last_frame() -> None:
    store = Store()
    log = Log(store)
    log.news = lambda: {"news": "1"}
    log.tell_news()
    for id in range(4):
        log.pass_on(entry(id, bytes(100_000)))
    log.flush(1.0)
    assert told(store) == [{}, {"news": "1"}]


class Passing:
    """The other ways of messages that are not stored, on which some have gone."""

    def __init__(self) -> None:
        self.logged_ids: list[int] = []
        self.given_up: list[int] = []
        self.lost = 0

    def behind(self) -> Behind:
        return {"1": "5 7"}

    def logged(self, entries: Sequence[LogEntry]) -> None:
        self.logged_ids += [each.id for each in entries]

    def give_up(self, entries: Sequence[LogEntry]) -> int:
        self.given_up += [each.id for each in entries]
        return self.lost


def test_facts_come_behind_what_went_over_links() -> None:
    store = Store()
    log = Log(store)
    log.passing = Passing()
    log.state({"/a": "1"}, 0.0, lambda _: None)
    log.state({}, 0.0, lambda _: None)
    assert [dict(read(frame["all"]).behind) for frame in store.frames] == [{"1": "5 7"}, {}]


def test_what_is_for_one_shard_comes_behind_what_went_over_its_link() -> None:
    store = Store()
    log = Log(store)
    log.passing = Passing()
    for shard in (1, 2):
        log.pass_on(entry(shard), shard)
    log.flush(0.0)
    [frame] = store.frames
    assert {to: dict(read(part).behind) for to, part in frame.items()} == {
        "1": {"1": "5 7"},
        "2": {},
    }


def test_messages_that_the_store_does_not_take_in_time_go_another_way() -> None:
    store = Store()
    log = Log(store)
    log.passing = passing = Passing()
    for id in (1, 2, 3):
        log.pass_on(entry(id))
        log.flush(float(id))
    store.dones[0](True)
    assert passing.logged_ids == [1]
    log.tick(7.1)
    assert passing.given_up == [2]
    store.dones[1](True)
    passing.lost = 1
    store.dones[2](False)
    assert (passing.logged_ids, passing.given_up) == ([1], [2, 3])
    assert (log.appended, log.dropped) == (2, 1)


def test_calls_that_the_store_does_not_take_are_dropped() -> None:
    store = Store()
    log = Log(store)
    log.passing = passing = Passing()
    log.pass_on(entry(1), 3)
    log.flush(0.0)
    log.tick(6.0)
    assert (passing.given_up, log.dropped) == ([], 0)
    store.dones[0](False)
    assert (passing.given_up, log.dropped) == ([], 1)
