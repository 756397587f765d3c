"""An orderly stop: all clients are told, and it takes a limited time."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import orjson
import pytest

from tests.abuse.attacker import (
    HANDSHAKE,
    MIB,
    Person,
    SocketPerson,
    Wire,
    request,
)
from tests.slowness import times_slower
from tests.web.programs import Program, program

pytestmark = pytest.mark.untraced

# A shutdown timeout, and the time that a stop may then take.
SHORT_MS, SHORT_S = 1000, 8.0 * times_slower()
# A stop that takes less time has not waited for clients.
AT_ONCE_S = min(8.0 * times_slower(), 50.0)
patient = pytest.mark.parametrize("server", [["--shutdown-timeout", "60000"]], indirect=True)


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Program]:
    arguments = getattr(request, "param", [])
    quick = ["--port", "0", "--shutdown-timeout", str(SHORT_MS)]
    with program(*quick, *arguments, home=tmp_path) as running:
        yield running


def url_of(server: Program) -> str:
    return server.place().rpartition("/")[0]


def settled(person: SocketPerson) -> SocketPerson:
    person.settle_in("/a")
    return person


@patient
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_idle_server_ends_at_once_with_code_0(number: int, server: Program) -> None:
    url = url_of(server)
    with Person(url) as person:
        person.publish("/a", 1)
        code, took_s = server.stop(number)
        assert person.is_closed()
    assert (code, took_s < AT_ONCE_S) == (0, True)


# Those that come back do so within as many seconds as this goes into their number.
SLOW_RATE = ["--handshake-rate", "20"]


@pytest.mark.parametrize("server", [SLOW_RATE, [*SLOW_RATE, "--no-fast-lane"]], indirect=True)
def test_held_connects_are_answered_with_advice_to_come_back_at_once(server: Program) -> None:
    url = url_of(server)
    with ExitStack() as stack:
        persons = [stack.enter_context(Person(url)) for _ in range(5)]
        sockets = [settled(stack.enter_context(SocketPerson(url))) for _ in range(5)]
        for person in persons:
            person.hold()
        # The last connect must have come in before the signal.
        persons[0].send(b"")
        with Person(url) as last:
            last.publish("/a", "sync")
        code, took_s = server.stop()
        assert (code, took_s < SHORT_S) == (0, True)
        replies = [person.answer().messages()[-1] for person in persons]
        for socket in sockets:
            heard = socket.hear()
            if heard[-1].get("data") == "sync":
                heard = socket.hear()
            replies.append(heard[-1])
            assert socket.close_code() == 1001
    for reply in replies:
        assert reply["channel"] == "/meta/connect"
        assert reply["successful"] is True
        assert reply["advice"]["reconnect"] == "retry"
        assert reply["advice"]["timeout"] == 30_000
        # The next server knows all sessions: nobody has to handshake.
        assert reply["advice"]["interval"] == 0


@pytest.mark.parametrize("server", [[], ["--no-fast-lane"]], indirect=True)
def test_clients_that_do_not_read_do_not_prevent_the_stop(server: Program) -> None:
    url = url_of(server)
    with ExitStack() as stack:
        # Never answers the close frame.
        settled(stack.enter_context(SocketPerson(url)))
        # Does not even read it.
        deaf = settled(stack.enter_context(SocketPerson(url, receive_buffer=4096)))
        sleeper = stack.enter_context(Person(url, receive_buffer=4096))
        sleeper.subscribe("/a")
        with Person(url) as publisher:
            for _ in range(8):
                publisher.publish("/a", "x" * MIB)
        sleeper.say(sleeper.connect_message())
        # Sends half a request.
        stack.enter_context(Wire(url)).send(b"POST /cometd HTTP/1.1\r\nHost")
        stack.enter_context(Wire(url)).send(request(b"[", {"Content-Length": "99"}))
        code, took_s = server.stop()
        assert (code, took_s < SHORT_S) == (0, True)
        assert deaf.read(1)


@pytest.mark.parametrize("server", [["--shutdown-timeout", "6000"]], indirect=True)
def test_a_socket_that_does_not_read_is_waited_for_once(server: Program) -> None:
    """Half of the time is for writing messages, half for the close frames of clients."""
    url = url_of(server)
    with SocketPerson(url, receive_buffer=4096) as deaf, Person(url) as publisher:
        deaf.settle_in("/a")
        for _ in range(8):
            publisher.publish("/a", "x" * MIB)
        code, took_s = server.stop()
        assert (code, took_s < 6.0 * times_slower()) == (0, True)


@pytest.mark.parametrize("server", [["--shutdown-timeout", "0"]], indirect=True)
def test_a_stop_with_a_time_limit_of_zero_ends_at_once(server: Program) -> None:
    url = url_of(server)
    with SocketPerson(url) as socket, Wire(url) as wire:
        settled(socket)
        wire.send(request(b"[", {"Content-Length": "99"}))
        code, took_s = server.stop()
        assert (code, took_s < AT_ONCE_S) == (0, True)


@patient
def test_messages_from_before_the_stop_are_delivered(server: Program) -> None:
    url = url_of(server)
    with Person(url) as receiver, Person(url) as publisher:
        receiver.subscribe("/a")
        receiver.connect()
        for number in range(6):
            publisher.publish("/a", [number, "x" * MIB])
        receiver.say(receiver.connect_message())
        assert receiver.read(1) == b"H"
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        body = receiver.read_to_the_end().partition(b"\r\n\r\n")[2]
        assert [each["data"][0] for each in orjson.loads(body)[:-1]] == list(range(6))
        assert server.ends() == 0


@patient
def test_a_socket_that_reads_late_gets_all_messages_from_before_the_stop(server: Program) -> None:
    url = url_of(server)
    with SocketPerson(url, receive_buffer=4096) as receiver, Person(url) as publisher:
        receiver.settle_in("/a")
        for number in range(6):
            publisher.publish("/a", [number, "x" * MIB])
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        heard = [receiver.hear()[0] for _ in range(7)]
        assert [each["data"][0] for each in heard[:-1]] == list(range(6))
        assert receiver.close_code() == 1001
        assert server.ends() == 0


@pytest.mark.parametrize(
    "server",
    [["--shutdown-timeout", "60000"], ["--shutdown-timeout", "60000", "--no-fast-lane"]],
    indirect=True,
)
def test_clients_that_connect_during_the_stop_are_told_to_return(server: Program) -> None:
    url = url_of(server)
    with ExitStack() as stack:
        person, newcomer = [stack.enter_context(Person(url)) for _ in range(2)]
        prober, deaf = Wire(url), Person(url, receive_buffer=4096)
        person.connect()
        overwhelm(deaf, url)
        server.process.send_signal(signal.SIGTERM)
        while (probed := probe(prober)) == (200, b"ready\n"):
            pass
        assert probed == (503, b"stopping\n")
        answer = person.connect()
        assert answer.messages()[-1]["successful"]
        assert answer.messages()[-1]["advice"]["reconnect"] == "retry"
        # Its next request goes to another server, or fails and is repeated after a while.
        assert answer.headers["connection"] == "close"
        refused = newcomer.ask(HANDSHAKE).messages()[0]
        assert refused["error"] == "503::server_busy"
        assert refused["advice"]["reconnect"] == "handshake"
        prober.close()
        deaf.close()
        assert server.ends() == 0


@pytest.mark.parametrize("server", [["--shutdown-timeout", "60000"]], indirect=True)
def test_sockets_do_not_wait_for_others_that_read_nothing(server: Program) -> None:
    url = url_of(server)
    with SocketPerson(url) as socket, Person(url, receive_buffer=4096) as deaf:
        socket.settle_in("/b")
        overwhelm(deaf, url)
        server.process.send_signal(signal.SIGTERM)
        assert socket.hear()[-1]["advice"]["reconnect"] == "retry"
        assert socket.close_code() == 1001
        assert server.process.poll() is None
        deaf.close()
        assert server.ends() == 0


def overwhelm(deaf: Person, url: str) -> None:
    """Send so much to a client that does not read that the stop has to wait for it."""
    deaf.subscribe("/a")
    with Person(url) as publisher:
        for _ in range(8):
            publisher.publish("/a", "x" * MIB)
    deaf.say(deaf.connect_message())


def probe(wire: Wire) -> tuple[int, bytes]:
    wire.send(request(b"", method="GET /readyz"))
    answer = wire.answer()
    return answer.status, answer.body


@pytest.mark.parametrize("server", [["--shutdown-timeout", "60000"]], indirect=True)
def test_new_connections_are_refused_during_the_stop(server: Program) -> None:
    url = url_of(server)
    with Wire(url) as prober, Person(url, receive_buffer=4096) as deaf:
        overwhelm(deaf, url)
        server.process.send_signal(signal.SIGTERM)
        while probe(prober) == (200, b"ready\n"):
            pass
        with pytest.raises(ConnectionRefusedError):
            Wire(url)
        deaf.close()
        assert server.ends() == 0
