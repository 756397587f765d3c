"""Interning: a frame lists names, groups, channels and messages once; events use their places."""

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.delivery.dead_letters import key_of

if TYPE_CHECKING:
    from holdfast.delivery.messages import Message

# Any instead of int, so that mypyc does not make a new number object for each event.
Place: TypeAlias = Any
NOBODY = -1
# Unique numbers of frames.
_numbers = count(1)


class Interning:
    """Gives each new item the next place."""

    def __init__(self) -> None:
        self.names: dict[str, Place] = {}
        self.channels: dict[str, Place] = {}
        self.groups: list[list[Place]] = []
        # Message ids, and the places of their channels.
        self.ids: list[int] = []
        self.channels_of: list[Place] = []
        # Messages remember their place together with this number of the frame.
        self._number = next(_numbers)
        # Places by id: of messages that were looked up by id with all before them, and of those
        # known only by id.
        self._found: dict[int, Place] = {}
        self._looked_at = 0
        self._nameless: set[int] = set()
        self._senders: dict[str, Place] = {"": NOBODY}
        # Groups of one receiver, and larger groups by their first name.
        self._singles: dict[str, Place] = {}
        self._crowds: dict[str, tuple[Sequence[str], Place]] = {}

    def name(self, name: str) -> Place:
        return self.names.setdefault(name, len(self.names))

    def channel(self, channel: str) -> Place:
        return self.channels.setdefault(channel, len(self.channels))

    def sender(self, sender: str) -> Place:
        """Return the place of the session with this absolute name."""
        place = self._senders.get(sender)
        if place is None:
            place = self._senders[sender] = self.name(key_of(sender))
        return place

    def message(self, message: "Message") -> Place:
        if message.journal_frame == self._number:
            return message.journal_place
        # Other messages cannot be known here by id, and the lookup would cost as much as the rest.
        if message.is_durable or message.generation or self._nameless:
            place = self.named(message.id, message.channel)
        else:
            place = self._new_message(message.id, self.channel(message.channel))
        message.journal_place, message.journal_frame = place, self._number
        return place

    def named(self, id: int, channel: str) -> Place:
        """Return the place of the message with this id."""
        place = self._find(id)
        if place is None:
            return self._new_message(id, self.channel(channel))
        if id in self._nameless:
            self._nameless.remove(id)
            self.channels_of[place] = self.channel(channel)
        return place

    def messages(self, ids: Sequence[int]) -> "Place | list[Place]":
        """Return places of messages that are known only by id so far."""
        if len(ids) == 1:
            return self._known(ids[0])
        return [self._known(id) for id in ids]

    def _known(self, id: int) -> Place:
        place = self._find(id)
        if place is None:
            self._nameless.add(id)
            place = self._new_message(id, NOBODY)
        return place

    def _find(self, id: int) -> "Place | None":
        ids, found = self.ids, self._found
        for place in range(self._looked_at, len(ids)):
            found[ids[place]] = place
        self._looked_at = len(ids)
        return found.get(id)

    def _new_message(self, id: int, channel: Place) -> Place:
        place: Place = len(self.ids)
        self.ids.append(id)
        self.channels_of.append(channel)
        return place

    def single(self, name: str) -> Place:
        """Return the place of the group with this receiver alone."""
        place = self._singles.get(name)
        if place is None:
            place = self._singles[name] = self.new_group((name,))
        return place

    def group(self, names: Sequence[str]) -> Place:
        """Return the place of a group; a repeated group has the same order."""
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
        """Return the place of a group that is probably new."""
        self.groups.append([self.name(name) for name in names])
        return len(self.groups) - 1
