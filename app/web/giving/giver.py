"""Decides which connections are given to which worker."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from holdfast.bayeux.session import Exchange
from holdfast.web.doors.unhandled import unhandled_of_socket
from holdfast.web.front.arrival import Arrival, OpenSocket
from holdfast.web.front.fast_lane import FastLane
from holdfast.web.front.listener import Listener
from holdfast.web.front.reading_aside import ReadingAside
from holdfast.web.front.trail import MOST_MOVES, NO_TRAIL, cookies_of_first, is_due
from holdfast.web.giving.parting import may_move, may_part, request_of
from holdfast.web.giving.taker import lane_of
from holdfast.web.giving.under_way import Given, GivingLink
from holdfast.web.http.cookies import BrowserCookie
from holdfast.web.websockets.open_socket import Socket
from holdfast.web.websockets.websocket import WebSocketFrontEnd


class Giver:
    """Gives connections of a listener to other workers.

    Args:
        name: The name of the listener, which is the same at all workers.
        places: Where each other worker takes connections, by the number of its shard.
        takes: Whether a worker is there now.
        shard_of: The other worker that has a browser with this identity; None if there is none.
    """

    def __init__(
        self,
        listener: Listener,
        name: str,
        websockets: WebSocketFrontEnd,
        cookie: BrowserCookie,
        places: Mapping[int, Path],
        takes: Callable[[int], bool],
        shard_of: Callable[[str], int | None],
    ) -> None:
        self._listener, self._name = listener, name
        self._websockets, self._cookie = websockets, cookie
        self._takes, self._shard_of = takes, shard_of
        self._links = {shard: GivingLink(path, self._take_back) for shard, path in places.items()}

    @property
    def given(self) -> dict[int, int]:
        """How many connections each other worker has taken."""
        return {shard: link.taken for shard, link in self._links.items()}

    def gives(self, shard: int, body: bytes, exchange: Exchange) -> bool:
        """Give the connection of a request that another worker has to handle, if it is time to.

        Returns False if it stays here.
        """
        connection = exchange.carrier
        if not isinstance(connection, FastLane):
            return False
        arrival = connection.arrival
        moves = 0 if arrival is None else arrival.moves
        trail = (connection.trail or NO_TRAIL).next(shard, connection.requests)
        connection.trail = trail
        if not is_due(trail, is_new=arrival is None, moves=moves):
            return False
        read = request_of(connection, body)
        return read is not None and self._give(shard, connection, read)

    def gives_first(self, connection: ReadingAside, data: bytes) -> bool:
        """Give a connection whose first bytes show by a cookie that another worker has its browser.

        Returns False if it stays here.
        """
        if not isinstance(connection, FastLane) or connection.arrival is not None:
            return False
        cookies = cookies_of_first(data)
        if not cookies:
            return False
        for browser in self._cookie.find(cookies):
            shard = self._shard_of(browser)
            if shard is not None:
                return self._give(shard, connection, data)
        return False

    def give_socket(self, shard: int, socket: Socket, client_id: str) -> None:
        """Give the connection of a socket whose first session another worker has, if it is still.

        Its client has got the reply to its handshake, and its next message is not here.
        """
        connection = socket.connection
        response = self._websockets.by_connection().get(connection)
        if not isinstance(connection, FastLane) or response is None:
            return
        arrival = connection.arrival
        if arrival is not None and arrival.moves >= MOST_MOVES:
            return
        if self._takes(shard) and may_move(connection):
            read = unhandled_of_socket(connection, response, socket)
            if read is not None:
                opened = OpenSocket(socket.speaker.browsers, client_id, is_attached=False)
                self._send(shard, connection, read, opened)

    def _give(self, shard: int, connection: FastLane, read: bytes) -> bool:
        if not self._takes(shard) or not may_part(connection):
            return False
        return self._send(shard, connection, read)

    def _send(
        self, shard: int, connection: FastLane, read: bytes, opened: OpenSocket | None = None
    ) -> bool:
        former = connection.arrival or Arrival(self._name)
        arrival = Arrival(
            self._name,
            is_used=connection.unused_since is None,
            socket=opened,
            moves=former.moves + 1,
        )
        return self._links[shard].give(connection, arrival, read)

    def _take_back(self, given: Given) -> None:
        """Go on with a connection that the other worker has not taken. It moves no more."""
        connection = socket.socket(fileno=given.descriptor)
        arrival = replace(given.arrival, moves=MOST_MOVES)
        lane = self._listener.adopt(connection, partial(lane_of(arrival), arrival, given.read))
        if lane is not None:
            lane.claim_place()

    @property
    def is_settled(self) -> bool:
        """Whether everything given is answered, and what was not taken is served here."""
        listener = self._listener
        # A connection with TLS is never given, and its handshake may take long.
        is_served = listener.has_tls or not listener.is_settling
        return is_served and all(link.is_settled for link in self._links.values())

    def close(self) -> None:
        """Wait for no more answers."""
        for link in self._links.values():
            link.close()
