"""Which way messages take that are not stored."""

from collections.abc import Callable, Mapping

from holdfast.cluster.frames import MESSAGE, Facts, LogEntry, read
from holdfast.cluster.log import Log
from holdfast.cluster.places import NOWHERE, Place, place_of
from holdfast.sharding.early import Early
from holdfast.sharding.followed import Followed
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
        self.noted: list[tuple[str, int]] = []
        self.early = Early(lambda cause, count: self.noted.append((cause, count)))
        self.followed = Followed([1, 2])
        self.log.passing = self.passing = Passing(
            *(self.log, self.followed, self.early),
            end=lambda: self.end,
            may_speak=lambda: self.may_speak,
        )
        # Whether the store answers; what it has not answered.
        self.answers = True
        self.dones: list[Callable[[bool], None]] = []
        self.links = {1: Passage(11), 2: Passage(12)}
        self.passing.passages = self.links

    def append(self, _: int, parts: Mapping[str, bytes], done: Callable[[bool], None]) -> None:
        frame = read(parts["all"])
        self.logged += [each.id for each in frame.all_entries()]
        self.behind.append(frame.behind)
        if self.answers:
            done(True)
        else:
            self.dones.append(done)

    def append_facts(
        self, _: Facts, __: Mapping[str, bytes], done: Callable[[Place | None], None]
    ) -> None:
        done(None)

    def pass_on(self, *ids: int, channel: str = "/a") -> None:
        for id in ids:
            if not self.passing.is_pruned(channel, self.now):
                self.passing.add(LogEntry(MESSAGE, channel, id, "ann", 0, b"{}"))
        self.passing.flush()
        self.log.flush(self.now)

    def stores(self, channel: str = "/a") -> None:
        """The log has a stored message of this channel."""
        self.end = self.end._replace(nonce=END.nonce, fence=END.fence, n=self.end.n + 1)
        self.followed.put({channel}, self.end)

    def sent(self) -> list[Mapping[str, str]]:
        """What the frames on a link come behind."""
        return [read(each).behind for each in self.links[1].frames]

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.followed.tick(self.now)
        self.passing.tick(self.now)
        self.log.tick(self.now)
        self.early.tick(self.now)


def test_messages_take_the_links_to_all_shards() -> None:
    shard = Shard()
    shard.pass_on(1, 2)
    shard.pass_on(3)
    assert [link.got() for link in shard.links.values()] == [[1, 2, 3], [1, 2, 3]]
    assert shard.logged == []
    assert shard.passing.passed == 3


def test_they_name_the_stored_message_of_their_channel_that_they_come_behind() -> None:
    shard = Shard()
    shard.stores("/a")
    first = str(shard.end)
    shard.stores("/b")
    for channel in ("/a", "/b", "/c"):
        shard.pass_on(1, channel=channel)
    assert shard.sent() == [{"/a": first}, {"/b": str(shard.end)}, {}]
    shard.followed.saw(1, shard.end)
    shard.pass_on(2)
    shard.followed.saw(2, place_of(first))
    shard.pass_on(3)
    shard.pass_on(4, channel="/b")
    assert shard.sent()[3:] == [{"/a": first}, {}, {"/b": str(shard.end)}]


def test_many_channels_follow_one_place() -> None:
    shard = Shard()
    for n in range(1001):
        shard.stores(f"/{n}")
    shard.pass_on(1)
    shard.followed.saw(1, shard.end)
    shard.followed.saw(2, shard.end)
    shard.pass_on(2)
    assert shard.sent() == [{"/a": str(shard.end)}, {}]


def test_all_channels_follow_what_an_earlier_process_has_left_for_a_while() -> None:
    shard = Shard()
    shard.followed.begin(END)
    shard.pass_on(1)
    for _ in range(12):
        shard.passes(1.0)
    shard.pass_on(2)
    assert shard.sent() == [{"/a": str(END)}, {}]


def test_the_log_takes_them_if_a_link_is_shut() -> None:
    shard = Shard()
    shard.pass_on(1)
    shard.links[2].is_open = False
    shard.end = END
    shard.pass_on(2)
    assert shard.logged == [2]
    # It comes behind what both have got.
    assert shard.behind == [{"1": "11 1", "2": "12 1"}]
    shard.links[2].is_open = True
    shard.pass_on(3)
    shard.pass_on(4, channel="/b")
    assert shard.links[1].got() == [1, 3, 4]
    assert shard.sent() == [{}, {"/a": str(END)}, {}]


def test_they_take_the_links_while_the_store_does_not_answer() -> None:
    shard = Shard()
    shard.answers = False
    shard.stores("/b")
    shard.pass_on(1)
    assert (shard.links[1].got(), shard.logged) == ([1], [])


def test_the_log_takes_those_of_a_channel_until_it_has_earlier_ones() -> None:
    shard = Shard()
    shard.answers = shard.links[2].is_open = False
    shard.pass_on(1)
    shard.links[2].is_open = True
    shard.pass_on(2)
    shard.pass_on(3, channel="/b")
    assert (shard.logged, shard.links[1].got()) == ([1, 2], [3])
    for done in shard.dones:
        done(True)
    shard.pass_on(4)
    assert (shard.logged, shard.links[1].got()) == ([1, 2], [3, 4])


def test_what_the_log_does_not_get_in_time_goes_over_the_links() -> None:
    shard = Shard()
    shard.answers = shard.links[2].is_open = False
    shard.pass_on(1)
    shard.is_available = False
    shard.pass_on(2)
    shard.links[2].is_open = True
    for _ in range(4):
        shard.passes(1.2)
    assert shard.links[2].got() == []
    shard.passes(0.3)
    assert [link.got() for link in shard.links.values()] == [[1, 2], [1, 2]]
    assert (shard.noted, shard.log.dropped) == ([("own_log", 2)], 0)
    # The store had one of them all the same: others get it twice, and drop it.
    shard.dones[0](True)
    shard.pass_on(3)
    assert shard.links[1].got() == [1, 2, 3]
    assert (shard.log.dropped, shard.log.appended) == (0, 1)


def test_what_the_log_refuses_goes_over_the_links_at_once() -> None:
    shard = Shard()
    shard.answers = shard.links[2].is_open = False
    shard.pass_on(1)
    shard.links[2].is_open = True
    shard.dones[0](False)
    shard.pass_on(2)
    assert [link.got() for link in shard.links.values()] == [[1, 2], [1, 2]]
    assert shard.log.dropped == 0


def test_what_the_log_does_not_get_waits_for_a_link_that_is_shut() -> None:
    shard = Shard()
    shard.answers = shard.links[2].is_open = False
    shard.pass_on(1)
    shard.dones[0](False)
    shard.passes(4.9)
    assert (shard.links[1].got(), shard.links[2].got()) == ([1], [])
    shard.links[2].is_open = True
    shard.pass_on(2)
    assert [link.got() for link in shard.links.values()] == [[1, 2], [1, 2]]
    assert shard.log.dropped == 0


def test_what_neither_the_log_nor_a_link_takes_in_time_is_dropped_and_counted() -> None:
    shard = Shard()
    shard.answers = shard.links[2].is_open = False
    shard.pass_on(1)
    shard.dones[0](False)
    shard.passes(5.1)
    shard.links[2].is_open = True
    shard.passes(0.1)
    assert (shard.links[1].got(), shard.links[2].got(), shard.log.dropped) == ([1], [], 1)
    shard.passing.passages = {}
    shard.pass_on(2)
    shard.dones[1](False)
    assert shard.log.dropped == 2


def test_only_so_many_bytes_wait_for_a_link() -> None:
    shard = Shard()
    shard.links[2].is_open = False
    large = [LogEntry(MESSAGE, "/a", id, "ann", 0, b"x" * 1024 * 1024) for id in range(1, 10)]
    dropped = [shard.passing.give_up([each]) for each in large]
    assert dropped == [0] * 7 + [1] * 2
    shard.links[2].is_open = True
    shard.passes(0.1)
    assert shard.links[2].got() == [1, 2, 3, 4, 5, 6, 7]


def test_a_process_that_may_have_lost_its_shard_sends_nothing() -> None:
    shard = Shard()
    shard.may_speak = False
    shard.pass_on(1)
    assert shard.logged == [1]


def test_after_a_freeze_it_sends_nothing_that_has_waited_for_links() -> None:
    shard = Shard()
    shard.answers = shard.links[2].is_open = False
    shard.pass_on(1)
    shard.dones[0](False)
    shard.links[2].is_open, shard.may_speak = True, False
    shard.passes(1.0)
    assert shard.links[2].got() == []
    shard.may_speak = True
    shard.passes(1.0)
    assert shard.links[2].got() == [1]


def test_what_has_waited_too_long_for_a_link_is_dropped_although_it_opens() -> None:
    shard = Shard()
    shard.answers = shard.links[2].is_open = False
    shard.pass_on(1)
    shard.dones[0](False)
    shard.links[2].is_open = True
    shard.passes(20.0)
    assert (shard.links[2].got(), shard.log.dropped) == ([], 1)


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
        shard.passing.add(LogEntry(MESSAGE, channel, id, "ann", 0, b"{}"))
    shard.links[1].pruned.add("/a")
    shard.passing.flush()
    assert [link.got() for link in shard.links.values()] == [[1, 3], [1, 2, 3]]


def test_the_log_leaves_nothing_out() -> None:
    shard = Shard()
    shard.pass_on(1)
    for link in shard.links.values():
        link.pruned.add("/a")
    shard.links[2].is_open = False
    shard.pass_on(2)
    assert shard.logged == [2]
