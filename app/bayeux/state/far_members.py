"""Who is on which channels at other shards, as these have told."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

Row = list[Any]


class FarMember:
    """A member of a channel at another shard, as that has told it."""

    __slots__ = ("has_left", "name", "since", "state", "subject")

    def __init__(self, name: str, subject: str, since: int, state: str) -> None:
        self.name = name
        self.subject = subject
        self.since = since
        self.state = state
        self.has_left = False


def since_of(member: FarMember) -> int:
    """Return when the member joined."""
    return member.since


class FarMembers:
    """The members of channels whose sessions other shards have."""

    def __init__(self) -> None:
        # By channel, the members by their shards and names.
        self._members: dict[str, dict[tuple[int, str], FarMember]] = {}
        # By channel, the members in the order in which they joined, while it is known.
        self._ordered: dict[str, list[FarMember]] = {}

    def count(self, channel: str) -> int:
        """Return the number of members of the channel."""
        return len(self._members.get(channel, ()))

    def page(self, channel: str, after: int, limit: int) -> Sequence[FarMember]:
        """Return up to `limit` members that joined after this time, earliest first."""
        ordered = self._ordered.get(channel)
        if ordered is None:
            members = self._members.get(channel)
            if members is None:
                return ()
            ordered = self._ordered[channel] = sorted(members.values(), key=since_of)
        begin = bisect_right(ordered, after, key=since_of)
        return ordered[begin : begin + limit]

    def get(self, shard: int, channel: str, name: str) -> FarMember | None:
        """Return a member, if it is on the channel."""
        return self._members.get(channel, {}).get((shard, name))

    def put(self, shard: int, channel: str, member: FarMember) -> None:
        """Add a member, or replace what is known of it."""
        self._members.setdefault(channel, {})[shard, member.name] = member
        self._ordered.pop(channel, None)

    def remove(self, shard: int, channel: str, name: str) -> FarMember | None:
        """Remove a member. Returns it, if it was on the channel."""
        members = self._members.get(channel, {})
        found = members.pop((shard, name), None)
        if found is not None:
            self._ordered.pop(channel, None)
            if not members:
                del self._members[channel]
        return found

    def parts(self, most: int) -> Iterator[tuple[int, list[Row]]]:
        """Return all members, in parts of one shard each, for the next process."""
        by_shard: dict[int, list[Row]] = {}
        for channel, members in self._members.items():
            for (shard, _), each in members.items():
                row = [channel, each.name, each.subject, each.since, each.state]
                by_shard.setdefault(shard, []).append(row)
        for shard, rows in by_shard.items():
            for begin in range(0, len(rows), most):
                yield shard, rows[begin : begin + most]

    def go_on(self, shard: int, rows: Sequence[Row]) -> None:
        """Know the members that the process before this one knew."""
        for channel, *fields in rows:
            self.put(shard, channel, FarMember(*fields))

    def of_shard(self, shard: int) -> list[tuple[str, str]]:
        """Return the channels and names of all members at a shard."""
        return [
            (channel, name)
            for channel, members in self._members.items()
            for number, name in members
            if number == shard
        ]
