"""What comes over links: in order with what the log has."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.cluster.frames import MESSAGE, Entry, Frame, write
from holdfast.cluster.places import NOWHERE, Place
from holdfast.cluster.reader_port import Sorted
from holdfast.sharding.direct import DirectArrivals

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
        # Channels without receivers.
        self.useless: list[str] = []

    def sort(self, frame: Frame) -> Sorted[Entry]:
        return Sorted((), frame.all_entries(), 0, self.useless)

    def show(self, entries: Any) -> None:
        self.shown += [each.id for each in entries]


class Way:
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
        self.direct = DirectArrivals(1, cast("Any", self.arrivals), lambda: self.now)
        self.went_on = 0
        self.reader = SimpleNamespace(shown=BEFORE, go_on=self._go_on)
        self.direct.reader = cast("Any", self.reader)
        self.cut = 0
        self.asked: list[str] = []
        self.direct.open(LINK, Way(self))

    def _go_on(self) -> None:
        self.went_on += 1

    def comes(self, n: int, behind: str = "", link: int = LINK) -> None:
        entry = Entry(MESSAGE, "/a", n, "ann", 0, b"{}")
        self.direct.came(link, n, write([entry], behind={"log": behind} if behind else {}))

    def shows(self) -> list[int]:
        return self.arrivals.shown


def test_messages_are_shown_as_they_come() -> None:
    world = World()
    world.comes(1)
    world.comes(2, str(BEFORE))
    assert world.shows() == [1, 2]
    assert world.direct.has_shown("5 2")
    assert not world.direct.has_shown("5 3")
    # A frame of the log may have waited for them.
    assert world.went_on == 3


def test_they_wait_for_a_place_in_the_log() -> None:
    world = World()
    world.comes(1, str(PLACE))
    world.comes(2)
    assert world.shows() == []
    world.direct.go_on()
    assert world.shows() == []
    world.reader.shown = PLACE
    world.direct.go_on()
    assert world.shows() == [1, 2]


def test_they_wait_until_the_log_is_read_at_all() -> None:
    world = World()
    world.direct.reader = None
    world.comes(1, str(PLACE))
    assert world.shows() == []
    world.direct.reader = cast("Any", world.reader)
    world.reader.shown = PLACE
    world.direct.go_on()
    assert world.shows() == [1]


def test_they_do_not_wait_for_a_place_that_a_store_has_lost() -> None:
    world = World()
    world.reader.shown = Place("yyyyyyyy", 3, 1, 39)
    world.comes(1, str(PLACE))
    assert world.shows() == [1]
    world.reader.shown = NOWHERE
    world.comes(2, str(PLACE))
    assert world.shows() == [1]


def test_they_do_not_wait_for_ever_but_never_overtake_the_log() -> None:
    world = World()
    world.comes(1, str(PLACE))
    world.now += 15.1
    world.direct.go_on()
    assert (world.shows(), world.arrivals.failures) == ([], 1)
    # The log need not wait for it.
    assert world.direct.has_shown("5 1")
    world.comes(2)
    world.comes(3)
    assert world.shows() == []
    world.reader.shown = PLACE
    world.direct.go_on()
    world.comes(4)
    assert world.shows() == [2, 3, 4]


def test_few_bytes_wait() -> None:
    world = World()
    entry = Entry(MESSAGE, "/a", 1, "ann", 0, bytes(5_000_000))
    for n in (1, 2):
        world.direct.came(LINK, n, write([entry], behind={"log": str(PLACE)}))
    assert (world.shows(), world.arrivals.failures) == ([], 1)
    world.reader.shown = PLACE
    world.direct.go_on()
    assert len(world.shows()) == 1


def test_the_log_does_not_wait_for_a_link_that_is_lost() -> None:
    world = World()
    assert not world.direct.has_shown("5 1")
    world.direct.lost(6)
    assert not world.direct.has_shown("5 1")
    world.direct.lost(LINK)
    assert world.direct.has_shown("5 1")


def test_the_log_waits_for_what_a_lost_link_brought_before() -> None:
    world = World()
    world.comes(1, str(PLACE))
    world.direct.lost(LINK)
    assert not world.direct.has_shown("5 1")
    assert world.direct.has_shown("")
    world.reader.shown = PLACE
    world.direct.go_on()
    assert world.direct.has_shown("5 1")


def test_an_unreadable_frame_is_counted_and_passed_over() -> None:
    world = World()
    world.direct.came(LINK, 1, b"x")
    assert world.arrivals.failures == 1
    assert world.direct.has_shown("5 1")


def test_words_that_are_no_numbers_and_no_places_delay_nothing() -> None:
    world = World()
    assert world.direct.has_shown("what")
    world.comes(1, "nowhere")
    assert world.shows() == [1]


def test_a_link_that_does_not_bring_what_the_log_waits_for_is_cut() -> None:
    world = World()
    assert not world.direct.has_shown("5 1")
    world.now += 1.9
    world.comes(1)
    assert world.direct.has_shown("5 1")
    assert not world.direct.has_shown("5 2")
    world.now += 1.9
    world.direct.go_on()
    assert world.cut == 0
    world.now += 0.2
    world.direct.go_on()
    assert world.cut == 1
    assert world.direct.has_shown("5 2")
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
