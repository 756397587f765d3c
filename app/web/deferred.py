"""Connections whose bytes wait for a later turn."""

import asyncio
from collections import deque
from collections.abc import Callable
from math import inf

from holdfast.web.cookies import raw_cookies
from holdfast.web.turn_budget import Turn

# So much of a turn is for parsing what goes ahead, and so much for other requests.
_SHARE_S = 0.002
_QUESTION = b"GET "


class Deferred:
    """Lets connections read in the order in which their bytes came, some in each turn.

    A connection stands here once at a time, so the limit of connections also limits how many wait.
    """

    def __init__(self) -> None:
        # Since when each waits, its cookies, and what reads its bytes.
        self._waiting: deque[tuple[float, bytes, Callable[[], None]]] = deque()
        # How many with the same cookies wait. Those without any are not counted.
        self._cookies: dict[bytes, int] = {}
        # Asked for each request.
        self.is_empty = True

    def add(self, now: float, read: Callable[[], None], cookies: bytes = b"") -> None:
        """Call `read` in a later turn, after those that wait already."""
        self._waiting.append((now, cookies, read))
        self.is_empty = False
        if cookies:
            self._cookies[cookies] = self._cookies.get(cookies, 0) + 1

    def has(self, cookies: bytes) -> bool:
        """Return whether bytes of this client wait, whatever their connection."""
        return cookies in self._cookies

    def since(self) -> float:
        """Return since when the first one waits; infinity if there is none."""
        return self._waiting[0][0] if self._waiting else inf

    def read_some(self, turn: Turn) -> None:
        """Read those that wait now until the time of the turn is spent, but at least one."""
        for _ in range(len(self._waiting)):
            _, cookies, read = self._waiting.popleft()
            self.is_empty = not self._waiting
            if cookies:
                self._forget(cookies)
            read()
            if turn.is_spent():
                break

    def _forget(self, cookies: bytes) -> None:
        left = self._cookies[cookies] - 1
        if left:
            self._cookies[cookies] = left
        else:
            del self._cookies[cookies]


class Unparsed:
    """Connections whose bytes have to be parsed, in two queues with a part of each turn.

    To parse a head takes longer than to handle most requests. Complete requests whose head is known
    overtake what waits here, unless the same client has sent it: it may publish over several
    connections.
    """

    def __init__(
        self, clock: Callable[[], float], turn: Turn, ahead: Deferred, others: Deferred
    ) -> None:
        self._clock = clock
        self._turn = turn
        self._ahead, self._others = ahead, others
        self._is_due = False

    @property
    def is_empty(self) -> bool:
        """Whether none waits."""
        return self._ahead.is_empty and self._others.is_empty

    def precedes(self, data: bytes) -> bool:
        """Return whether earlier bytes of the same client wait."""
        if self.is_empty:
            return False
        cookies = raw_cookies(data)
        return self._others.has(cookies) or self._ahead.has(cookies)

    def add(self, data: bytes, parse: Callable[[], None], *, is_known: bool) -> None:
        """Let a connection parse bytes that begin with these in a later turn.

        Those whose head is known, or was parsed before, go ahead of others; so do questions.
        """
        cookies = raw_cookies(data)
        goes_ahead = data.startswith(_QUESTION) or (is_known and not self._others.has(cookies))
        (self._ahead if goes_ahead else self._others).add(self._clock(), parse, cookies)
        self._parse_soon()

    def _parse_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._parse_some)

    def _parse_some(self) -> None:
        """Let connections parse what waits, during a silence too."""
        self._is_due = False
        # Others need not wait for this.
        self._turn.send()
        try:
            for queue in (self._ahead, self._others):
                self._turn.begin_anew(_SHARE_S)
                # The time of a turn starts with the first question.
                self._turn.is_spent()
                queue.read_some(self._turn)
        finally:
            # Connections that are read next must not suffer for these.
            self._turn.begin_anew()
            if not self.is_empty:
                self._parse_soon()
