"""Publishers by `POST /publish` that keep their pace, whatever happens to the server."""

import time
from threading import Event, Thread
from typing import Self

import orjson

from tests.abuse.attacker import Wire, request


class Publisher:
    """Publishes numbers at a rate, on one connection or each on a connection of its own.

    Args:
        is_durable: Whether what is accepted survives a kill of any worker.
    """

    def __init__(
        self,
        name: str,
        url: str,
        channel: str,
        *,
        rate: float,
        keeps_connection: bool,
        is_durable: bool = False,
    ) -> None:
        self.name = name
        self._url, self._channel = url, channel
        self._ext = {"ext": {"delivery": {"persistent": True}}} if is_durable else {}
        self._pause_s = 1 / rate
        self._keeps = keeps_connection
        self._wire: Wire | None = None
        self._is_over = Event()
        self._thread = Thread(target=self._publish_all, name=name)
        # How many there are, how long the slowest one took, and what went wrong with which.
        self.count = 0
        self.slowest_s = 0.0
        self.failures: list[str] = []
        # The numbers of those that may not have been accepted.
        self.unsure: set[int] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Publish the last one."""
        self._is_over.set()
        self._thread.join()

    def _publish_all(self) -> None:
        due_s = time.monotonic()
        while not self._is_over.is_set():
            self._publish(is_last=False)
            due_s += self._pause_s
            # One that is late catches up.
            self._is_over.wait(max(0.0, due_s - time.monotonic()))
        self._publish(is_last=True)
        self._hang_up()

    def _publish(self, *, is_last: bool) -> None:
        data = {"by": self.name, "number": self.count, **({"last": True} if is_last else {})}
        began_s = time.monotonic()
        try:
            self._post({"channel": self._channel, "data": data, **self._ext})
        except (OSError, AssertionError, ValueError) as error:
            self.failures.append(f"{self.count}: {error!r}")
            self.unsure.add(self.count)
            self._hang_up()
        self.count += 1
        self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)

    def _post(self, message: object) -> None:
        if self._wire is None:
            self._wire = Wire(self._url)
        self._wire.send(request(orjson.dumps(message), method="POST /publish"))
        answer = self._wire.answer()
        assert answer.status == 200, answer
        assert answer.messages()[0]["successful"], answer
        if not self._keeps or answer.headers.get("connection", "").lower() == "close":
            self._hang_up()

    def _hang_up(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None
