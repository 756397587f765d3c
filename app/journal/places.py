"""What a frame says once, so that all else has but places: names, groups, channels, messages."""

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from app.delivery.dead_letters import key_of

if TYPE_CHECKING:
    from app.delivery.messages import Message

# As an object that is there: another number would have to be made of it for each event.
Place: TypeAlias = Any
NOBODY = -1
# No two have the same.
_numbers = count(1)


class Places:
    """Gives whatever is new the next place."""

    __slots__ = (
        "_crowds",
        "_found",
        "_looked_at",
        "_nameless",
        "_number",
        "_senders",
        "_singles",
        "channels",
        "channels_of",
        "groups",
        "ids",
        "names",
    )

    def __init__(self) -> None:
        self.names: dict[str, Place] = {}
        self.channels: dict[str, Place] = {}
        self.groups: list[list[Place]] = []
        # Of messages: what they are known by, and the places of their channels.
        self.ids: list[int] = []
        self.channels_of: list[Place] = []
        # Messages remember where they were told, by this number.
        self._number = next(_numbers)
        # Of those that somebody has looked for by an id, and all before them; and those of which
        # nothing but the id is known.
        self._found: dict[int, Place] = {}
        self._looked_at = 0
        self._nameless: set[int] = set()
        self._senders: dict[str, Place] = {"": NOBODY}
        # Groups of one, and by their first name others, as they were told.
        self._singles: dict[str, Place] = {}
        self._crowds: dict[str, tuple[Sequence[str], Place]] = {}

    def name(self, name: str) -> Place:
        return self.names.setdefault(name, len(self.names))

    def channel(self, channel: str) -> Place:
        return self.channels.setdefault(channel, len(self.channels))

    def sender(self, sender: str) -> Place:
        """Of the session that has this absolute name."""
        place = self._senders.get(sender)
        if place is None:
            place = self._senders[sender] = self.name(key_of(sender))
        return place

    def message(self, message: "Message") -> Place:
        if message.told_in == self._number:
            return message.told
        # Of others nobody has said anything here: looking for the id costs as much as all the rest.
        if message.is_durable or message.generation or self._nameless:
            told = self.named(message.id, message.channel)
        else:
            told = self._new_message(message.id, self.channel(message.channel))
        message.told, message.told_in = told, self._number
        return told

    def named(self, id: int, channel: str) -> Place:
        """The message with this id."""
        told = self._find(id)
        if told is None:
            return self._new_message(id, self.channel(channel))
        if id in self._nameless:
            self._nameless.remove(id)
            self.channels_of[told] = self.channel(channel)
        return told

    def messages(self, ids: Sequence[int]) -> "Place | list[Place]":
        """Of these no more than their ids is known, unless somebody says it besides."""
        if len(ids) == 1:
            return self._known(ids[0])
        return [self._known(id) for id in ids]

    def _known(self, id: int) -> Place:
        told = self._find(id)
        if told is None:
            self._nameless.add(id)
            told = self._new_message(id, NOBODY)
        return told

    def _find(self, id: int) -> "Place | None":
        ids, found = self.ids, self._found
        for place in range(self._looked_at, len(ids)):
            found[ids[place]] = place
        self._looked_at = len(ids)
        return found.get(id)

    def _new_message(self, id: int, channel: Place) -> Place:
        told: Place = len(self.ids)
        self.ids.append(id)
        self.channels_of.append(channel)
        return told

    def single(self, name: str) -> Place:
        """The group that has nobody else."""
        place = self._singles.get(name)
        if place is None:
            place = self._singles[name] = self.new_group((name,))
        return place

    def group(self, names: Sequence[str]) -> Place:
        """A group; one that is told again comes in the same order."""
        first = names[0]
        if len(names) == 1:
            return self.single(first)
        known = self._crowds.get(first)
        if known is not None and known[0] == names:
            return known[1]
        place = self.new_group(names)
        self._crowds[first] = names, place
        return place

    def new_group(self, names: Sequence[str]) -> Place:
        """A group that was not told before, as far as is known."""
        self.groups.append([self.name(name) for name in names])
        return len(self.groups) - 1
