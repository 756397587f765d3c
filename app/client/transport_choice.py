"""Chooses the transport: the best that works, and a better one again after a while; no I/O."""

from collections.abc import Sequence

WEBSOCKET = "websocket"
LONG_POLLING = "long-polling"
# Until a transport that failed is tried again; doubles with each failure.
_FIRST_REST_S = 10.0
_LONGEST_REST_S = 600.0


class TransportChoice:
    """The transports in order of preference, and what is known of each."""

    def __init__(self, names: Sequence[str]) -> None:
        if not names or not {WEBSOCKET, LONG_POLLING}.issuperset(names):
            raise ValueError(f"transports are {WEBSOCKET!r} and {LONG_POLLING!r}, not {names!r}")
        self._names = tuple(names)
        self._offered = self._names
        self._failures = dict.fromkeys(names, 0)
        self._rests_until = dict.fromkeys(names, 0.0)

    @property
    def names(self) -> Sequence[str]:
        """The connection types that a handshake offers to the server."""
        return self._names

    def offered(self, names: object) -> None:
        """Take the list of transports in the reply to a handshake."""
        if isinstance(names, list):
            common = tuple(name for name in self._names if name in names)
            self._offered = common or self._names

    def choose(self, now: float) -> str:
        """Return the transport for the next request."""
        rested = [name for name in self._offered if self._rests_until[name] <= now]
        return rested[0] if rested else self._offered[-1]

    def failed(self, name: str, now: float) -> None:
        """Note that the transport could not be opened: it rests, and others are used."""
        self._failures[name] += 1
        rest_s = min(_FIRST_REST_S * 2.0 ** (self._failures[name] - 1), _LONGEST_REST_S)
        self._rests_until[name] = now + rest_s

    def trust(self, name: str) -> None:
        """Note that the transport works, or that nothing speaks against it."""
        self._failures[name] = 0
        self._rests_until[name] = 0.0
