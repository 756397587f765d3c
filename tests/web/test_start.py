"""The start of a server: its ready line, or the reason why it cannot start."""

import http.client
import os
import re
import socket
import ssl
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from bench.processes import reserved_port
from holdfast.compose import CannotStart, serving
from holdfast.settings import Settings
from holdfast.store.links.connection import StoreUnavailable
from tests.abuse.attacker import HANDSHAKE, Person
from tests.web.programs import admin_url, program

HELLO = orjson.dumps([HANDSHAKE])


def self_signed(home: Path) -> tuple[str, str]:
    cert, key = home / "cert.pem", home / "key.pem"
    subprocess.run(
        [
            *["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
            *["-nodes", "-days", "2", "-subj", "/CN=localhost"],
            *["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
            *["-keyout", str(key), "-out", str(cert)],
        ],
        check=True,
        capture_output=True,
    )
    return str(cert), str(key)


def test_the_ready_line_names_the_url_at_which_the_server_answers(tmp_path: Path) -> None:
    with reserved_port() as port, program("--port", str(port), home=tmp_path) as running:
        line = running.ready_line()
        assert line.startswith(f"holdfast is ready: http://127.0.0.1:{port}/cometd")
        with Person(f"http://127.0.0.1:{port}") as person:
            assert person.publish("/a", 1).status == 200
        running.stop()
        assert running.process.stdout is not None
        (about,) = running.process.stdout.read().decode().splitlines()
    path = tmp_path / "data/admin-token"
    assert about == f"the operators' token is new; show it with: cat {path}"
    with program("--port", "0", home=tmp_path) as again:
        assert again.place()
        again.stop()
        assert again.process.stdout is not None
        assert again.process.stdout.read() == b""


def test_the_token_is_shown_once_and_only_on_a_terminal(tmp_path: Path) -> None:
    terminal, end = os.openpty()
    with program("--port", "0", home=tmp_path, stdout=end) as running:
        os.close(end)
        shown = os.read(terminal, 4096)
        while shown.count(b"\n") < 2:
            shown += os.read(terminal, 4096)
        running.stop()
        errors = running.errors()
    os.close(terminal)
    token = (tmp_path / "data/admin-token").read_bytes().strip()
    assert b"shown only once" in shown
    assert token in shown
    assert token.decode() not in errors


def test_the_ready_line_has_an_address_that_a_browser_can_open(tmp_path: Path) -> None:
    with program("--port", "0", "--host", "0.0.0.0", "--open", home=tmp_path) as running:
        line = running.ready_line()
        assert re.search(r"ready: http://0\.0\.0\.0:(\d+)/.* open http://127\.0\.0\.1:\1/$", line)
        assert (
            "the administration is not served, because others can reach this server"
            in running.errors()
        )


@pytest.mark.parametrize("origins", [["*"], ["https://example.org", "*"], ["https://example.org"]])
def test_allowing_every_origin_is_warned_of(origins: list[str], tmp_path: Path) -> None:
    flags = [flag for origin in origins for flag in ("--allow-origin", origin)]
    with program("--port", "0", *flags, home=tmp_path) as running:
        assert running.place()
        assert ("use long-polling with credentials" in running.errors()) is ("*" in origins)


def test_the_server_answers_at_the_configured_paths(tmp_path: Path) -> None:
    arguments = ["--port", "0", "--paths", "/push/here", "--paths", "/there"]
    with program(*arguments, home=tmp_path) as running:
        url = urlsplit(running.place())
        assert url.path == "/push/here"
        for path, status in {
            "/push/here": 200,
            "/push/here/handshake": 200,
            "/cometd": 404,
        }.items():
            connection = http.client.HTTPConnection(str(url.hostname), url.port)
            with closing(connection):
                connection.request("POST", path, HELLO)
                assert connection.getresponse().status == status


def test_the_server_can_be_configured_by_variables(tmp_path: Path) -> None:
    variables = {"HOLDFAST_PORT": "0", "HOLDFAST_HOST": "127.0.0.2"}
    with program(home=tmp_path, variables=variables) as running:
        assert running.place().startswith("http://127.0.0.2:")


def test_the_server_speaks_tls(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    arguments = ["--port", "0", "--tls-cert", cert, "--tls-key", key]
    with program(*arguments, home=tmp_path) as running:
        url = urlsplit(running.place())
        assert url.scheme == "https"
        trusting = ssl.create_default_context(cafile=cert)
        connection = http.client.HTTPSConnection("localhost", url.port, context=trusting)
        with closing(connection):
            for _ in range(2):
                connection.request("POST", "/cometd", HELLO)
                response = connection.getresponse()
                assert orjson.loads(response.read())[0]["successful"]
            client = connection.sock.cipher()
            assert client is not None
            assert client[1] in ("TLSv1.2", "TLSv1.3")
        # A client that does not speak TLS gets no answer, and others are not affected.
        with socket.create_connection(("127.0.0.1", url.port or 0)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert plain.recv(100)[:4] != b"HTTP"
        assert running.stop()[0] == 0


BADGES = """
def install(bayeux):
    bayeux.services.add("/service/badge", show)

def show(call):
    call.answer(dict(call.session.caller.tls_subject))
"""


def test_extensions_see_whose_certificate_a_client_has_shown(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    (tmp_path / "badges.py").write_text(BADGES)
    arguments = ["--port", "0", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", cert]
    with program(*arguments, "--extension", "badges:install", home=tmp_path) as running:
        port = urlsplit(running.place()).port

        def badge(secure: ssl.SSLContext) -> object:
            with closing(http.client.HTTPSConnection("localhost", port, context=secure)) as wire:
                wire.request("POST", "/cometd", HELLO)
                response = wire.getresponse()
                cookie = response.headers["Set-Cookie"].partition(";")[0]
                client_id = orjson.loads(response.read())[0]["clientId"]
                question = {"channel": "/service/badge", "clientId": client_id, "data": {}}
                wire.request("POST", "/cometd", orjson.dumps([question]), {"Cookie": cookie})
                return orjson.loads(wire.getresponse().read())[0]["data"]

        trusting = ssl.create_default_context(cafile=cert)
        assert badge(trusting) == {}
        trusting.load_cert_chain(cert, key)
        assert badge(trusting) == {"commonName": "localhost"}
        # A certificate of an unknown authority does not even get a connection.
        (tmp_path / "another").mkdir()
        stranger = ssl.create_default_context(cafile=cert)
        stranger.load_cert_chain(*self_signed(tmp_path / "another"))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            badge(stranger)


def ask_admin(home: Path, url: str, **connecting: Any) -> int:
    """The administration's answer to an operator."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    headers = {"Authorization": f"Bearer {(home / 'data/admin-token').read_text().strip()}"}
    with closing(kind("localhost", parts.port or 0, **connecting)) as connection:
        connection.request("GET", "/admin/api/v1/sessions", headers=headers)
        return connection.getresponse().status


def test_beyond_loopback_the_administration_speaks_tls_if_the_server_does(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    arguments = ["--port", "0", "--admin", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key]
    with program(*arguments, home=tmp_path) as running:
        assert running.place().startswith("https:")
        url = admin_url(running)
        assert url.startswith("https://0.0.0.0:")
        trusting = ssl.create_default_context(cafile=cert)
        assert ask_admin(tmp_path, url, context=trusting) == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            ask_admin(tmp_path, url, context=ssl.create_default_context())
        assert "tokens can be read" not in running.errors()


def test_on_loopback_the_administration_needs_no_tls(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    arguments = ["--port", "0", "--admin", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key]
    with program(*arguments, home=tmp_path) as running:
        assert running.place().startswith("https:")
        url = admin_url(running)
        assert url.startswith("http://127.0.0.1:")
        assert ask_admin(tmp_path, url) == 200


def test_an_administration_that_others_reach_without_tls_is_warned_of(tmp_path: Path) -> None:
    with program("--port", "0", "--admin", "0.0.0.0:0", home=tmp_path) as running:
        assert running.place().startswith("http:")
        assert ask_admin(tmp_path, admin_url(running)) == 200
        assert "tokens can be read on their way to 0.0.0.0:0" in running.errors()


def test_the_console_has_all_that_it_needs_where_the_administration_is(tmp_path: Path) -> None:
    with program("--port", "0", "--admin", "127.0.0.1:0", home=tmp_path) as running:
        main, apart = urlsplit(running.place()).netloc, urlsplit(admin_url(running)).netloc

        def status(netloc: str, method: str, path: str, body: bytes | None = None) -> int:
            with closing(http.client.HTTPConnection(netloc)) as connection:
                connection.request(method, path, body)
                return connection.getresponse().status

        assert status(apart, "GET", "/console/") == 200
        assert status(apart, "GET", "/static/console/main.js") == 200
        assert status(apart, "POST", "/admin/feed", HELLO) == 401
        assert status(apart, "POST", "/cometd", HELLO) == 404
        assert status(main, "POST", "/cometd", HELLO) == 200
        assert status(main, "GET", "/console/") == 404
        assert running.stop()[0] == 0


def test_the_server_listens_on_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with program("--unix", str(path), home=tmp_path) as running:
        assert running.place() == f"unix:{path}"
        ask_over_unix(path)
        assert running.stop()[0] == 0
    assert not path.exists()


def test_the_socket_of_a_killed_server_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with program("--unix", str(path), home=tmp_path) as killed:
        killed.ready_line()
        killed.process.kill()
        killed.ends()
    with program("--unix", str(path), home=tmp_path) as running:
        running.place()
        ask_over_unix(path)


def test_a_unix_socket_in_use_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with program("--unix", str(path), home=tmp_path) as first:
        first.place()
        with program("--unix", str(path), "--data", "other", home=tmp_path) as second:
            assert second.ends() == 2
            assert f"{path} is in use: stop what listens there, or choose" in second.errors()
        ask_over_unix(path)


def test_a_file_that_replaced_the_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with program("--unix", str(path), home=tmp_path) as running:
        running.place()
        path.unlink()
        path.write_text("mine")
        assert running.stop()[0] == 0
    assert path.read_text() == "mine"


def ask_over_unix(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(
            b"POST /cometd HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b"
            % (len(HELLO), HELLO)
        )
        assert client.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")


def test_the_server_listens_on_ipv6(tmp_path: Path) -> None:
    with program("--host", "::1", "--port", "0", home=tmp_path) as running:
        assert re.fullmatch(r"http://\[::1\]:\d+/cometd", running.place())


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with program("--port", str(port), home=tmp_path) as running:
            assert running.ends() == 2
            advice = "stop what listens there, or choose another port with --port"
            assert f"cannot start: 127.0.0.1:{port} is in use: {advice}\n" in running.errors()


def test_a_data_directory_belongs_to_one_server(tmp_path: Path) -> None:
    with program("--port", "0", home=tmp_path) as first:
        first.ready_line()
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
        with program("--port", "0", home=tmp_path) as second:
            assert second.ends() == 2
            advice = "stop it, or choose another one with --data"
            told = f"the data directory 'data' belongs to another running server: {advice}"
            assert told in second.errors()
        assert first.stop()[0] == 0
    with program("--port", "0", home=tmp_path) as third:
        assert third.place()


# What cannot be used, and what the complaint names.
UNUSABLE: dict[str, tuple[dict[str, Any], str]] = {
    "data on a file": ({"data": "file"}, "data file"),
    "data in a file": ({"data": "file/data"}, "data file/data"),
    "a socket in a directory that is not there": (
        {"unix": "none/socket"},
        "none/socket: the directory none does not exist: create it",
    ),
    "a socket where a file is": ({"unix": "file"}, "file"),
    "a host that is not ours": ({"open": True, "host": "192.0.2.1"}, "192.0.2.1"),
    "an administration that is not ours": ({"admin": "192.0.2.1:0"}, "admin"),
    "a host that is none": ({"open": True, "host": "no.such.invalid"}, "no.such.invalid"),
    "no certificate": (
        {"tls_cert": "none", "tls_key": "file"},
        "tls_cert: there is no file none",
    ),
    "no key": ({"tls_cert": "file", "tls_key": "none"}, "tls_key: there is no file none"),
    "a certificate in a directory": (
        {"tls_cert": ".", "tls_key": "file"},
        "tls_cert: .: Is a directory",
    ),
    "a certificate that is none": (
        {"tls_cert": "file", "tls_key": "file"},
        "tls_cert, tls_key: file must have a certificate in PEM, and file its key: ",
    ),
    "an extension that is not there": ({"extension": ["no.such:thing"]}, "no.such:thing"),
    "an extension without a factory": ({"extension": ["orjson:thing"]}, "orjson:thing"),
    "an extension that is no function": ({"extension": ["sys:version"]}, "sys:version"),
    "an extension that fails": ({"extension": ["failing_one:extend"]}, "failing_one:extend"),
    "an extension that would have to be awaited": (
        {"extension": ["waiting_one:extend"]},
        "waiting_one:extend",
    ),
    "a service that would have to be awaited": (
        {"extension": ["waiting_one:serve"]},
        "the service of /service/slow must be a plain function",
    ),
    "an extension that is no Python": ({"extension": ["broken_one:extend"]}, "broken_one:extend"),
    "a redis that is not there": ({"redis": "redis://127.0.0.1:1"}, "redis"),
    "a socket of redis that is not there": ({"redis": "unix:///none"}, "redis"),
}


@pytest.mark.parametrize("what", UNUSABLE)
async def test_an_unusable_setting_stops_the_start_and_is_named(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("nothing of use")
    (tmp_path / "failing_one.py").write_text("def extend(bayeux):\n    raise KeyError('oh')\n")
    (tmp_path / "waiting_one.py").write_text(
        "async def extend(bayeux):\n    pass\n"
        "def serve(bayeux):\n    bayeux.services.add('/service/slow', extend)\n"
    )
    (tmp_path / "broken_one.py").write_text("def extend(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    given, named = UNUSABLE[what]
    with pytest.raises((CannotStart, StoreUnavailable)) as stopped:
        async with serving(Settings(**{"port": 0, **given})):
            pass
    assert named in str(stopped.value)


def test_an_extension_beside_the_server_is_found(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def extend(bayeux):\n    assert bayeux.options\n")
    with program("--port", "0", "--extension", "mine:extend", home=tmp_path) as running:
        assert running.place()


def test_a_key_with_a_passphrase_is_refused_where_nobody_can_be_asked(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    locked = tmp_path / "locked.pem"
    subprocess.run(
        ["openssl", "ec", "-in", key, "-aes256", "-passout", "pass:x", "-out", str(locked)],
        check=True,
        capture_output=True,
    )
    arguments = ["--port", "0", "--tls-cert", cert, "--tls-key", str(locked)]
    with program(*arguments, home=tmp_path) as running:
        assert running.ends() == 2
        assert "tls_key" in running.errors()
