"""The requests that read histories: how many may wait, and until when they may read."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from holdfast.bayeux.state.waiting_readers import WaitingReader
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused

# How often readers whose login may have ended are looked for, and how many of them in one turn.
_LOOK_S: Final = 0.25
_IN_TURN: Final = 200


class Readers:
    """The readers that wait, in all, by address, and by subject.

    Args:
        waiting: All of them, by id.
        new_id: Returns an id that no shard gives to anything else.
        check: Raises `RequestRefused` if a reader may no longer read.
    """

    def __init__(
        self,
        most: int,
        most_of_one: int,
        waiting: dict[str, WaitingReader],
        new_id: Callable[[], str],
        check: Callable[[WaitingReader], None],
    ) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._waiting, self._new_id, self._check = waiting, new_id, check
        # Of addresses and of subjects; no subject is an address.
        self._shares: Counter[tuple[str, str]] = Counter()
        # Watches them while there are any.
        self._watch: asyncio.Task[None] | None = None

    @contextmanager
    def one_more(self, reader: WaitingReader) -> Iterator[None]:
        """Count a reader while it waits. Raises `RequestRefused` if there are too many."""
        if len(self._waiting) >= self._most:
            raise RequestRefused(ErrorReply.READERS_EXCEEDED, "max_readers", wait_s=1.0)
        shares = _shares_of(reader)
        if any(0 < self._most_of_one <= self._shares[each] for each in shares):
            raise RequestRefused(ErrorReply.READERS_EXCEEDED, "quota_readers", wait_s=1.0)
        id = self._new_id()
        self._waiting[id] = reader
        self._shares.update(shares)
        if self._watch is None:
            self._watch = asyncio.create_task(self._watching())
        try:
            yield
        finally:
            del self._waiting[id]
            for each in shares:
                self._shares[each] -= 1
                if not self._shares[each]:
                    del self._shares[each]

    async def _watching(self) -> None:
        """End the waits of readers that may no longer read, while any wait."""
        while self._waiting:
            await asyncio.sleep(_LOOK_S)
            now_s = time.time()
            doubtful = [each for each in self._waiting.values() if each.is_doubtful(now_s)]
            for place, reader in enumerate(doubtful):
                try:
                    self._check(reader)
                except RequestRefused:
                    if reader.end is not None:
                        reader.end()
                if place % _IN_TURN == _IN_TURN - 1:
                    await asyncio.sleep(0)
        self._watch = None


def _shares_of(reader: WaitingReader) -> list[tuple[str, str]]:
    """Return what a reader counts for. Addresses of this machine are not counted."""
    network = reader.caller.network
    shares = [("address", network)] if network else []
    return [*shares, ("subject", reader.subject)] if reader.subject else shares
