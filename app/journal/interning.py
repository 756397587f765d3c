"""Interning: a frame lists names, groups, channels and messages once; events have their numbers."""

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.delivery.letters.dead import key_of

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message

# Any instead of int, so that mypyc does not make a new number object for each event.
Interned: TypeAlias = Any
NOBODY = -1
# Unique numbers of frames.
_frames = count(1)


class Interning:
    """Gives each new item the next number."""

    def __init__(self) -> None:
        self.names: dict[str, Interned] = {}
        self.channels: dict[str, Interned] = {}
        self.groups: list[list[Interned]] = []
        # Message ids, and the numbers of their channels.
        self.ids: list[int] = []
        self.channels_of: list[Interned] = []
        # Messages remember their number together with the frame's.
        self._frame = next(_frames)
        # Numbers by id: of messages that were looked up by id with all before them, and of those
        # known only by id.
        self._found: dict[int, Interned] = {}
        self._looked_at = 0
        self._nameless: set[int] = set()
        self._senders: dict[str, Interned] = {"": NOBODY}
        # Groups of one receiver, and larger groups by their first name.
        self._singles: dict[str, Interned] = {}
        self._crowds: dict[str, tuple[Sequence[str], Interned]] = {}

    def name(self, name: str) -> Interned:
        return self.names.setdefault(name, len(self.names))

    def channel(self, channel: str) -> Interned:
        return self.channels.setdefault(channel, len(self.channels))

    def sender(self, sender: str) -> Interned:
        """Return the number of the session with this absolute name."""
        number = self._senders.get(sender)
        if number is None:
            number = self._senders[sender] = self.name(key_of(sender))
        return number

    def message(self, message: "Message") -> Interned:
        note = message.journal_note
        if note is not None and note[0] == self._frame:
            return note[1]
        # Other messages cannot be known here by id, and the lookup would cost as much as the rest.
        if message.is_durable or message.generation or self._nameless:
            number = self.named(message.id, message.channel)
        else:
            number = self._new_message(message.id, self.channel(message.channel))
        message.journal_note = (self._frame, number)
        return number

    def named(self, id: int, channel: str) -> Interned:
        """Return the number of the message with this id."""
        number = self._find(id)
        if number is None:
            return self._new_message(id, self.channel(channel))
        if id in self._nameless:
            self._nameless.remove(id)
            self.channels_of[number] = self.channel(channel)
        return number

    def messages(self, ids: Sequence[int]) -> "Interned | list[Interned]":
        """Return the numbers of messages that are known only by id so far."""
        if len(ids) == 1:
            return self._known(ids[0])
        return [self._known(id) for id in ids]

    def _known(self, id: int) -> Interned:
        number = self._find(id)
        if number is None:
            self._nameless.add(id)
            number = self._new_message(id, NOBODY)
        return number

    def _find(self, id: int) -> "Interned | None":
        ids, found = self.ids, self._found
        for number in range(self._looked_at, len(ids)):
            found[ids[number]] = number
        self._looked_at = len(ids)
        return found.get(id)

    def _new_message(self, id: int, channel: Interned) -> Interned:
        number: Interned = len(self.ids)
        self.ids.append(id)
        self.channels_of.append(channel)
        return number

    def single(self, name: str) -> Interned:
        """Return the number of the group with this receiver alone."""
        number = self._singles.get(name)
        if number is None:
            number = self._singles[name] = self.new_group((name,))
        return number

    def group(self, names: Sequence[str]) -> Interned:
        """Return the number of a group; a repeated group has the same order."""
        first = names[0]
        if len(names) == 1:
            return self.single(first)
        known = self._crowds.get(first)
        if known is not None and known[0] == names:
            return known[1]
        number = self.new_group(names)
        self._crowds[first] = names, number
        return number

    def new_group(self, names: Sequence[str]) -> Interned:
        """Return the number of a group that is probably new."""
        self.groups.append([self.name(name) for name in names])
        return len(self.groups) - 1
