"""Presence: which sessions are on a channel, and since when."""

from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import Generic, TypeVar

from holdfast.delivery.basics.channels import Channel, covers

R = TypeVar("R", bound=Hashable)


class Presence(Generic[R]):
    """The members of channels: receivers with a subscription to exactly this channel.

    Args:
        is_used: Whether the rule of any channel enables presence.
        by_rule: Returns whether the channel's rule enables presence.
        stamp: Returns the time: increasing and unique.
        changed: Called with the channel, the member, and whether the member joined or left.
            If not, its state may have changed.
    """

    def __init__(
        self,
        *,
        is_used: bool,
        by_rule: Callable[[Channel], bool],
        stamp: Callable[[], int],
        changed: "Callable[[Presence[R], str, R, bool], None]",
    ) -> None:
        self.is_used = is_used
        self._by_rule = by_rule
        self._stamp = stamp
        self._changed = changed
        # Patterns of channels with presence regardless of their rules.
        self._offered: set[str] = set()
        # By channel, its members with the times at which they joined, in this order.
        self._members: dict[str, dict[R, int]] = {}

    def offer(self, pattern: str) -> None:
        """Enable presence for channels that match the pattern."""
        self.is_used = True
        self._offered.add(pattern)

    def is_visible(self, channel: Channel) -> bool:
        """Return whether clients may see the members of the channel."""
        if not self.is_used or channel.is_wild or channel.is_system:
            return False
        # There are few such patterns, but a channel with many segments has many matching patterns.
        return self._by_rule(channel) or any(covers(each, channel.name) for each in self._offered)

    def restore(self, channel: str, member: R) -> None:
        """Add a member that was on the channel before a restart."""
        self._members.setdefault(channel, {})[member] = self._stamp()

    def channels(self) -> Iterable[str]:
        """The channels that have members."""
        return self._members

    def members(self, channel: str) -> Iterable[tuple[R, int]]:
        """Return the members of the channel with the times at which they joined, in order."""
        return self._members.get(channel, {}).items()

    def go_on(self, channel: str, joined: Iterable[tuple[R, int]]) -> None:
        """Give members the times at which they joined before a restart, in this order."""
        members = self._members.get(channel)
        if members is None:
            return
        known = {member: since for member, since in joined if member in members}
        others = {each: since for each, since in members.items() if each not in known}
        self._members[channel] = known | others

    def join(self, channel: str, member: R) -> None:
        """Add a member, unless it is on the channel already."""
        if member not in self._members.get(channel, ()):
            self.restore(channel, member)
            self._changed(self, channel, member, True)

    def leave(self, channel: str, member: R) -> None:
        """Remove the member, if it is on the channel."""
        members = self._members.get(channel)
        if members is None or members.pop(member, None) is None:
            return
        if not members:
            del self._members[channel]
        self._changed(self, channel, member, True)

    def show(self, member: R, channels: Iterable[str]) -> None:
        """Report that the member's state may have changed, on each of these channels."""
        if self.is_used:
            for channel in channels:
                if member in self._members.get(channel, ()):
                    self._changed(self, channel, member, False)

    def count(self, channel: str) -> int:
        """Return the number of members of the channel."""
        return len(self._members.get(channel, ()))

    def since(self, channel: str, member: R) -> int | None:
        """Return when the member joined the channel, or None if it is not a member."""
        members = self._members.get(channel)
        return None if members is None else members.get(member)

    def page(self, channel: str, after: int, limit: int) -> list[tuple[R, int]]:
        """Return up to `limit` members that joined after this time, earliest first."""
        members = self._members.get(channel)
        if members is None:
            return []
        return list(islice((each for each in members.items() if each[1] > after), limit))
