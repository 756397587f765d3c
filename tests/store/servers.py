"""Real Valkey servers for tests; the test that starts one ends it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from redis import Redis
from redis.exceptions import BusyLoadingError, RedisError

from holdfast.store.links.primary import Primary
from holdfast.store.links.url import StoreUrl
from holdfast.store.local.embedded import server_binary

_START_LIMIT_S = 60.0
_ENDER = shutil.which("setpriv")


# All keys of tests whose servers may be a cluster have its tag.
TAG = "{test}:"


def primary_at(url: str) -> Primary:
    """The server with this URL, or the one to which it leads."""
    return Primary(StoreUrl.of(url), f"{TAG}meta")


def ending_with_us(command: Sequence[str | Path]) -> Sequence[str | Path]:
    """Have the server end when the tests are killed, where the system can do that.

    A function that is called in the child would do it, too, but for that the tests are copied.
    """
    return [_ENDER, "--pdeathsig", "KILL", "--", *command] if _ENDER else command


class ValkeyServer:
    """A Valkey on a Unix socket in a directory of its own that stays over restarts.

    Replicas need a port of it, too: give it one that is reserved.
    """

    # The number of the user whose process it is; None for ours.
    user: int | None = None

    def __init__(self, **config: str) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="holdfast-test-")
        self.directory = Path(self._home.name)
        self.url = f"unix://{self.directory}/s"
        self._config = {"save": "", "appendonly": "no", "loglevel": "warning", **config}
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Any = Redis.from_url(self.url, protocol=3)
        self._kept_busy: list[Any] = []
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self, **config: str) -> None:
        """Start it, with further settings from now on."""
        self.launch(**config)
        deadline = time.monotonic() + _START_LIMIT_S
        while not self._answers():
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.directory / "log").read_text())
            time.sleep(0.01)

    def launch(self, **config: str) -> None:
        """Start it and do not wait until it answers."""
        self._config |= {name.replace("_", "-"): value for name, value in config.items()}
        given = {"port": "0", "bind": "127.0.0.1", **self._config, "unixsocket": "s", "dir": "."}
        words = [word for name, value in given.items() for word in (f"--{name}", value)]
        self.run([server_binary(), *words])

    def run(self, command: Sequence[str | Path]) -> None:
        if self.user is not None:
            os.chown(self.directory, self.user, -1)
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ending_with_us(command),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=self.user,
            )

    def _answers(self) -> bool:
        try:
            return bool(self._client.ping())
        except (BusyLoadingError, RedisError, OSError):
            return False

    def ask(self, *words: str | bytes | int) -> Any:
        """The answer to a command, on a connection of its own."""
        return self._client.execute_command(*words)

    def start_asking(self, *words: str | int) -> None:
        """Send a command on a connection of its own and wait for nothing."""
        connection = self._client.connection_pool.make_connection()
        connection.connect()
        connection.send_command(*words)
        self._kept_busy.append(connection)

    def set(self, **config: str) -> None:
        """Change settings while it runs."""
        for name, value in config.items():
            self.ask("CONFIG", "SET", name.replace("_", "-"), value)

    def follow(self, primary: "ValkeyServer") -> None:
        """Become its replica, and wait for all of its data."""
        port = primary.ask("CONFIG", "GET", "port")[b"port"]
        self.ask("REPLICAOF", "127.0.0.1", port)
        deadline = time.monotonic() + _START_LIMIT_S
        while not self._follows(port):
            if time.monotonic() > deadline:
                raise RuntimeError((self.directory / "log").read_text())
            time.sleep(0.01)

    def _follows(self, port: str) -> bool:
        """A replica confirms nothing until its first copy is in a file of its own."""
        info = self.ask("INFO", "everything")
        if info["role"] == "master":
            # Sentinels may have undone it, as long as they do not agree.
            self.ask("REPLICAOF", "127.0.0.1", port)
            return False
        is_writing = info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"]
        return bool(info["master_link_status"] == "up" and not is_writing)

    def freeze(self) -> None:
        """It accepts connections and bytes from now on, but does nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it as a crash does."""
        self._client.close()
        for connection in self._kept_busy:
            connection.disconnect()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            (self.directory / "s").unlink(missing_ok=True)

    def restart(self) -> None:
        self.kill()
        self.start()

    def close(self) -> None:
        self.kill()
        self._home.cleanup()

    def refuse_end(self) -> None:
        """Raise its log if it has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError((self.directory / "log").read_text())

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
