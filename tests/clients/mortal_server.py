"""A server that dies and comes back at the same address, remembering nothing but its store."""

import re
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack

import orjson

from bench.processes import reserved_port
from tests.abuse.attacker import Wire, request
from tests.serving import STOP_LIMIT_S, Server, Settings


class MortalServer:
    """`alive` is the process that runs just now."""

    def __init__(self, settings: Settings) -> None:
        """Without a data directory in the settings, each process has a store of its own."""
        self._reserved = ExitStack()
        port = self._reserved.enter_context(reserved_port())
        self._settings = {**settings, "port": port}
        self.alive = Server(self._settings)

    def kill(self) -> None:
        self.alive.process.kill()
        self.alive.process.wait()

    def start_again(self) -> None:
        """Start a server where the last one has ended."""
        self.alive.stop()
        self.alive = Server(self._settings)

    def kill_and_start(self) -> None:
        self.kill()
        self.start_again()

    def stop_and_start(self) -> None:
        self.alive.process.terminate()
        code = self.alive.process.wait(STOP_LIMIT_S)
        assert code == 0, f"ended with {code}:\n{self.alive.log()}"
        self.start_again()

    def publish(self, channel: str, data: object) -> None:
        """Publish on a connection that ends with that."""
        with Wire(self.alive.url) as wire:
            message = orjson.dumps({"channel": channel, "data": data})
            wire.send(request(message, method="POST /publish"))
            assert wire.answer().messages()[0]["successful"]

    def wait_for_readers(self, count: int) -> None:
        """Wait until so many requests read channels."""
        while self._readers() != count:
            time.sleep(0.05)

    def _readers(self) -> int:
        with urllib.request.urlopen(f"{self.alive.url}/metrics", timeout=60) as response:
            found = re.search(r"^holdfast_stream_readers (\d+)", response.read().decode(), re.M)
        assert found is not None
        return int(found[1])

    def stop(self) -> None:
        self.alive.stop()
        self._reserved.close()

    def services(self) -> dict[str, Callable[[], None]]:
        """What scenarios may ask for."""
        return {
            "kill and start the server": self.kill_and_start,
            "stop and start the server": self.stop_and_start,
        }
