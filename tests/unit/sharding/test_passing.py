"""Which way messages take that are not stored."""

from collections.abc import Callable, Mapping

from holdfast.cluster.frames import MESSAGE, Entry, Facts, read
from holdfast.cluster.log import Log
from holdfast.cluster.places import NOWHERE, Place
from holdfast.sharding.passing import Passing

END = Place("xxxxxxxx", 3, 7, 40)


class Passage:
    """A link to another shard."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.frames: list[bytes] = []
        self.is_open = True
        self.pruned: set[str] = set()

    @property
    def sent(self) -> tuple[int, int]:
        return self.number, len(self.frames)

    def send(self, frame: bytes) -> None:
        self.frames.append(frame)

    def got(self) -> list[int]:
        return [each.id for frame in self.frames for each in read(frame).all_entries()]


class Shard:
    """Passes messages on; its log remembers what it gets."""

    is_available = True

    def __init__(self) -> None:
        self.now = 0.0
        self.end = NOWHERE
        self.may_speak = True
        self.logged: list[int] = []
        self.behind: list[Mapping[str, str]] = []
        self.log = Log(self)
        self.passing = Passing(self.log, lambda: self.end, lambda: self.may_speak)
        self.log.behind = self.passing.behind
        self.links = {1: Passage(11), 2: Passage(12)}
        self.passing.passages = self.links

    def append(self, _: int, parts: Mapping[str, bytes], done: Callable[[bool], None]) -> None:
        self.passing.appends()
        frame = read(parts["all"])
        self.logged += [each.id for each in frame.all_entries()]
        self.behind.append(frame.behind)
        self.passing.answered()
        done(True)

    def append_facts(
        self, _: Facts, __: Mapping[str, bytes], done: Callable[[Place | None], None]
    ) -> None:
        done(None)

    def pass_on(self, *ids: int, channel: str = "/a") -> None:
        for id in ids:
            if not self.passing.is_pruned(channel, self.now):
                self.passing.add(Entry(MESSAGE, channel, id, "ann", 0, b"{}"))
        self.passing.flush(self.now)
        self.log.flush(self.now)


def test_messages_take_the_links_to_all_shards() -> None:
    shard = Shard()
    shard.pass_on(1, 2)
    shard.pass_on(3)
    assert [link.got() for link in shard.links.values()] == [[1, 2, 3], [1, 2, 3]]
    assert shard.logged == []
    assert shard.passing.passed == 3


def test_the_first_ones_come_behind_the_log_as_it_is() -> None:
    shard = Shard()
    shard.end = END
    shard.pass_on(1)
    shard.pass_on(2)
    assert [read(each).behind for each in shard.links[1].frames] == [{"log": str(END)}, {}]


def test_the_log_takes_them_if_a_link_is_shut() -> None:
    shard = Shard()
    shard.pass_on(1)
    shard.links[2].is_open = False
    shard.pass_on(2)
    assert shard.logged == [2]
    # It comes behind what both have got.
    assert shard.behind == [{"1": "11 1", "2": "12 1"}]
    shard.end, shard.links[2].is_open = END, True
    shard.pass_on(3)
    assert shard.links[1].got() == [1, 3]
    assert read(shard.links[1].frames[1]).behind == {"log": str(END)}


def test_a_new_link_comes_behind_the_log_again() -> None:
    shard = Shard()
    shard.end = END
    shard.pass_on(1)
    shard.links[2].number = 13
    shard.pass_on(2)
    assert read(shard.links[2].frames[1]).behind == {"log": str(END)}


def test_the_log_takes_them_for_a_while_after_a_stored_message() -> None:
    shard = Shard()
    shard.pass_on(1)
    assert shard.passing.stores(shard.now) == {"1": "11 1", "2": "12 1"}
    shard.passing.answered()
    shard.pass_on(2)
    shard.now += 0.2
    shard.pass_on(3)
    assert shard.logged == [2]
    assert shard.links[1].got() == [1, 3]


def test_they_do_not_overtake_a_frame_without_an_answer() -> None:
    shard = Shard()
    shard.passing.stores(shard.now)
    shard.now += 1.0
    shard.pass_on(1)
    assert shard.logged == [1]
    shard.passing.answered()
    shard.pass_on(2)
    assert shard.links[1].got() == [2]


def test_a_process_that_may_have_lost_its_shard_sends_nothing() -> None:
    shard = Shard()
    shard.may_speak = False
    shard.pass_on(1)
    assert shard.logged == [1]


def test_without_links_the_log_takes_all() -> None:
    shard = Shard()
    shard.passing.passages = {}
    shard.pass_on(1)
    assert shard.logged == [1]
    assert shard.behind == [{}]


def test_pruned_channels_are_left_out() -> None:
    shard = Shard()
    shard.pass_on(1)
    shard.links[1].pruned.add("/a")
    shard.pass_on(2)
    shard.pass_on(3, channel="/b")
    assert [link.got() for link in shard.links.values()] == [[1, 3], [1, 2, 3]]
    shard.links[2].pruned.add("/a")
    shard.pass_on(4)
    assert [link.got() for link in shard.links.values()] == [[1, 3], [1, 2, 3]]
    assert shard.passing.passed == 3
    shard.links[1].pruned.clear()
    shard.pass_on(5)
    assert [link.got() for link in shard.links.values()] == [[1, 3, 5], [1, 2, 3]]


def test_a_process_that_was_frozen_leaves_nothing_out() -> None:
    shard = Shard()
    shard.pass_on(1)
    for link in shard.links.values():
        link.pruned.add("/a")
    shard.now += 1.1
    assert not shard.passing.is_pruned("/a", shard.now)
    shard.passing.tick(shard.now)
    assert shard.passing.is_pruned("/a", shard.now)


def test_what_was_pruned_meanwhile_is_left_out() -> None:
    shard = Shard()
    shard.pass_on(1)
    for id, channel in ((2, "/a"), (3, "/b")):
        shard.passing.add(Entry(MESSAGE, channel, id, "ann", 0, b"{}"))
    shard.links[1].pruned.add("/a")
    shard.passing.flush(shard.now)
    assert [link.got() for link in shard.links.values()] == [[1, 3], [1, 2, 3]]


def test_the_log_leaves_nothing_out() -> None:
    shard = Shard()
    shard.pass_on(1)
    for link in shard.links.values():
        link.pruned.add("/a")
    shard.links[2].is_open = False
    shard.pass_on(2)
    assert shard.logged == [2]


def test_the_first_message_that_a_shard_wants_comes_behind_the_log() -> None:
    shard = Shard()
    shard.end = END
    shard.links[1].pruned.add("/a")
    shard.pass_on(1)
    shard.pass_on(2, channel="/b")
    shard.pass_on(3, channel="/b")
    behind = [[read(each).behind for each in link.frames] for link in shard.links.values()]
    assert behind == [[{"log": str(END)}, {}], [{"log": str(END)}, {}, {}]]
