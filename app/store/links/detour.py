"""Takes a call to where its keys are, while they move between the servers of a cluster."""

import asyncio
from collections.abc import Callable, Sequence

from holdfast.store.links.primary import MOVING_S, Primary
from holdfast.store.links.reply_errors import StoreElsewhere
from holdfast.store.links.resp import RespConnection, Unusable, pack

_ASKING = pack(["ASKING"])


class Detour:
    """What a link does about its oldest call, which the store did not carry out.

    Args:
        primary: Told by the link where the keys are now.
        sources: The scripts that a server needs.
        timeout_s: The limit for one detour.
        on_moved: Called with a connection to the server that has all keys now.
        on_answer: Called with the answer of the server that has the keys of this call only.
        on_wait_over: Called when it is time to send the call again.
        on_failure: Called when none of this succeeds. The text says why.
    """

    def __init__(
        self,
        primary: Primary,
        *,
        sources: Sequence[str],
        timeout_s: float,
        on_moved: Callable[[RespConnection], None],
        on_answer: Callable[[object], None],
        on_wait_over: Callable[[], None],
        on_failure: Callable[[str], None],
    ) -> None:
        self._primary = primary
        self._sources = sources
        self._timeout_s = timeout_s
        self._on_moved = on_moved
        self._on_answer = on_answer
        self._on_wait_over = on_wait_over
        self._on_failure = on_failure
        self._task: asyncio.Task[None] | None = None
        # A connection to the server to which the keys move, and its place.
        self._aside: RespConnection | None = None
        self._place: tuple[str, int] | None = None

    def begin(self, error: StoreElsewhere, packed: bytes) -> None:
        """Follow the error of this call; one of the callbacks tells the result in a later turn."""
        self._task = asyncio.get_running_loop().create_task(self._take(error, packed))

    def end(self) -> asyncio.Task[None] | None:
        """Give up, and close the connection aside. Returns the task that ends."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        if self._aside is not None:
            self._aside.abort("no longer needed")
        return task

    async def _take(self, error: StoreElsewhere, packed: bytes) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                tell = await self._way(error, packed)
        except TimeoutError:
            why = "does not answer"
        except Unusable as failure:
            why = str(failure)
        else:
            self._task = None
            tell()
            return
        self._task = None
        self._on_failure(f"{error}; there: {why}")

    async def _way(self, error: StoreElsewhere, packed: bytes) -> Callable[[], None]:
        """Go there, or wait. Returns the callback that tells the result."""
        if error.code == "MOVED":
            wire = await self._primary.connect(self._sources, self._timeout_s)
            return lambda: self._on_moved(wire)
        if error.code == "ASK" and error.place is not None:
            aside = await self._aside_at(error)
            _, reply = await aside.replies(_ASKING + packed, 2)
            return lambda: self._on_answer(reply)
        await asyncio.sleep(MOVING_S)
        return self._on_wait_over

    async def _aside_at(self, error: StoreElsewhere) -> RespConnection:
        aside = self._aside
        if aside is None or aside.lost.done() or self._place != error.place:
            if aside is not None:
                aside.abort("no longer needed")
            aside = await self._primary.connect_aside(error, self._sources, self._timeout_s)
            self._aside, self._place = aside, error.place
        return aside
