"""The names of processes, as `top`, `ps -o comm` and the log of the kernel show them.

The kernel has them, so that no library is needed to write them. All processes of a server have the
same command line, `holdfast serve`.
"""

from contextlib import suppress

SUPERVISOR = "holdfast"
IMPORTER = "holdfast-import"
# While servers end again and again.
STAND_IN = "holdfast-standin"
SERVER = "holdfast-server"
# The first process on a host of several.
CLAIMER = "holdfast-claim"
# The one that serves clients on a host without a shard.
DOOR = "holdfast-door"
# The system cuts off the rest.
_LONGEST = 15


def server_of(shard: int) -> str:
    """Return the name of one of several servers."""
    return f"holdfast/{shard}"


def name_process(name: str) -> None:
    """Give this process a name. Only Linux has one."""
    with suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name[:_LONGEST])
