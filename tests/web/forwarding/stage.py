"""A door and a home in this process, with a link between them; clients as in a rig."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast.web.forwarding.asks import Asked
from holdfast.web.forwarding.far_shard import FarShard
from holdfast.web.forwarding.home_core import HomeCore
from holdfast.web.forwarding.newcomers import Newcomers
from holdfast.web.forwarding.request_door import Door, DoorParts
from holdfast.web.forwarding.request_home import Home
from holdfast.web.forwarding.shard_link import Link
from tests.web.requests import client_ids
from tests.web.rig import Client, Rig

# Turns that are enough for a request to go to the home, and for its reply to come back.
TURNS = 40
FAR = 1


class Wire(asyncio.Transport):
    """One direction of a link: what one end writes, the other reads in pieces in later turns."""

    def __init__(self, own: Link, peer: Link, piece: int) -> None:
        super().__init__()
        self._own, self._peer = own, peer
        self._piece = piece
        self._is_closing = False
        self.other: Wire
        # Whether nothing arrives any more, although nobody knows that yet.
        self.is_cut = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing waits here."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        whole = bytes(data)
        for at in range(0, len(whole), self._piece):
            asyncio.get_running_loop().call_soon(self._arrive, whole[at : at + self._piece])

    def _arrive(self, data: bytes) -> None:
        if not self._is_closing and not self.is_cut:
            self._peer.data_received(data)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self.lose()

    def abort(self) -> None:
        self.lose()

    def lose(self) -> None:
        for wire in (self, self.other):
            if not wire._is_closing:
                wire._is_closing = True
                wire._own.connection_lost(None)


class Pair:
    """The process with the connections, and the one with the sessions."""

    def __init__(self, piece: int, **options: Any) -> None:
        self.piece = piece
        # What the home answers to questions.
        self.asked = Asked()
        self.home = Rig(**options)
        self.door = Rig(requests=self._door, **options)
        self.far.outlet = self.door.coalescer

    def _door(self, rig: Rig) -> Door:
        self.far = FarShard(1, rig._clock)
        newcomers = Newcomers(None)
        far = {FAR: self.far}
        parts = DoorParts(
            *(rig.scheduler, client_ids(), lambda _: FAR, far, newcomers.subject_of),
            *(rig.bayeux.state.request_limits, lambda *_: False),
        )
        return Door(parts)

    def link(self) -> None:
        """Connect the two."""
        rig = self.home
        per_frame = rig.endpoint.options.ws_messages_per_frame
        core = HomeCore(rig.bayeux, rig._clock, rig.endpoint.gate)
        self.at_home = Home(rig.scheduler, rig.coalescer, core, per_frame, self.asked)
        near, far = self.far.link(), self.at_home.link
        self.wire, other = Wire(near, far, self.piece), Wire(far, near, self.piece)
        self.wire.other, other.other = other, self.wire
        near.connection_made(self.wire)
        far.connection_made(other)
        self.at_home.begin(0)
        self.far.open(near)

    def connect(self) -> Client:
        return self.door.connect()

    async def settle(self, client: Client) -> None:
        await client.settle(TURNS)


@asynccontextmanager
async def pair(piece: int = 1 << 16, **options: Any) -> AsyncIterator[Pair]:
    both = Pair(piece, **options)
    async with both.home, both.door:
        both.link()
        yield both
