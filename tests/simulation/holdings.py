"""What processes of a machine share by descriptors: channels, listening sockets and locks."""

import json
import os
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final, Self

from holdfast.supervisor.control import Channel, Parcel
from holdfast.supervisor.packets import PeerBehind, PeerGone
from tests.simulation.environment import running_process

# The real system has no descriptor with such a number.
_numbers = count(1_000_000_000)
# How many parcels wait in a channel.
_ROOM: Final = 250


def _holder() -> Any:
    """Return the process that runs now, whose descriptors end with it."""
    return running_process()


class Thing:
    """Something that the system has as long as somebody has a descriptor of it."""

    def __init__(self) -> None:
        self.holders = 0
        self._watchers: dict[Handle, Callable[[], None]] = {}

    def new(self) -> "Handle":
        """Return a new descriptor, which no process has yet."""
        return Handle(self, next(_numbers))

    def handle(self) -> "Handle":
        """Return a new descriptor for the process that runs now."""
        made = self.new()
        _holder().keep(made)
        return made

    @property
    def is_readable(self) -> bool:
        return False

    def tell(self) -> None:
        """Tell everybody who watches that there is something to read."""
        for then in [*self._watchers.values()]:
            then()

    def let_go(self, handle: "Handle") -> None:
        self._watchers.pop(handle, None)
        self.holders -= 1
        if not self.holders:
            self.end()

    def end(self) -> None:
        """Note that nobody has it any more."""


class Handle(int):
    """A descriptor of a thing."""

    thing: Thing
    is_closed: bool

    def __new__(cls, thing: Thing, number: int) -> Self:
        made = super().__new__(cls, number)
        made.thing = thing
        thing.holders += 1
        made.is_closed = False
        return made

    def copy(self) -> "Handle":
        """Return another one of the same thing, which nobody has yet."""
        return self.thing.new()

    def watch(self, then: Callable[[], None]) -> bool:
        """Call back whenever there is something to read. Returns whether there is now."""
        self.thing._watchers[self] = then
        return self.thing.is_readable

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.thing.let_go(self)

    reset = close

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


Given = Sequence[Any]


class Inbox(Thing):
    """Packets with descriptors that wait to be read."""

    def __init__(self) -> None:
        super().__init__()
        self._came: deque[tuple[bytes, Given]] = deque()
        self.is_over = False

    @property
    def is_readable(self) -> bool:
        return bool(self._came) or self.is_over

    def put(self, data: bytes, descriptors: Given) -> None:
        """Let a packet wait. Raises `OSError` if nobody reads it, or there is no room."""
        if not self.holders:
            raise BrokenPipeError(32, "Broken pipe")
        if len(self._came) >= _ROOM:
            raise BlockingIOError
        self._came.append((data, [each.copy() for each in descriptors]))
        self.tell()

    def take(self) -> tuple[bytes, list[Any]]:
        """Return the next packet, an empty one at the end. Raises `BlockingIOError`."""
        if not self._came:
            if self.is_over:
                return b"", []
            raise BlockingIOError
        data, descriptors = self._came.popleft()
        for each in descriptors:
            _holder().keep(each)
        return data, [*descriptors]

    def end(self) -> None:
        while self._came:
            for each in self._came.popleft()[1]:
                each.close()


class ChannelEnd(Inbox):
    """One end of a `SOCK_SEQPACKET` pair."""

    peer: "ChannelEnd"

    def end(self) -> None:
        super().end()
        self.peer.is_over = True
        self.peer.tell()


def pair() -> tuple[Handle, Handle]:
    """Return both ends of a new pair, for the process that runs now."""
    one, other = ChannelEnd(), ChannelEnd()
    one.peer, other.peer = other, one
    return one.handle(), other.handle()


class SimParcel(Parcel):
    """A parcel with simulated descriptors."""

    def close(self) -> None:
        while self.descriptors:
            descriptor: Any = self.descriptors.pop()
            descriptor.close()


class SimChannel(Channel):
    """A channel of parcels over one end of a pair, or the socket for commands."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def fileno(self) -> int:
        return -1 if self.handle.is_closed else self.handle

    @property
    def is_readable(self) -> bool:
        """Whether there is something to hear."""
        return not self.handle.is_closed and self.handle.thing.is_readable

    def send(self, descriptors: Sequence[int] = (), /, **fields: object) -> None:
        end = self.handle.thing
        assert isinstance(end, ChannelEnd)
        try:
            given = [_holder().handle(each) for each in descriptors]
            end.peer.put(json.dumps(fields).encode(), given)
        except BlockingIOError as error:
            raise PeerBehind("the other process does not read its parcels") from error
        except OSError as error:
            raise PeerGone("the other process has gone") from error

    def receive(self) -> SimParcel | None:
        inbox = self.handle.thing
        assert isinstance(inbox, Inbox)
        try:
            data, descriptors = inbox.take()
        except BlockingIOError:
            return None
        if not data:
            raise PeerGone("the other process has gone")
        return SimParcel(json.loads(data), descriptors)

    def close(self) -> None:
        self.handle.close()


class Link:
    """A socket of a pair over which a server hands its connections to another one."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> Handle:
        return self._handle

    def setblocking(self, _: bool) -> None:
        pass

    def send(self, data: bytes, descriptors: Given = ()) -> None:
        end = self._handle.thing
        assert isinstance(end, ChannelEnd)
        end.peer.put(data, descriptors)

    def receive(self) -> tuple[bytes, list[Any]]:
        end = self._handle.thing
        assert isinstance(end, ChannelEnd)
        return end.take()

    def watch(self, then: Callable[[], None]) -> bool:
        return self._handle.watch(then)

    def close(self) -> None:
        self._handle.close()


class LockFile(Thing):
    """A locked file, and the real one, at which its holders look."""

    def __init__(self, file: int) -> None:
        super().__init__()
        self._file = os.dup(file)

    def new(self) -> Handle:
        return Handle(self, self._file)

    def end(self) -> None:
        os.close(self._file)
