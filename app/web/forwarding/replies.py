"""How a home handles requests of a door, and what it sends back."""

import json
from collections.abc import Callable
from typing import Final

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.delivery.basics.ignoring import ignore
from holdfast.web.forwarding.frames import Kind, Write, pack
from holdfast.web.forwarding.shard_link import Link
from holdfast.web.scheduling.request_sink import RequestSink
from holdfast.web.scheduling.write_coalescer import WriteCoalescer

_NO_FRAMES: Final = b""


class Replies:
    """What the carriers and sockets of one door share."""

    def __init__(
        self,
        link: Link,
        scheduler: RequestSink,
        coalescer: WriteCoalescer,
        messages_per_frame: int,
    ) -> None:
        self.link = link
        link.collect(self._take_group)
        self.scheduler = scheduler
        # By which replies leave when this process may speak to clients.
        self.coalescer = coalescer
        self.messages_per_frame = messages_per_frame
        # Called when a socket has written a reply.
        self.on_answered: Callable[[], None] = ignore
        # Frames to be written, and to which sockets.
        self._frames = _NO_FRAMES
        self._group: list[int] = []

    def handle(
        self, exchange: Exchange, body: bytes, done: Callable[[RequestRefused | None], None]
    ) -> bool:
        """Handle a request. Returns whether that is done; if not, or if it fails, calls `done`."""
        try:
            rest = self.scheduler.receive(body, exchange)
        except RequestRefused as refused:
            done(refused)
        except BaseException:
            done(self.scheduler.fail(exchange))
        else:
            if rest is None:
                return True
            rest.done = done
        return False

    def refuse(self, number: int, refused: RequestRefused) -> None:
        """Refuse an exchange as a whole."""
        error = refused.error
        args = str(refused).removeprefix(f"{error.code}:").removesuffix(f":{error.reason}")
        self.link.send(
            pack(Kind.REFUSED, number, json.dumps([error.name, args, refused.wait_s]).encode())
        )

    def write(self, number: int, frames: bytes) -> None:
        """Write WebSocket frames to a socket. Many often get the same ones in a row."""
        if frames is not self._frames:
            self.link.send_collected()
            self._frames = frames
        self._group.append(number)
        self.link.has_collected = True
        self.link.flush_at_end()

    def _take_group(self) -> bytes:
        if not self._group:
            return b""
        group, frames = tuple(self._group), self._frames
        self._group, self._frames = [], _NO_FRAMES
        return Write(group, frames).pack()
