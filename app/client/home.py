"""Where a client may be used: in the event loop, and the process, that entered it."""

import asyncio
import os

from holdfast.client.life import WrongUse

FORKED = "this client was entered before a fork: create one in each process"
_ELSEWHERE = (
    "this client belongs to the event loop that entered it: create one in each loop, or use one "
    "SyncClient from threads"
)


def check_loop(home: asyncio.AbstractEventLoop) -> None:
    """Raise `WrongUse` outside of this event loop, where waiting would never end."""
    try:
        is_home = asyncio.get_running_loop() is home
    except RuntimeError:
        is_home = False
    if not is_home:
        raise WrongUse(_ELSEWHERE)


class Home:
    """The event loop and the process that are running when it is created."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()

    def check(self) -> None:
        """Raise `WrongUse` anywhere else."""
        if os.getpid() != self._process:
            raise WrongUse(FORKED)
        check_loop(self._loop)
