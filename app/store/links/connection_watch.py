"""Watches the connection of a store link: pings an idle one, and gives up a silent one."""

import asyncio
from collections.abc import Callable

from holdfast.store.links.primary import Primary
from holdfast.store.links.resp import RespConnection

# A check this late means that this process was frozen: read answers that have arrived first.
_LATE_S = 0.5
# A frozen server is replaced before its connections end. After this silence others are asked, and
# then again and again.
_LOOK_S = 1.0
_AGAIN_S = 0.25


class ConnectionWatch:
    """Checks one connection at a time.

    Args:
        timeout_s: How long the store may leave a call unanswered.
        is_waiting: Returns whether calls are unanswered.
        on_idle: Called when nothing was heard for a while and nothing is due.
        on_lost: Called when a new connection is needed. The text says why.
    """

    def __init__(
        self,
        primary: Primary,
        timeout_s: float,
        *,
        is_waiting: Callable[[], bool],
        on_idle: Callable[[], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._primary = primary
        self._timeout_s = timeout_s
        self._is_waiting = is_waiting
        self._on_idle = on_idle
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._wire: RespConnection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._check_at = 0.0
        self._looking: asyncio.Task[None] | None = None

    def begin(self, wire: RespConnection) -> None:
        """Watch this connection from now on."""
        self.end()
        self._wire = wire
        self._check_in(self._step_s)

    def end(self) -> asyncio.Task[None] | None:
        """Watch no longer. Returns a task that ends."""
        self._wire = None
        if self._timer is not None:
            self._timer.cancel()
        task, self._looking = self._looking, None
        if task is not None:
            task.cancel()
        return task

    @property
    def _step_s(self) -> float:
        has_others = self._primary.has_others
        return min(self._timeout_s, _LOOK_S) if has_others else self._timeout_s

    def _check_in(self, wait_s: float) -> None:
        self._check_at = self._loop.time() + wait_s
        self._timer = self._loop.call_later(wait_s, self.check)

    def check(self) -> None:
        """Check the connection now."""
        wire = self._wire
        if wire is None:
            return
        now = self._loop.time()
        silence_s = now - wire.heard_at
        wait_s = self._step_s - silence_s
        if now > self._check_at + _LATE_S:
            wait_s = _LATE_S
        elif wait_s <= 0:
            wait_s = self._step_s
            if not self._is_waiting():
                self._on_idle()
            elif silence_s >= self._timeout_s:
                self._on_lost("does not answer")
                return
            else:
                self._look_elsewhere(wire)
                wait_s = min(wait_s, _AGAIN_S)
        self._check_in(wait_s)

    def _look_elsewhere(self, wire: RespConnection) -> None:
        if self._looking is None and self._primary.has_others:
            self._looking = self._loop.create_task(self._look(wire))

    async def _look(self, wire: RespConnection) -> None:
        """Give up a silent server if another one has taken its place."""
        heard_at = wire.heard_at
        is_replaced = await self._primary.is_replaced(wire.address, self._timeout_s)
        self._looking = None
        if is_replaced and wire is self._wire and wire.heard_at == heard_at:
            self._on_lost("another server has taken its place")
