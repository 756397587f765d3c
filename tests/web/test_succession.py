"""A server leaves its place to a successor, or takes it back from one that does not start."""

import json
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench.processes import reserved_port
from holdfast.supervisor.control import Say
from tests.abuse.attacker import Person, SocketPerson
from tests.store.servers import ValkeyServer
from tests.web.played_supervisor import PlayedSupervisor

pytestmark = pytest.mark.untraced

DATA = {"channel": "/news"}
# A restart may take longer than clients are given by default, where others compute.
PATIENT = {"max_interval": 60_000}


class PlainClient:
    """A client without a name. It acknowledges what it got, and opens a connection per request."""

    def __init__(self, url: str, name: str = "") -> None:
        self.go_to(url)
        self._cookie = ""
        self._ack = -1
        hello = {
            "channel": "/meta/handshake",
            "version": "1.0",
            "supportedConnectionTypes": ["long-polling"],
            "ext": {"ack": True, **({"delivery": {"session": name}} if name else {})},
        }
        [reply] = self.send(hello)
        self.id = reply["clientId"]
        self.connect()
        assert self.send({"channel": "/meta/subscribe", "subscription": "/news"})[0]["successful"]

    def go_to(self, url: str) -> None:
        """Send what follows to this server."""
        self._url = f"{url}/cometd"

    def move_to(self, url: str) -> None:
        self._url = f"{url}/cometd"

    def send(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        if message["channel"] != "/meta/handshake":
            message = {**message, "clientId": self.id}
        body = json.dumps([message]).encode()
        headers = {"Content-Type": "application/json", "Cookie": self._cookie}
        request = urllib.request.Request(self._url, body, headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            self._cookie = response.headers.get("Set-Cookie", self._cookie).partition(";")[0]
            replies: list[dict[str, Any]] = json.load(response)
        return replies

    def publish(self, data: int) -> None:
        assert self.send({**DATA, "data": data})[-1]["successful"]

    def connect(self) -> list[int]:
        """Return the data of the messages that arrive now."""
        *events, reply = self.send(
            {
                "channel": "/meta/connect",
                "connectionType": "long-polling",
                "ext": {"ack": self._ack},
                "advice": {"timeout": 0},
            }
        )
        assert reply["successful"], reply
        self._ack = reply["ext"]["ack"]
        return [event["data"] for event in events]


@pytest.fixture(params=["embedded", "external"])
def played(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PlayedSupervisor]:
    if request.param == "embedded":
        with PlayedSupervisor(tmp_path, {**PATIENT}) as supervisor:
            yield supervisor
    else:
        with (
            ValkeyServer() as valkey,
            PlayedSupervisor(tmp_path, {**PATIENT, "redis": valkey.url}) as supervisor,
        ):
            yield supervisor


def test_a_session_without_a_name_goes_on_at_the_successor(played: PlayedSupervisor) -> None:
    client = PlainClient(played.url)
    client.publish(1)
    played.restart()
    client.publish(2)
    assert client.connect() == [1, 2]
    client.publish(3)
    played.restart(max_queue=500)
    assert client.connect() == [3]


def test_a_successor_that_cannot_start_leaves_the_server_as_it_is(
    played: PlayedSupervisor,
) -> None:
    client = PlainClient(played.url)
    client.publish(1)
    _, said = played.prepare(extension=["json:nothing"])
    assert said["say"] == Say.FAILED
    assert said["why"].startswith("extension json:nothing: AttributeError")
    assert client.connect() == [1]


def test_a_successor_needs_the_data_directory_of_the_server(
    played: PlayedSupervisor, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir(mode=0o700)
    _, said = played.prepare(data=str(tmp_path / "other"))
    assert said["say"] == Say.FAILED
    assert "the running server has another data directory" in said["why"]


def test_a_server_takes_its_place_back_from_a_successor_that_ends_before_it_opens(
    played: PlayedSupervisor,
) -> None:
    client = PlainClient(played.url)
    client.publish(1)
    successor, _ = played.prepare()
    assert played.leave()["say"] == Say.LEFT
    successor.kill()
    assert played.take_back()["say"] == Say.BACK
    client.publish(2)
    assert client.connect() == [1, 2]
    played.restart()
    client.publish(3)
    assert client.connect() == [3]


def test_a_server_takes_its_place_back_from_a_successor_that_ends_after_it_opened(
    played: PlayedSupervisor,
) -> None:
    client = PlainClient(played.url)
    client.publish(1)
    successor, _ = played.prepare()
    played.leave()
    assert played.open(successor)["say"] == Say.READY
    successor.kill()
    assert played.take_back()["say"] == Say.BACK
    client.publish(2)
    assert client.connect() == [1, 2]
    played.restart()
    assert client.connect() == []


def test_a_session_without_a_name_goes_on_after_a_stop_and_a_start(
    played: PlayedSupervisor,
) -> None:
    client = PlainClient(played.url)
    client.publish(1)
    assert played.stop_and_start() == 0
    client.publish(2)
    assert client.connect() == [1, 2]


def test_a_session_without_a_name_ends_with_a_server_that_is_killed(
    played: PlayedSupervisor,
) -> None:
    client = PlainClient(played.url)
    played.server.kill()
    played.start()
    [reply] = client.send({**DATA, "data": 1})
    assert reply["error"].startswith("402:")


def test_connections_go_on_at_the_successor(played: PlayedSupervisor) -> None:
    with Person(played.url) as person, SocketPerson(played.url) as socket:
        person.subscribe("/news")
        socket.settle_in("/news")
        person.hold()
        for _ in range(2):
            played.restart()
            # The held connects are answered as if their time was over.
            assert [each["channel"] for each in person.answer().messages()] == ["/meta/connect"]
            assert [each["channel"] for each in socket.hear()] == ["/meta/connect"]
            socket.say(socket.connect_message())
            socket.say(socket.message("/news", data="again"))
            heard = [*socket.hear(), *socket.hear()]
            assert [each["channel"] for each in heard].count("/news") == 2
            assert person.connect().messages()[0]["data"] == "again"
            person.say(person.connect_message())


def test_a_successor_at_another_port_leaves_nothing_open_at_the_former(
    played: PlayedSupervisor,
) -> None:
    client = PlainClient(played.url)
    former = urlsplit(played.url)
    with reserved_port() as port:
        successor, _ = played.prepare(port=port)
    played.leave()
    assert played.open(successor)["url"] == f"http://127.0.0.1:{port}"
    assert played.go(successor) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((former.hostname, former.port), timeout=5.0).close()
    client.move_to(f"http://127.0.0.1:{port}")
    client.publish(1)
    assert client.connect() == [1]


def test_a_successor_whose_supervisor_ends_says_so_and_ends(played: PlayedSupervisor) -> None:
    successor, _ = played.prepare()
    successor.channel.close()
    assert successor.process.wait(60.0) == 2
    PlainClient(played.url).publish(1)
