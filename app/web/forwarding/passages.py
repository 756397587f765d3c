"""How messages that are not stored go over the link between a door and a home.

They go from the shard of the door to the home, which opens the way, and may shut it.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Protocol

import orjson

from holdfast.web.forwarding.frames import Kind, pack
from holdfast.web.forwarding.shard_link import Link

# By kind, what a frame does.
Handlers = Mapping[Kind, Callable[[int, bytes], None]]


class Inlet(Protocol):
    """What a shard does with messages of others."""

    def open_link(self, shard: int, way: "PassageIn", /) -> int:
        """Return the number of a link on which that shard is about to send, which is unique."""
        ...

    def grafted(self, shard: int, number: int, /) -> None:
        """Take note that the shard knows the grafts up to this number."""
        ...

    def take_messages(self, shard: int, link: int, n: int, frame: bytes, /) -> None:
        """Take a frame of messages that has this number on its link."""
        ...

    def lose_link(self, shard: int, link: int, /) -> None:
        """Nothing more comes on this link."""
        ...


class PassageOut:
    """The way to the shard of a home."""

    def __init__(self) -> None:
        self._link: Link | None = None
        # What the home calls the link, 0 if it takes no messages; and how many frames were sent.
        self._number = self._count = 0
        # The same of the last one that was lost or held: these frames may still arrive.
        self._former = 0, 0
        # Whether this shard sends nothing for now.
        self._is_resting = False
        # Whether the home has everything that was sent before `rest`.
        self.is_heard = True
        # The channels of which the home has no receivers.
        self.pruned: set[str] = set()
        self.handlers: Handlers = {
            Kind.GO: self._go,
            Kind.HOLD: self._hold,
            Kind.HEARD: self._heard,
            Kind.PRUNE: self._prune,
            Kind.GRAFT: self._graft,
        }

    def begin(self, link: Link) -> None:
        """Use a new link, once the home says so."""
        self._link = link

    def lost(self) -> None:
        """The link has ended."""
        self._link = None
        self._end()
        self.is_heard = True
        self.pruned.clear()

    def _end(self) -> None:
        if self._count:
            self._former = self._number, self._count
        self._number = self._count = 0

    @property
    def is_open(self) -> bool:
        """Whether it takes more now."""
        link = self._link
        if link is None or not self._number or self._is_resting:
            return False
        return not link.is_full and link.is_open

    @property
    def sent(self) -> tuple[int, int]:
        """What the home calls the link, or the last one, and how many frames were sent there."""
        return (self._number, self._count) if self._number else self._former

    def send(self, frame: bytes) -> None:
        """Send messages at the end of the turn."""
        if self._link is not None:
            self._count += 1
            self._link.send(pack(Kind.MESSAGES, self._count, frame))

    def rest(self) -> None:
        """Send nothing until `resume`, and ask whether everything has arrived."""
        self._is_resting = True
        if self._link is not None and self._number:
            self.is_heard = False
            self._link.send(pack(Kind.HELD, 0))

    def resume(self) -> None:
        """Send again."""
        self._is_resting = False

    def _go(self, number: int, _: bytes) -> None:
        self._number, self._count = number, 0
        self.pruned.clear()

    def _hold(self, number: int, _: bytes) -> None:
        if self._link is not None:
            self._end()
            self._link.send(pack(Kind.HELD, number))

    def _heard(self, _: int, __: bytes) -> None:
        self.is_heard = True

    def _prune(self, _: int, channels: bytes) -> None:
        self.pruned.update(orjson.loads(channels))

    def _graft(self, number: int, channel: bytes) -> None:
        if channel:
            self.pruned.discard(channel.decode())
        else:
            self.pruned.clear()
        if self._link is not None:
            self._link.send(pack(Kind.GRAFTED, number))


class _State(Enum):
    """Whether messages come, of one end."""

    # There is no link.
    SHUT = "shut"
    OPEN = "open"
    # The other end was told to send no more. In the second case, it is to go on when it has done
    # so.
    HOLDING = "holding"
    OPENING = "opening"
    HELD = "held"


class PassageIn:
    """The way from the shard of a door."""

    def __init__(self, inlet: Inlet) -> None:
        self._inlet = inlet
        self._link: Link | None = None
        self._shard = self._number = 0
        self._state = _State.SHUT
        # How often the other end was told to send no more: it confirms the number.
        self._holds = 0
        self.handlers: Handlers = {
            Kind.MESSAGES: self._take,
            Kind.HELD: self._held,
            Kind.GRAFTED: self._grafted,
        }

    def begin(self, link: Link, shard: int) -> None:
        """Take messages of this shard, which has the other end of the link."""
        self._link, self._shard = link, shard
        self._open()

    def _open(self) -> None:
        if self._link is not None:
            self._state = _State.OPEN
            self._number = self._inlet.open_link(self._shard, self)
            self._link.send(pack(Kind.GO, self._number))

    @property
    def is_held(self) -> bool:
        """Whether nothing more comes."""
        return self._state in (_State.SHUT, _State.HELD)

    def open(self) -> None:
        """Let messages come again after `hold`, once those before it have arrived."""
        if self._state is _State.HELD:
            self._open()
        elif self._state is _State.HOLDING:
            self._state = _State.OPENING

    def hold(self) -> None:
        """Let no more come, also if the other end rests: it may go on without a word."""
        if self._link is not None and self._state in (_State.OPEN, _State.OPENING):
            self._state = _State.HOLDING
            self._holds += 1
            self._link.send(pack(Kind.HOLD, self._holds))

    def cut(self) -> None:
        """End the link."""
        if self._link is not None:
            self._link.abort()

    def prune(self, channels: Sequence[str]) -> None:
        """Ask for no more messages of these channels."""
        if self._link is not None:
            self._link.send(pack(Kind.PRUNE, 0, orjson.dumps(channels)))

    def graft(self, channel: str, number: int) -> None:
        """Ask for messages of the channel again, or of all, if it is empty."""
        if self._link is not None:
            self._link.send(pack(Kind.GRAFT, number, channel.encode()))

    def lost(self) -> None:
        """The link has ended."""
        self._link = None
        self._state = _State.SHUT
        if self._number:
            self._inlet.lose_link(self._shard, self._number)

    def _take(self, n: int, data: bytes) -> None:
        self._inlet.take_messages(self._shard, self._number, n, data)

    def _grafted(self, number: int, _: bytes) -> None:
        self._inlet.grafted(self._shard, number)

    def _held(self, number: int, _: bytes) -> None:
        if not number:
            # The other end rests by itself.
            if self._link is not None:
                self._link.send(pack(Kind.HEARD, 0))
        elif number == self._holds:
            is_opening, self._state = self._state is _State.OPENING, _State.HELD
            if is_opening:
                self._open()
