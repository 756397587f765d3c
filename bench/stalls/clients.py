"""Clients that wait for each reply: those of an attack, and the bystander."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench.stalls.memory import Memory

Message = dict[str, Any]

# Longer waits count as this long.
_TIMEOUT_S = 20.0
_GZIP = b"\x1f\x8b"
# How long the bystander pauses between two publishes.
_REST_S = 0.001
# How often a client tries a refused handshake, and how long it waits between attempts.
_HANDSHAKES, _LATER_S = 20, 0.5


class Client:
    """One session over one long-polling connection."""

    def __init__(self, url: str, ext: Message | None = None) -> None:
        split = urlsplit(url)
        self._path = split.path
        self._http = http.client.HTTPConnection(split.netloc, timeout=_TIMEOUT_S)
        self.cookie = ""
        self.id = ""
        # What the server agreed to.
        self.ext: Message = {}
        hello: Message = {"channel": "/meta/handshake", "version": "1.0", "ext": ext or {}}
        hello["supportedConnectionTypes"] = ["long-polling"]
        self.id = self._shake_hands(hello)

    def _shake_hands(self, hello: Message) -> str:
        """Return the client id; a server on a busy machine may refuse the first handshakes."""
        for _ in range(_HANDSHAKES):
            [reply, *_] = self.say(hello)
            if "clientId" in reply:
                self.ext = reply.get("ext", {})
                return str(reply["clientId"])
            time.sleep(_LATER_S)
        raise RuntimeError("the server refuses handshakes")

    def begin(self, body: bytes) -> None:
        """Send a request without reading its response."""
        headers = {"Content-Type": "application/json"}
        if self.cookie:
            headers["Cookie"] = self.cookie
        if body.startswith(_GZIP):
            headers["Content-Encoding"] = "gzip"
        self._http.request("POST", self._path, body, headers)

    def post(self, body: bytes) -> bytes:
        """Send these bytes; return the response, whatever it says."""
        self.begin(body)
        response = self._http.getresponse()
        cookie = response.headers.get("Set-Cookie")
        if cookie is not None:
            self.cookie = cookie.partition(";")[0]
        return response.read()

    def body(self, messages: Sequence[Message]) -> bytes:
        """Return the bytes of a request of this session."""
        own = {"clientId": self.id} if self.id else {}
        return json.dumps([{**each, **own} for each in messages]).encode()

    def say(self, *messages: Message) -> list[Message]:
        """Send some messages of this session; return the replies."""
        replies: list[Message] = json.loads(self.post(self.body(messages)))
        return replies

    def connect(self, **ext: object) -> list[Message]:
        """Send a connect that does not wait; return its messages."""
        return self.say(connect(ext, advice={"timeout": 0}))

    def close(self) -> None:
        self._http.close()


class Reader:
    """A program that reads without a session."""

    def __init__(self, url: str, path: str) -> None:
        self._path = path
        self._http = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT_S)

    def ask(self) -> None:
        """Send the request without reading its response."""
        self._http.request("GET", self._path)

    def begin(self) -> None:
        """Wait until the response has begun, which goes on."""
        status = self._http.getresponse().status
        if status != http.HTTPStatus.OK:
            raise RuntimeError(f"the server refuses a reader: {status}")

    def close(self) -> None:
        self._http.close()


def connect(ext: Message | None = None, **fields: object) -> Message:
    """Return a connect; it waits unless its advice says otherwise."""
    connect = {"channel": "/meta/connect", "connectionType": "long-polling"}
    return {**connect, "ext": ext or {}, **fields}


def publish(channel: str, data: object = 1, **fields: object) -> Message:
    """Return a publish."""
    return {"channel": channel, "data": data, **fields}


def subscribe(*patterns: str) -> Message:
    """Return one message that subscribes to all these patterns."""
    return {"channel": "/meta/subscribe", "subscription": list(patterns)}


class Wait(NamedTuple):
    """One request of the bystander: when it was sent, and how long the reply took, in seconds."""

    asked: float
    took: float
    # Processor time that the server's event loop used meanwhile.
    worked: float


class Bystander(threading.Thread):
    """Publishes small messages and asks `/healthz` in turn, and measures how long each reply takes.

    Time in which the bystander or the server waited for a processor does not count: it depends on
    the other load of the machine.
    """

    def __init__(self, url: str, server: int) -> None:
        super().__init__(daemon=True)
        self._client = Client(url)
        self._pid = server
        self._server = Path("/proc", str(server), "schedstat")
        self._body = self._client.body([publish("/bystander")])
        self._probe = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT_S)
        self._is_over = threading.Event()
        self._waits: list[Wait] = []

    def run(self) -> None:
        own = Path("/proc/self/task", str(threading.get_native_id()), "schedstat")
        for ask in cycle((self._publish, self._look)):
            if self._is_over.is_set():
                return
            before, queued_before = _schedule(self._server), _schedule(own).queued
            asked = time.perf_counter()
            is_answered = _is_answered(ask)
            took = time.perf_counter() - asked
            after, queued_after = _schedule(self._server), _schedule(own).queued
            queued = after.queued - before.queued + queued_after - queued_before
            self._waits.append(Wait(asked, max(0.0, took - queued), after.ran - before.ran))
            if not is_answered:
                return
            time.sleep(_REST_S)

    def _publish(self) -> None:
        self._client.post(self._body)

    def _look(self) -> None:
        self._probe.request("GET", "/healthz")
        self._probe.getresponse().read()

    def memory(self) -> Memory:
        """Return the memory of the server, measured from now on."""
        return Memory(self._pid)

    def stop(self) -> None:
        self._is_over.set()
        self.join()
        self._client.close()
        self._probe.close()

    def answers_since(self, begun: float) -> int:
        """Return how many requests since then have been answered."""
        return sum(wait.asked >= begun for wait in self._waits)

    def waits(self, begun: float, ended: float) -> list[Wait]:
        """Return the requests that waited for their replies in this time."""
        while self.is_alive() and not (self._waits and self._waits[-1].asked > ended):
            time.sleep(_REST_S)
        return [wait for wait in self._waits if begun - wait.took <= wait.asked <= ended]


def _is_answered(ask: Callable[[], None]) -> bool:
    try:
        ask()
    except TimeoutError:
        return False
    return True


class _Schedule(NamedTuple):
    """What the kernel counts for a thread: seconds on a processor, and waiting for one."""

    ran: float
    queued: float


def _schedule(thread: Path) -> _Schedule:
    ran, queued, _ = thread.read_text().split()
    return _Schedule(int(ran) / 1e9, int(queued) / 1e9)
