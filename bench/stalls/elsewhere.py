"""An attack by another process: what it sends and reads would keep the bystander waiting."""

import subprocess
import sys
from typing import IO, cast


class Elsewhere:
    """A module that runs there, as the attack's client.

    It prints a line when it is ready, and attacks when it gets one. It prints another when all is
    answered, and lives until it gets a further one.
    """

    def __init__(self, module: str, url: str, *words: str | int) -> None:
        command = [sys.executable, "-m", module, url, *map(str, words)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._hear()

    def post(self, body: bytes) -> bytes:
        """Let it attack; wait until all is answered."""
        orders = cast("IO[bytes]", self._process.stdin)
        orders.write(body + b"\n")
        orders.flush()
        return self._hear()

    def _hear(self) -> bytes:
        line = cast("IO[bytes]", self._process.stdout).readline()
        if not line:
            raise RuntimeError("the attack failed")
        return line

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
