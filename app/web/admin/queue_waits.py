"""Commands that wait until there is something in a queue."""

import asyncio
from collections.abc import Callable

from holdfast.bayeux.services.commands import LONGEST_WAIT_MS, Command
from holdfast.bayeux.services.properties import QueueQuery
from holdfast.bayeux.sessions.status import find
from holdfast.bayeux.state.session_registry import Sessions
from holdfast.web.tasks import Tasks

# How often to look at a queue.
_LOOK_S = 0.1


class QueueWaits:
    """Waits until a queue has what a command asks for, or its time is over.

    Args:
        clock: Monotonic seconds, as the server counts them.
    """

    def __init__(self, sessions: Sessions, clock: Callable[[], float]) -> None:
        self._sessions = sessions
        self._clock = clock
        self._tasks = Tasks(clock, limit_s=LONGEST_WAIT_MS / 1000 + 1)

    def wait(self, command: Command, done: Callable[[float], None]) -> None:
        """Wait for callers that cannot await; call `done` with the time."""
        self._tasks(self.entries(command), lambda _, now: done(now))

    async def entries(self, command: Command) -> None:
        """Return when the entries are there, the session is gone, or the time is over."""
        query = command.argument
        if not isinstance(query, QueueQuery) or not query.waiting_delay_ms:
            return
        deadline = self._clock() + query.waiting_delay_ms / 1000
        session = find(self._sessions, command.target.key)
        while session is not None and not session.is_gone and self._clock() < deadline:
            if session.queue.count >= query.max_entries:
                return
            await asyncio.sleep(min(_LOOK_S, query.waiting_delay_ms / 1000))

    async def close(self) -> None:
        """End all waits without an answer."""
        await self._tasks.close()
