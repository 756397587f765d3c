"""A connection that another process has accepted."""

import asyncio
from typing import Any, cast

from holdfast.web.doors.relayed_transport import RelayedTransport
from holdfast.web.front.arrival import Arrival
from holdfast.web.front.connection_parts import ConnectionParts
from holdfast.web.front.fast_lane import FastLane
from holdfast.web.websockets.socket_response import SocketResponse


class GivenLane(FastLane):
    """Goes on where the former process ended."""

    __slots__ = ("_read", "arrival")

    arrival: Arrival

    def __init__(self, arrival: Arrival, read: bytes, parts: ConnectionParts) -> None:
        super().__init__(parts)
        self.arrival = arrival
        # What the former process has read and not handled.
        self._read = read

    def claim_place(self) -> None:
        """Claim the place that it had in the limit of connections."""
        if self.arrival.is_used:
            self._room.hear(self)
        if self.arrival.is_kept:
            self._room.keep(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.arrival.is_used:
            self.unused_since = None
            self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        read, self._read = self._read, b""
        if read:
            self.data_received(read)


class AdoptedLane(GivenLane):
    """May have an open WebSocket; or is relayed, and ends with its next response."""

    __slots__ = ()

    def __init__(self, arrival: Arrival, read: bytes, parts: ConnectionParts) -> None:
        super().__init__(arrival, read, parts)
        if arrival.relayed is not None:
            self._heads = parts.heads.of_last()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        relayed = self.arrival.relayed
        if relayed is not None:
            transport = cast("asyncio.Transport", RelayedTransport(transport, relayed))
        super().connection_made(transport)

    def _free(self) -> None:
        super()._free()
        if self.arrival.relayed is not None:
            self._loop.call_soon(self._end_relay)

    def _end_relay(self) -> None:
        """Close the connection after its last response."""
        if self._endpoint.right.is_silent:
            # The response waits, too.
            self._endpoint.right.when_speaking(self._end_relay)
        else:
            self.force_close()

    async def finish_response(self, request: Any, resp: Any, start_time: float | None) -> Any:
        if self.arrival.socket is not None and not isinstance(resp, SocketResponse):
            # The client had its response to the upgrade long ago: this would be no frame.
            self.force_close()
            return resp, True
        if self.arrival.relayed is not None:
            resp.force_close()
        return await super().finish_response(request, resp, start_time)
