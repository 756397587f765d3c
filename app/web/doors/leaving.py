"""How a server leaves its connections, and hands them to the server that succeeds it."""

import asyncio
import logging
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.units import counted
from holdfast.web.answering.endpoint import Endpoint, error_body, retry_headers
from holdfast.web.answering.heads import Heads, response
from holdfast.web.doors.adoption import Adopting
from holdfast.web.doors.door import Door
from holdfast.web.doors.handing_over import HandOver
from holdfast.web.doors.relays import Relays
from holdfast.web.doors.unhandled import unfinished_request
from holdfast.web.front.fast_lane import FastLane
from holdfast.web.front.listener import Listener
from holdfast.web.scheduling.reading_gate import Reading
from holdfast.web.tasks import reached
from holdfast.web.websockets.websocket import WebSocketFrontEnd

log = logging.getLogger(__name__)

# How many connections are paused, or read again, before other work runs.
_SLICE = 64
# The close frame of a socket: 1012 and the reason.
_REASON = b"the server restarts"
_GOODBYE = bytes([0x88, 2 + len(_REASON)]) + (1012).to_bytes(2) + _REASON
# When clients should repeat a request that was not read to its end.
_RETRY_S = 1.0
# After how many turns of the event loop a request that was read has begun, or waits for a turn with
# more time: aiohttp wakes the connection's task, which starts another one.
_TURNS_TO_BEGIN = 4


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What became of the connections of a server that has left."""

    passed: int
    relayed: int
    closed: int


class Leaving:
    """Leaves the connections of a server in steps, each of which `take_back` undoes.

    Call `pause`, then let the core answer held connects, then `settle`; `be_still` before this
    server lays down its right to speak, and `hand_over` when the successor serves.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        websockets: WebSocketFrontEnd,
        listeners: Mapping[str, Listener],
    ) -> None:
        self._endpoint = endpoint
        self._gate = endpoint.gate
        self._websockets = websockets
        self.listeners = listeners
        # What takes connections from others meanwhile.
        self.adopting = Adopting(listeners)
        self._closed = 0

    async def pause(self, limit_s: float) -> None:
        """Stop accepting and reading. Requests and frames that have begun may still be completed.

        They have this time. What has been read is handled then, unless it waits for the core.
        """
        for listener in self.listeners.values():
            listener.pause_accepting()
            if not listener.has_tls:
                # A new connection of uvloop is read, even if it is paused while it is made.
                await listener.settled()
        self._gate.state = Reading.FINISHING
        for some in _slices(self._connections()):
            for each in some:
                if each.began_at is None:
                    each.pause_until_open()
                else:
                    self._gate.unfinished.add(each)
            await asyncio.sleep(0)
        await reached(limit_s, self._is_complete)
        unfinished, self._gate.unfinished = self._gate.unfinished, set()
        self._gate.state = Reading.PAUSED
        for late in unfinished:
            late.pause_until_open()

    async def begin_all(self, limit_s: float) -> None:
        """Wait until everything that was read has begun, here or in another process."""
        for _ in range(_TURNS_TO_BEGIN):
            await asyncio.sleep(0)
        await reached(limit_s, self._is_complete)

    async def settle(self, limit_s: float) -> bool:
        """Wait until everything that was read is handled and answered; returns whether it is."""
        waiting = self._connections()

        def is_settled() -> bool:
            nonlocal waiting
            waiting = [each for each in waiting if each.is_unsettled()]
            return not waiting and not self._endpoint.scheduler.is_busy

        return await reached(limit_s, is_settled)

    def drop_own(self) -> None:
        """End the connections whose clients would wait for what this server must not say."""
        self._endpoint.coalescer.drop()
        opened = self._websockets.by_connection()
        for each in self._connections():
            socket = None if each not in opened else opened[each].socket
            if socket is not None and socket.session is not None:
                _close(each)

    def be_still(self) -> None:
        """Handle nothing more, not even what has been read: a successor will.

        Call it while this server may still speak, because written responses leave first.
        """
        self._endpoint.coalescer.send()
        self._gate.state = Reading.STILL

    async def take_back(self) -> None:
        """Accept and read again as if nothing had happened."""
        self._gate.open()
        for some in _slices(self._connections()):
            for each in some:
                each.read_again()
            await asyncio.sleep(0)
        for listener in self.listeners.values():
            listener.resume_accepting()

    async def hand_over(
        self, link: socket.socket, *, limit_s: float, last_limit_s: float
    ) -> HandedOver:
        """Hand all connections over; returns when none is left. Closes `link` before that.

        What cannot be handed over within `limit_s` is closed, unless its client reads a response.
        Within `last_limit_s` everything is over, relays too.
        """
        self._gate.state = Reading.STILL
        for listener in self.listeners.values():
            listener.leave_place()
        loop = asyncio.get_running_loop()
        last = loop.time() + last_limit_s
        relays = Relays()
        passing = HandOver(Door(link), self._websockets, relays)
        stuck = loop.call_later(limit_s, self._close_stuck)
        try:
            async with asyncio.timeout_at(last):
                await passing.run(self.listeners)
        except* TimeoutError:
            log.info("some clients took too long to read their responses")
        except* OSError as broken:
            log.warning("the successor takes no more connections: %s", broken.exceptions[0])
        finally:
            stuck.cancel()
            link.close()
        # If the successor has left in turn, slow clients can only be served here.
        await reached(last - loop.time(), self._are_all_closed)
        self._close_all(self._connections())
        await relays.ended(max(0.0, last - loop.time()))
        done = HandedOver(passing.passed, relays.count, self._closed)
        log.info(
            "handed over %s, relayed %d and closed %d",
            *(counted(done.passed, "connection"), done.relayed, done.closed),
        )
        return done

    def _are_all_closed(self) -> bool:
        """Close what has nothing to read any more. Returns whether nothing is left."""
        self._close_stuck()
        return all(each.is_lost() for each in self._connections())

    def _close_stuck(self) -> None:
        self._close_all([each for each in self._connections() if not each.is_responding()])

    def _close_all(self, connections: Sequence[FastLane]) -> None:
        for each in connections:
            if not each.is_lost():
                _close(each)
                self._closed += 1

    def _connections(self) -> list[FastLane]:
        return [each for listener in self.listeners.values() for each in listener.lanes()]

    def _is_complete(self) -> bool:
        gate = self._gate
        return not (gate.unfinished or gate.under_way or self._endpoint.scheduler.is_busy)


def _close(connection: FastLane) -> None:
    """Close a connection. Its client is told to return, or to repeat a request that has begun."""
    transport = connection.transport
    if transport is None:
        return
    # Not by way of the coalescer, because the core must not speak any more.
    if connection.frames is not None:
        transport.write(_GOODBYE)
    elif unfinished_request(connection) is not None:
        headers = {"Connection": "close", **retry_headers(_RETRY_S)}
        body = error_body(RequestRefused(ErrorReply.SERVER_BUSY))
        head = Heads().build(ErrorReply.SERVER_BUSY.code, headers)
        transport.write(response(head, body))
    connection.force_close()


def _slices(connections: Sequence[FastLane]) -> Iterator[Sequence[FastLane]]:
    for start in range(0, len(connections), _SLICE):
        yield connections[start : start + _SLICE]
