"""From where on the histories of channels that keep nothing now lack no message."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.basics.sorted_names import SortedNames
from holdfast.delivery.ports.store_port import StorePort

# How many channels have separate floors. The others share one.
MOST_OWN: Final = 1000
# Other fields in the store: the shared floor, and which rules were in force.
SHARED: Final = "shared"
RULES: Final = "rules"


def stores_nothing(_: str) -> bool:
    """Say that a process that ends may lose messages of any channel."""
    return False


class Floors:
    """The floors of channels whose histories are empty: cursors.

    After its floor, a channel has lost no message, unless it had expired. The store has them, so
    that a process knows what was lost before.

    Args:
        floor: Up to where messages may be missing that an earlier process had.
        stores_all: Returns whether the store has all messages of the channel or pattern.
    """

    def __init__(self, store: StorePort, floor: int, stores_all: Callable[[str], bool]) -> None:
        self._store = store
        self.stores_all = stores_all
        # The floor of all channels; and where the end of a process loses messages.
        self.shared = self.unstored = floor
        # The separate floors; the last one was raised last.
        self._own: dict[str, int] = {}
        self._names = SortedNames(self._own)
        self._highest_own = 0
        # What the store has; the shared floor may be higher there.
        self._stored = self._rules = 0
        # Whether the process before this one has stored what was lost.
        self.are_known = False

    @property
    def highest(self) -> int:
        """A cursor that no floor exceeds."""
        return max(self.shared, self.unstored, self._highest_own)

    def of(self, channel: str) -> int:
        """Return the floor of a channel."""
        return max(self._common(channel), self._own.get(channel, 0))

    def below(self, pattern: Channel) -> int:
        """Return the highest floor of the channels that the pattern matches."""
        floor = self._common(pattern.name)
        for name, is_covered in self._names.covered_by(pattern):
            if is_covered:
                floor = max(floor, self._own[name])
        return floor

    def _common(self, name: str) -> int:
        if self.unstored <= self.shared or self.stores_all(name):
            return self.shared
        return self.unstored

    def raise_all(self, floor: int) -> None:
        """Record that messages of any channel up to the floor may be missing."""
        self.shared, self.unstored = max(self.shared, floor), max(self.unstored, floor)

    def lift(self, channel: str, floor: int, *, is_stored: bool = False) -> None:
        """Raise the floor of one channel.

        Args:
            is_stored: Whether the store has a floor of this channel, which is as high.
        """
        if floor <= self.shared:
            if is_stored:
                self._store.save_floor(channel, 0)
            return
        if floor > self._own.get(channel, 0):
            self._set(channel, floor)
            if not is_stored and self.stores_all(channel):
                self._store.save_floor(channel, floor)
        while len(self._own) > MOST_OWN:
            self._share(next(iter(self._own)))

    def take(self, channel: str) -> tuple[int, bool]:
        """Return the floor of a channel, whose history begins, and whether the store has it."""
        floor = self.of(channel)
        return floor, self._drop(channel) > 0

    def _set(self, channel: str, floor: int) -> None:
        if self._own.pop(channel, 0):
            self._own[channel] = floor
        else:
            self._own[channel] = floor
            self._names.add(channel)
        self._highest_own = max(self._highest_own, floor)

    def _drop(self, channel: str) -> int:
        floor = self._own.pop(channel, 0)
        if floor:
            self._names.remove(channel)
        return floor

    def _share(self, channel: str) -> None:
        """Let the channel have the shared floor, which rises."""
        self.shared = max(self.shared, self._drop(channel))
        self._save_shared()
        self._store.save_floor(channel, 0)

    def _save_shared(self) -> None:
        if self.shared > self._stored:
            self._stored = self.shared
            self._store.save_floor(SHARED, self.shared)

    def stored(self) -> dict[str, int]:
        """Return what the store has of this."""
        own = {name: floor for name, floor in self._own.items() if self.stores_all(name)}
        return {SHARED: self._stored, RULES: self._rules, **own}

    # Going on in another process

    def restore(self, stored: Mapping[str, int], rules: int) -> None:
        """Continue with what an earlier process stored.

        With other rules now, it is unknown which channels may lack what that process had.

        Args:
            rules: Differs for rules of which a process that ends loses other messages.
        """
        self._rules = rules
        self.are_known = SHARED in stored and stored.get(RULES) == rules
        if self.are_known:
            self.shared = self._stored = stored[SHARED]
        for channel, floor in stored.items():
            if channel in (SHARED, RULES):
                continue
            if floor > self.shared:
                self._set(channel, floor)
            else:
                self._store.save_floor(channel, 0)
        if not self.are_known:
            self._save_shared()
            self._store.save_floor(RULES, rules)

    def left(self) -> dict[str, Any]:
        """Return what an earlier process has lost, for another one."""
        return {"floor": self.shared, "unstored": self.unstored, "own": self._own}

    def go_on(self, left: Mapping[str, Any]) -> None:
        """Continue as `left` by an earlier process, which has lost nothing since."""
        self.shared = left["floor"]
        # An earlier release has only one for all.
        self.unstored = left.get("unstored", self.shared)
        for channel in list(self._own):
            self._drop(channel)
        for channel, floor in left.get("own", {}).items():
            self._set(channel, floor)
