"""Clients that wait for each answer: who attacks and prepares it, and who stands by."""

import http.client
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Message = dict[str, Any]

# Who waits longer counts as having waited so long.
_TIMEOUT_S = 20.0
_GZIP = b"\x1f\x8b"
# How long the bystander rests between two questions.
_REST_S = 0.001
# How often a refused handshake is tried, and how long to wait between.
_HANDSHAKES, _LATER_S = 20, 0.5


class Client:
    """One session over one connection of long-polling."""

    def __init__(self, url: str, ext: Message | None = None) -> None:
        split = urlsplit(url)
        self._path = split.path
        self._http = http.client.HTTPConnection(split.netloc, timeout=_TIMEOUT_S)
        self._cookie = ""
        self.id = ""
        hello: Message = {"channel": "/meta/handshake", "version": "1.0", "ext": ext or {}}
        hello["supportedConnectionTypes"] = ["long-polling"]
        self.id = self._shake_hands(hello)

    def _shake_hands(self, hello: Message) -> str:
        """The client id; a server that is late, as on a busy machine, says: come back later."""
        for _ in range(_HANDSHAKES):
            [reply, *_] = self.say(hello)
            if "clientId" in reply:
                return str(reply["clientId"])
            time.sleep(_LATER_S)
        raise RuntimeError("the server takes no handshake")

    def begin(self, body: bytes) -> None:
        """Send a request; its answer is not read yet."""
        headers = {"Content-Type": "application/json"}
        if self._cookie:
            headers["Cookie"] = self._cookie
        if body.startswith(_GZIP):
            headers["Content-Encoding"] = "gzip"
        self._http.request("POST", self._path, body, headers)

    def post(self, body: bytes) -> bytes:
        """The answer to these bytes, whatever it says."""
        self.begin(body)
        response = self._http.getresponse()
        cookie = response.headers.get("Set-Cookie")
        if cookie is not None:
            self._cookie = cookie.partition(";")[0]
        return response.read()

    def body(self, messages: Sequence[Message]) -> bytes:
        """The bytes of a request of this session."""
        own = {"clientId": self.id} if self.id else {}
        return json.dumps([{**each, **own} for each in messages]).encode()

    def say(self, *messages: Message) -> list[Message]:
        """The answers to some messages of this session."""
        replies: list[Message] = json.loads(self.post(self.body(messages)))
        return replies

    def connect(self, **ext: object) -> list[Message]:
        """What a connect brings that does not wait."""
        return self.say(connect(ext, advice={"timeout": 0}))

    def close(self) -> None:
        self._http.close()


def connect(ext: Message | None = None, **fields: object) -> Message:
    """A connect; it waits unless its advice says otherwise."""
    connect = {"channel": "/meta/connect", "connectionType": "long-polling"}
    return {**connect, "ext": ext or {}, **fields}


def publish(channel: str, data: object = 1, **fields: object) -> Message:
    """A publish."""
    return {"channel": channel, "data": data, **fields}


def subscribe(*patterns: str) -> Message:
    """One message that subscribes to all of these."""
    return {"channel": "/meta/subscribe", "subscription": list(patterns)}


class Bystander(threading.Thread):
    """Publishes something small again and again, and notes how long each answer takes.

    What it or the server waited for a processor is left out: that is the machine's other work.
    """

    def __init__(self, url: str, server: int) -> None:
        super().__init__(daemon=True)
        self._client = Client(url)
        self._server = Path("/proc", str(server), "schedstat")
        self._body = self._client.body([publish("/bystander")])
        self._is_over = threading.Event()
        # When each question was asked, and how long it waited for its answer, in seconds.
        self._waits: list[tuple[float, float]] = []

    def run(self) -> None:
        own = Path("/proc/self/task", str(threading.get_native_id()), "schedstat")
        while not self._is_over.is_set():
            before, asked = _queued_s(own, self._server), time.perf_counter()
            is_answered = self._ask()
            wait = time.perf_counter() - asked
            wait = max(0.0, wait - (_queued_s(own, self._server) - before))
            self._waits.append((asked, wait))
            if not is_answered:
                return
            time.sleep(_REST_S)

    def _ask(self) -> bool:
        try:
            self._client.post(self._body)
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        self._is_over.set()
        self.join()
        self._client.close()

    def waits(self, begun: float, ended: float) -> list[float]:
        """Those of questions that were open in this time."""
        while self.is_alive() and not (self._waits and self._waits[-1][0] > ended):
            time.sleep(_REST_S)
        return [wait for asked, wait in self._waits if begun - wait <= asked <= ended]


def _queued_s(*tasks: Path) -> float:
    """How long these have been ready to run while others did."""
    return sum(int(task.read_text().split()[1]) for task in tasks) / 1e9
