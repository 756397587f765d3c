"""Channels that another shard leaves out, and whoever subscribes to them, beside a naive model."""

import random
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pytest

from holdfast.sharding import pruning
from holdfast.sharding.pruning import USELESS, Pruning, Prunings

if TYPE_CHECKING:
    from collections.abc import Callable

CHANNELS = ["/a", "/b", "/c", "/d", "/e"]
PATTERN = "/*"


class Link:
    """A link to a shard that sends what is not pruned; both directions take their time."""

    def __init__(self) -> None:
        # What was asked for, with the numbers of grafts, 0 to prune; and what has come of that.
        self.asked: deque[tuple[str, int]] = deque()
        self.pruned: set[str] = set()
        # What is pruned once all is heard.
        self.left_out: set[str] = set()
        # Channels of messages, and numbers of grafts that are confirmed.
        self.sent: deque[str | int] = deque()
        self.grafts = 0

    def cut(self) -> None:
        """Nothing here cuts it."""

    def prune(self, channels: Sequence[str]) -> None:
        assert self.left_out.isdisjoint(channels)
        self.left_out.update(channels)
        assert len(self.left_out) <= pruning.MOST
        self.asked += [(each, 0) for each in channels]

    def graft(self, channel: str, number: int) -> None:
        assert self.left_out.issuperset([channel] if channel else [])
        self.left_out.difference_update([channel] if channel else [*self.left_out])
        self.grafts += 1
        self.asked.append((channel, number))

    def hear(self) -> None:
        """The other shard hears what it is asked for."""
        channel, number = self.asked.popleft()
        if not number:
            self.pruned.add(channel)
            return
        self.pruned.difference_update([channel] if channel else [*self.pruned])
        self.sent.append(number)


class World:
    """A shard that prunes, and one that sends. The seed decides what happens."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.link: Link | None = None
        self.pruning = Pruning(float)
        # Subscriptions here, and whether the answer was given.
        self.subscribed: dict[str, bool] = {}
        self.useless = 0

    def begin(self) -> None:
        """A link begins or ends, or the one that there is begins again."""
        if self.random.random() > 0.1:
            return
        link = self.random.choice([None, Link(), self.link])
        if link is not None and link is self.link:
            # Nothing was on its way but grafts.
            self.rest()
        self.link = link
        self.pruning.begin(link)

    def publish(self) -> None:
        """The other shard has a message: it must send what somebody here was promised."""
        channel = self.random.choice(CHANNELS)
        if self.link is None:
            return
        if channel not in self.link.pruned:
            self.link.sent.append(channel)
        else:
            assert not any(self.subscribed.get(each) for each in (channel, PATTERN))

    def arrive(self) -> None:
        if self.link is None or not self.link.sent:
            return
        found = self.link.sent.popleft()
        if isinstance(found, int):
            self.pruning.grafted(found)
        elif found not in self.subscribed and PATTERN not in self.subscribed:
            self.useless += 1
            self.pruning.count_useless([found])

    def hear(self) -> None:
        if self.link is not None and self.link.asked:
            self.link.hear()

    def subscribe(self) -> None:
        name = self.random.choice([*CHANNELS, PATTERN])
        if name not in self.subscribed and self.random.random() < 0.3:
            self.subscribed[name] = False
            self.pruning.join(name, is_pattern=name == PATTERN)
            Prunings([self.pruning]).when_grafted(partial(self._agreed, name))

    def _agreed(self, name: str) -> None:
        if name in self.subscribed:
            self.subscribed[name] = True

    def unsubscribe(self) -> None:
        answered = [name for name, is_answered in self.subscribed.items() if is_answered]
        if answered:
            del self.subscribed[self.random.choice(answered)]

    def rest(self) -> None:
        """Everything arrives: then nobody waits."""
        self.pruning.tick()
        while self.link is not None and (self.link.asked or self.link.sent):
            self.hear()
            self.arrive()
            self.pruning.tick()
        assert all(self.subscribed.values())
        assert not self.pruning.is_grafting

    def run(self, steps: int) -> None:
        happens: list[Callable[[], None]] = [
            *(self.begin, self.publish, self.publish, self.arrive, self.arrive, self.hear),
            *(self.subscribe, self.unsubscribe, self.pruning.tick),
        ]
        for _ in range(steps):
            self.random.choice(happens)()


# Compiled code has the constant built in.
@pytest.mark.parametrize("most", [pytest.param(2, marks=pytest.mark.interpreted), pruning.MOST])
@pytest.mark.parametrize("seed", range(40))
def test_who_was_promised_a_channel_hears_it_and_nobody_gets_others_for_long(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "MOST", most)
    world = World(seed)
    world.run(600)
    world.rest()
    # Without receivers, each channel is left out after a few messages.
    world.subscribed.clear()
    world.link, world.useless = Link(), 0
    world.pruning.begin(world.link)
    for _ in range(100):
        world.publish()
        world.rest()
    if most > len(CHANNELS):
        assert world.useless == USELESS * len(CHANNELS)
        # Only what was left out is asked for again.
        grafts = world.link.grafts
        world.pruning.join("/none", is_pattern=False)
        assert world.link.grafts == grafts == 0
