"""Bytes of requests that are still arriving or wait for their turn: bounded for all together.

Each request has a limit of its own, but a thousand clients that never finish theirs would hold a
thousand times as much.
"""

from app.bayeux.errors import BayeuxError, RequestRefused

# What is not larger is heard and decoded so soon that it takes no room and waits for nobody.
SMALL = 4096


class Intake:
    """Counts what unfinished requests hold; whoever takes gives back, whatever happens."""

    def __init__(self, limit: int = 256 * 1024 * 1024) -> None:
        self.limit = limit
        self.held = 0

    def take(self, size: int) -> None:
        """Make room for so many bytes, or refuse the request that they belong to."""
        if self.held + size > self.limit:
            raise RequestRefused(BayeuxError.SERVER_BUSY)
        self.held += size

    def give_back(self, size: int) -> None:
        """The request is complete, or given up."""
        self.held -= size
