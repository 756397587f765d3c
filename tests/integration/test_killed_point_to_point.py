"""Messages for a subject or a session arrive although the server is killed meanwhile."""

import http.cookiejar
import json
import time
import urllib.request
from pathlib import Path
from typing import Any, Protocol

from tests.integration.successors import following
from tests.serving import Server
from tests.slowness import times_slower

Json = dict[str, Any]
TIMEOUT_S = 60.0


class HasUrl(Protocol):
    """A server, as clients need it."""

    url: str


class Client:
    """A client that uses long-polling."""

    def __init__(self, server: HasUrl, **ext: Any) -> None:
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(jar)
        self._url = f"{server.url}/cometd"
        self._client_id: str | None = None
        shake = {"version": "1.0", "supportedConnectionTypes": ["long-polling"], "ext": ext}
        [reply] = self.send("/meta/handshake", **shake)
        self._client_id = reply["clientId"]
        # The terms, if there are any.
        self.agreed: Json = reply.get("ext", {}).get("delivery", {})

    def send(self, channel: str, **fields: Any) -> list[Json]:
        body = json.dumps([{"channel": channel, "clientId": self._client_id, **fields}])
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url, body.encode(), headers)
        with self._opener.open(request, timeout=TIMEOUT_S) as response:
            answer: list[Json] = json.load(response)
        return answer

    def fetch(self, ack: int) -> list[Any]:
        """The data of the events that a connect gets without waiting."""
        return [each["data"] for each in self.connect(ack) if "data" in each]

    def connect(self, ack: int) -> list[Json]:
        """What a connect gets without waiting."""
        asked: Json = {"connectionType": "long-polling", "advice": {"timeout": 0}}
        return self.send("/meta/connect", ext={"ack": ack}, **asked)

    def fetch_soon(self) -> list[Any]:
        """The data of the events of the first connect that gets any."""
        ends_at, found = time.monotonic() + TIMEOUT_S, self.fetch(0)
        while not found and time.monotonic() < ends_at:
            time.sleep(0.05)
            found = self.fetch(0)
        return found


def write(server: Server, *contents: object, name: str = "joe") -> None:
    bob = Client(server)
    for content in contents:
        destinations = [{"name": name, "forceQueuing": True}]
        data = {"destinations": destinations, "content": content}
        (reply,) = bob.send("/service/ptp", data=data)
        assert reply["successful"], reply


def test_addressed_messages_arrive_although_the_server_is_killed_twice(tmp_path: Path) -> None:
    # Joe's messages return to his subject when his first session has expired.
    max_interval = 2000 * round(times_slower(most=4.0))
    with following(tmp_path, max_interval=max_interval) as servers:
        write(servers.last, *range(8))
        # Killed while the messages wait for the subject.
        servers.kill()
        joe = Client(servers.last, ack=True, delivery={"session": "joe"})
        assert joe.fetch(0) == [*range(8)]
        # Killed while a session whose number the server chose has them unacked.
        servers.kill()
        joe = Client(servers.last, ack=True, delivery={"session": "joe/1"})
        assert joe.fetch_soon() == [*range(8)]


def test_messages_for_an_unclaimed_session_survive_a_killed_server(tmp_path: Path) -> None:
    with following(tmp_path, ptp_create_session=True) as servers:
        write(servers.last, *range(4), name="joe/3")
        servers.kill()
        write(servers.last, *range(4, 8), name="joe/3")
        joe = Client(servers.last, ack=True, delivery={"session": "joe/3"})
        assert joe.fetch_soon() == [*range(8)]
