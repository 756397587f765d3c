"""What processes do with real files, and with locks of them that others have, too."""

import os
from typing import Any

from tests.simulation.environment import running_process
from tests.simulation.holdings import Handle, LockFile


class _Files:
    """Stands for the module `os` where servers lock files."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    @staticmethod
    def close(file: int) -> None:
        if isinstance(file, Handle):
            file.close()
            return
        process: Any = running_process()
        if process is not None:
            process.world.unlock(process, os.fstat(file).st_ino)
        os.close(file)


Files = _Files()


def lock_of(file: int) -> Handle:
    """Return a descriptor of a real file that this process has locked."""
    process: Any = running_process()
    lock = LockFile(file)
    process.world.locked[os.fstat(file).st_ino] = lock
    return lock.handle()
