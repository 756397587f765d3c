"""Channels that another shard leaves out, and whoever subscribes to them."""

from collections.abc import Sequence

import pytest

from holdfast.sharding import pruning
from holdfast.sharding.pruning import USELESS, Pruning


class Link:
    """Remembers what it is asked for."""

    def __init__(self) -> None:
        self.pruned: list[str] = []
        self.grafted: list[tuple[str, int]] = []

    def cut(self) -> None:
        """Nothing here cuts it."""

    def prune(self, channels: Sequence[str]) -> None:
        self.pruned += channels

    def graft(self, channel: str, number: int) -> None:
        self.grafted.append((channel, number))


class Shard:
    """Prunes what another shard sends."""

    def __init__(self) -> None:
        self.link = Link()
        self.pruning = Pruning(float)
        self.pruning.begin(self.link)
        self.heard: list[str] = []

    def prune(self, *channels: str) -> None:
        for _ in range(USELESS):
            self.pruning.count_useless(channels)
        self.pruning.tick()

    def wait(self, name: str) -> None:
        self.pruning.when_grafted(lambda: self.heard.append(name))


def test_a_channel_is_pruned_once_after_some_messages() -> None:
    shard = Shard()
    for _ in range(USELESS - 1):
        shard.pruning.count_useless(["/a", "/b"])
    assert shard.link.pruned == []
    shard.pruning.count_useless(["/b"])
    shard.pruning.tick()
    # They were on their way.
    shard.prune("/b")
    assert shard.link.pruned == ["/b"]


@pytest.mark.parametrize("useless", [USELESS - 1, USELESS])
@pytest.mark.parametrize("is_pattern", [False, True])
def test_a_subscription_lets_useless_messages_be_counted_anew(
    useless: int, is_pattern: bool
) -> None:
    shard = Shard()
    for _ in range(useless):
        shard.pruning.count_useless(["/a"])
    shard.pruning.join("/a", is_pattern=is_pattern)
    shard.pruning.count_useless(["/a"])
    shard.pruning.tick()
    assert (shard.link.pruned, shard.link.grafted) == ([], [])


def test_a_subscription_grafts_its_channel() -> None:
    shard = Shard()
    shard.prune("/a", "/b")
    shard.pruning.join("/c", is_pattern=False)
    assert not shard.pruning.is_grafting
    shard.pruning.join("/b", is_pattern=False)
    shard.pruning.join("/b", is_pattern=False)
    assert shard.link.grafted == [("/b", 1)]
    assert shard.pruning.is_grafting
    shard.pruning.grafted(1)
    assert not shard.pruning.is_grafting
    shard.prune("/b")
    assert shard.link.pruned == ["/a", "/b", "/b"]


def test_a_subscription_to_a_pattern_grafts_everything() -> None:
    shard = Shard()
    shard.pruning.join("/*", is_pattern=True)
    assert shard.link.grafted == []
    shard.prune("/a", "/b")
    shard.pruning.join("/*", is_pattern=True)
    shard.pruning.join("/a", is_pattern=False)
    assert shard.link.grafted == [("", 1)]


def test_who_waits_hears_of_the_grafts_so_far() -> None:
    shard = Shard()
    shard.prune("/a", "/b")
    shard.pruning.join("/a", is_pattern=False)
    shard.wait("first")
    shard.pruning.join("/b", is_pattern=False)
    shard.wait("second")
    assert shard.heard == []
    shard.pruning.grafted(1)
    assert shard.heard == ["first"]
    shard.pruning.grafted(2)
    assert shard.heard == ["first", "second"]


def test_a_link_that_ends_takes_everything_pruned_along() -> None:
    shard = Shard()
    shard.prune("/a")
    shard.pruning.join("/a", is_pattern=False)
    shard.wait("joe")
    shard.pruning.begin(None)
    assert shard.heard == ["joe"]
    shard.prune("/a")
    shard.pruning.join("/a", is_pattern=False)
    assert not shard.pruning.is_grafting
    shard.link = Link()
    shard.pruning.begin(shard.link)
    shard.pruning.join("/a", is_pattern=False)
    assert (shard.link.pruned, shard.link.grafted) == ([], [])


def test_what_is_pruned_on_a_link_that_begins_again_is_grafted() -> None:
    shard = Shard()
    shard.pruning.begin(shard.link)
    assert shard.link.grafted == []
    shard.prune("/a", "/b")
    shard.pruning.begin(shard.link)
    assert shard.link.grafted == [("", 1)]
    # The sender may leave it out until it hears of this.
    shard.pruning.join("/a", is_pattern=False)
    shard.wait("joe")
    assert shard.heard == []
    shard.pruning.grafted(1)
    assert shard.heard == ["joe"]


def test_grafts_on_a_link_that_begins_again_are_still_confirmed() -> None:
    shard = Shard()
    shard.prune("/a")
    shard.pruning.join("/a", is_pattern=False)
    shard.wait("joe")
    shard.pruning.begin(shard.link)
    assert shard.heard == []
    shard.pruning.grafted(1)
    assert shard.heard == ["joe"]


def test_few_channels_are_counted_and_pruned() -> None:
    shard = Shard()
    for number in range(pruning.MOST + 10):
        shard.pruning.count_useless([f"/{number}"])
    assert len(shard.pruning._useless) == 10
    shard = Shard()
    for _ in range(USELESS):
        for number in range(pruning.MOST + 10):
            shard.pruning.count_useless([f"/{number}"])
    for number in range(pruning.MOST):
        shard.prune(f"/{number}")
    assert shard.link.grafted == []
    assert len(shard.link.pruned) == pruning.MOST
    shard.prune("/a")
    assert shard.link.grafted == [("", 1)]
    shard.pruning.join("/1", is_pattern=False)
    assert shard.link.grafted == [("", 1)]
    shard.pruning.join("/a", is_pattern=False)
    assert shard.link.grafted == [("", 1), ("/a", 2)]
