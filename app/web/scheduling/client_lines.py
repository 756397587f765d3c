"""Connections whose bytes wait to be parsed, in one line for each client.

Parsing a head that is new on its connection takes longer than handling most requests. When a turn
is over, such bytes wait here. What the same client sends later waits behind them, whatever
connection it uses: clients publish over several connections, and expect their order to be kept.
"""

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from holdfast.bayeux.session import Exchange
from holdfast.web.http.known_head import LENGTH
from holdfast.web.http.request_kinds import RequestKind
from holdfast.web.scheduling.turn_budget import Turn

# How much of each turn is for what waits here.
_SHARE_S: Final = 0.003
_END: Final = b"\r\n\r\n"
_NAME_OF_ID: Final = b'"clientId"'
_ID: Final = re.compile(rb'"clientId"\s*:\s*"([^"]{1,128})"')

Read = Callable[[], None]


class ClientLines:
    """Lets connections parse in later turns, for each client in the order of arrival.

    Places take turns, and so do the clients of a place. An address has a place for each kind of
    requests. Each connection waits once, so the limit of connections also limits how many wait.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        turn: Turn,
        since: OrderedDict[Read, float],
        cookie: str,
    ) -> None:
        self._clock = clock
        self._turn = turn
        # Since when each connection waits, oldest first.
        self._since = since
        self._cookie = cookie.encode() + b"="
        # Mostly one connection each: a deque would take 600 bytes for it.
        self._lines: dict[bytes, list[Read]] = {}
        # The clients of each place that have a line.
        self._places: OrderedDict[bytes, deque[bytes]] = OrderedDict()
        self._is_due = False

    def __len__(self) -> int:
        return len(self._since)

    def holds(self, client: bytes) -> bool:
        """Return whether anything of this client waits."""
        return client in self._lines

    def client_of(self, data: bytes, place: bytes) -> bytes:
        """Return whose request begins with these bytes.

        A client is a browser, or without a cookie a session, or else everybody at its place.
        """
        cookie = data.find(self._cookie)
        if cookie >= 0 and data.find(_END, 0, cookie) < 0:
            # An expression takes longer, and thousands may wait.
            line = data.find(b"\r", cookie)
            return data[cookie : line if line >= 0 else len(data)].partition(b";")[0]
        session = session_in(data)
        # What waits there may be of this session: a body may come behind its head.
        is_known = session and (session in self._lines or place not in self._lines)
        return session if is_known else place

    def add(self, read: Read, client: bytes, place: bytes) -> None:
        """Let a connection read in a later turn."""
        self._since[read] = self._clock()
        line = self._lines.get(client)
        if line is not None:
            line.append(read)
        else:
            self._lines[client] = [read]
            clients = self._places.get(place)
            if clients is None:
                clients = self._places[place] = deque()
            clients.append(client)
        self._read_soon()

    def _take(self) -> Read:
        """Return whose turn it is: the first of the next client of the next place."""
        place, clients = self._places.popitem(last=False)
        client = clients.popleft()
        line = self._lines[client]
        read = line.pop(0)
        if line:
            clients.append(client)
        else:
            del self._lines[client]
        if clients:
            self._places[place] = clients
        del self._since[read]
        return read

    def _read_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            loop = asyncio.get_running_loop()
            # Behind what is answered at the end of this turn.
            loop.call_soon(loop.call_soon, self._read_some)

    def _read_some(self) -> None:
        """Let connections read, at least one, until the time is spent; during a silence too."""
        self._is_due = False
        # Others need not wait for this.
        self._turn.send()
        self._turn.begin_anew(_SHARE_S)
        # The time of a turn starts with the first question.
        self._turn.is_spent()
        try:
            while self._lines:
                self._take()()
                if self._turn.is_spent():
                    break
        finally:
            # Connections that are read next must not suffer for these.
            self._turn.begin_anew()
            if self._lines:
                self._read_soon()


def place_of(address: bytes, kind: RequestKind) -> bytes:
    """Return the place of a client: an address has one for each kind of requests."""
    return kind + address


def session_in(data: bytes) -> bytes:
    """Return the first session that a body names; empty if there is none."""
    found = _ID.match(data, max(0, data.find(_NAME_OF_ID)))
    return b"" if found is None else found[1]


def is_whole(request: bytes) -> bool:
    """Return whether all of a request has arrived, as far as its head tells."""
    body = request.find(_END) + len(_END)
    if body < len(_END):
        return False
    length = LENGTH.search(request, 0, body)
    return length is None or len(request) - body >= int(length[1])


def clients_of(exchange: Exchange, body: bytes) -> tuple[str | bytes, ...]:
    """Return by what the client of a small request is known: a browser, session or address."""
    speaker = exchange.speaker
    return speaker.browsers or (session_in(body) or speaker.caller.address,)
