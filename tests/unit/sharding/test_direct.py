"""What comes over links: in order with what the log has."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.cluster.frames import MESSAGE, Frame, LogEntry, write
from holdfast.cluster.places import NOWHERE, Place
from holdfast.cluster.reader_port import Sorted
from holdfast.sharding.direct import DirectArrivals
from holdfast.sharding.early import Cause, Early
from holdfast.sharding.pruning import Pruning

# Other classes take the place of some, which compiled code does not let in.
pytestmark = pytest.mark.interpreted

LINK = 5
PLACE = Place("xxxxxxxx", 3, 7, 40)
BEFORE = PLACE._replace(n=6)


class Arrivals:
    """Shows everything."""

    def __init__(self) -> None:
        self.failures = 0
        self.shown: list[int] = []
        # What durable sessions get behind places in the log.
        self.behind: list[dict[str, Place]] = []
        # Channels without receivers.
        self.useless: list[str] = []
        self.early = Early(lambda *_: None)
        # The highest id in the last frame.
        self.heard = 0

    def hear(self, frame: Frame) -> None:
        self.heard = frame.newest

    def sort(self, frame: Frame) -> Sorted[LogEntry]:
        self.hear(frame)
        return self.sort_all(frame.all_entries())._replace(useless=self.useless)

    def sort_all(self, entries: Sequence[LogEntry]) -> Sorted[LogEntry]:
        return Sorted(entries, (), (), 0)

    def show_direct(self, entries: Sequence[LogEntry], behind: Mapping[str, Place]) -> None:
        self.shown += [each.id for each in entries]
        self.behind.append({**behind})


class Source:
    """A link that remembers what it is asked for."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def cut(self) -> None:
        self._world.cut += 1

    def prune(self, channels: Sequence[str]) -> None:
        self._world.asked += [f"prune {each}" for each in channels]

    def graft(self, channel: str, number: int) -> None:
        self._world.asked.append(f"graft {channel} {number}")


class World:
    """A reader of the log at some place, and a link."""

    def __init__(self) -> None:
        self.now = 0.0
        self.arrivals = Arrivals()
        self.direct = DirectArrivals(
            1, cast("Any", self.arrivals), Pruning(lambda: self.now), *[lambda: self.now] * 2
        )
        self.went_on = 0
        self.reader = SimpleNamespace(at_once=BEFORE, go_on=self._go_on)
        self.direct.reader = cast("Any", self.reader)
        self.cut = 0
        self.asked: list[str] = []
        self.direct.open(LINK, Source(self))

    def _go_on(self) -> None:
        self.went_on += 1

    def comes(self, n: int, behind: str = "", *, channel: str = "/a", link: int = LINK) -> None:
        entry = LogEntry(MESSAGE, channel, n, "ann", 0, b"{}")
        self.direct.came(link, n, write([entry], behind={channel: behind} if behind else {}))

    def shows(self) -> list[int]:
        return self.arrivals.shown


def test_messages_are_shown_as_they_come() -> None:
    world = World()
    world.comes(1)
    world.comes(2, str(BEFORE))
    assert world.shows() == [1, 2]
    assert world.direct.has_come("5 2")
    assert not world.direct.has_come("5 3")
    # A frame of the log may have waited for them.
    assert world.went_on == 3


def test_they_wait_for_a_place_in_the_log() -> None:
    world = World()
    world.comes(1, str(PLACE))
    world.comes(2)
    assert world.shows() == []
    # New ids are above those of what waits.
    assert world.arrivals.heard == 2
    world.direct.go_on()
    assert world.shows() == []
    world.reader.at_once = PLACE
    world.direct.go_on()
    assert world.shows() == [1, 2]


def test_what_waits_for_the_same_place_on_another_channel_is_shown_and_counted_once() -> None:
    world = World()
    world.comes(1, str(PLACE))
    world.now = 3.0
    world.comes(2, str(PLACE), channel="/b")
    world.now = 5.0
    world.direct.go_on()
    assert world.shows() == [1, 2]
    world.comes(3, str(PLACE), channel="/b")
    world.now = 9.0
    world.direct.go_on()
    assert world.shows() == [1, 2, 3]
    assert world.arrivals.early.counts == {Cause.SENDER_STORE: 3}


def test_they_wait_until_the_log_is_read_at_all() -> None:
    world = World()
    world.direct.reader = None
    world.comes(1, str(PLACE))
    assert world.shows() == []
    world.direct.reader = cast("Any", world.reader)
    world.reader.at_once = PLACE
    world.direct.go_on()
    assert world.shows() == [1]


def test_they_do_not_wait_for_a_place_that_a_store_has_lost() -> None:
    world = World()
    world.reader.at_once = Place("yyyyyyyy", 3, 1, 39)
    world.comes(1, str(PLACE))
    assert world.shows() == [1]
    world.reader.at_once = NOWHERE
    world.comes(2, str(PLACE))
    assert world.shows() == [1]


def test_other_channels_do_not_wait() -> None:
    world = World()
    world.comes(1, str(PLACE))
    world.comes(2, channel="/b")
    entries = [
        LogEntry(MESSAGE, each, n, "ann", 0, b"{}") for n, each in enumerate(["/b", "/a"], 3)
    ]
    world.direct.came(LINK, 3, write(entries))
    assert world.shows() == [2, 3]
    world.reader.at_once = PLACE
    world.direct.show_held()
    assert world.shows() == [2, 3, 1, 4]


def test_durable_sessions_get_them_behind_the_place() -> None:
    world = World()
    world.comes(1, str(BEFORE))
    world.comes(2, str(PLACE))
    world.reader.at_once = PLACE
    world.direct.show_held()
    assert world.arrivals.behind == [{"/a": BEFORE}, {"/a": PLACE}]


def test_they_wait_five_seconds_for_a_log_that_cannot_be_read_and_are_counted() -> None:
    world = World()
    world.comes(1, str(PLACE))
    world.comes(2)
    world.now += 4.9
    world.direct.go_on()
    assert world.shows() == []
    world.now += 0.2
    world.direct.go_on()
    assert world.shows() == [1, 2]
    assert world.arrivals.early.counts == {Cause.SENDER_STORE: 2}
    # Nothing waits for that place any more.
    world.comes(3, str(PLACE))
    assert world.shows() == [1, 2, 3]
    assert world.arrivals.early.counts == {Cause.SENDER_STORE: 3}
    world.comes(4, str(PLACE._replace(n=8)))
    assert world.shows() == [1, 2, 3]
    world.reader.at_once = PLACE._replace(n=8)
    world.direct.go_on()
    world.comes(5, str(PLACE))
    assert world.shows() == [1, 2, 3, 4, 5]
    assert world.arrivals.early.counts == {Cause.SENDER_STORE: 3}


def test_few_bytes_wait() -> None:
    world = World()
    for n in (1, 2):
        entry = LogEntry(MESSAGE, f"/{n}", n, "ann", 0, bytes(5_000_000))
        place = PLACE._replace(n=PLACE.n + n)
        world.direct.came(LINK, n, write([entry], behind={f"/{n}": str(place)}))
    world.direct.go_on()
    assert world.shows() == [1]
    assert world.arrivals.early.counts == {Cause.SENDER_STORE: 1}


def test_the_log_does_not_wait_for_a_link_that_is_lost() -> None:
    world = World()
    assert not world.direct.has_come("5 1")
    world.direct.lost(6)
    assert not world.direct.has_come("5 1")
    world.direct.lost(LINK)
    assert world.direct.has_come("5 1")


def test_an_unreadable_frame_is_counted_and_passed_over() -> None:
    world = World()
    world.direct.came(LINK, 1, b"x")
    assert world.arrivals.failures == 1
    assert world.direct.has_come("5 1")


def test_words_that_are_no_numbers_and_no_places_delay_nothing() -> None:
    world = World()
    assert world.direct.has_come("what")
    world.comes(1, "nowhere")
    assert world.shows() == [1]


def test_a_newer_link_that_brings_nothing_does_not_end_the_one_in_use() -> None:
    world = World()
    world.comes(1)
    world.direct.open(6, Source(world))
    world.comes(2)
    world.direct.lost(6)
    world.comes(3)
    assert world.shows() == [1, 2, 3]
    assert world.direct.has_come("5 3")
    assert not world.direct.has_come("5 4")


def test_the_first_frame_of_a_newer_link_ends_all_before_it() -> None:
    world = World()
    for link in (6, 7, 8):
        world.direct.open(link, Source(world))
    world.comes(1, link=7)
    world.comes(2)
    world.comes(3, link=6)
    assert world.shows() == [1]
    assert world.direct.has_come("6 1")
    world.comes(4, link=8)
    assert world.shows() == [1, 4]


def test_after_a_link_the_next_newer_one_is_used() -> None:
    world = World()
    for link in (6, 7):
        world.direct.open(link, Source(world))
    world.direct.pruning.when_grafted(lambda: world.asked.append("grafted"))
    world.direct.lost(LINK)
    assert world.asked == ["grafted"]
    world.direct.lost(6)
    world.comes(1, link=7)
    assert world.shows() == [1]


def test_a_newer_link_that_opens_anew_is_known_by_its_new_number() -> None:
    world = World()
    source = Source(world)
    world.direct.open(6, source)
    world.direct.open(7, source)
    assert world.direct.has_come("6 1")
    world.direct.lost(LINK)
    world.comes(1, link=7)
    assert world.shows() == [1]


def test_the_log_waits_for_a_newer_link_and_cuts_that_alone() -> None:
    world = World()
    world.direct.open(6, Source(world))
    assert not world.direct.has_come("6 1")
    world.now += 2.1
    world.direct.go_on()
    assert world.cut == 1
    assert world.direct.has_come("6 1")
    assert not world.direct.has_come("5 1")
    world.comes(1)
    assert world.shows() == [1]


def test_a_link_that_does_not_bring_what_the_log_waits_for_is_cut() -> None:
    world = World()
    assert not world.direct.has_come("5 1")
    world.now += 1.9
    world.comes(1)
    assert world.direct.has_come("5 1")
    assert not world.direct.has_come("5 2")
    world.now += 1.9
    world.direct.go_on()
    assert world.cut == 0
    world.now += 0.2
    world.direct.go_on()
    assert world.cut == 1
    assert world.direct.has_come("5 2")
    # What it brings now would be too late.
    world.comes(2)
    assert world.shows() == [1]


def test_channels_without_receivers_are_pruned() -> None:
    world = World()
    world.arrivals.useless = ["/a"]
    for n in range(1, 5):
        world.direct.go_on()
        assert world.asked == []
        world.comes(n)
    world.direct.go_on()
    assert world.asked == ["prune /a"]
    world.direct.pruning.join("/a", is_pattern=False)
    assert world.asked == ["prune /a", "graft /a 1"]


def test_a_link_that_confirms_no_graft_is_cut() -> None:
    world = World()
    world.arrivals.useless = ["/a"]
    for n in range(1, 5):
        world.comes(n)
    world.direct.go_on()
    world.direct.pruning.join("/a", is_pattern=False)
    joined: list[None] = []
    world.direct.pruning.when_grafted(lambda: joined.append(None))
    world.now += 1.9
    world.direct.go_on()
    assert (world.cut, joined) == (0, [])
    world.now += 0.2
    world.direct.go_on()
    # Nothing more is left out on this link, because nothing more comes.
    assert (world.cut, joined) == (1, [None])
