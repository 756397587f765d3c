"""How commands find a server and its token, and the errors when that fails."""

import os
import re
import socket
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from ssl import SSLCertVerificationError, SSLError

import pytest
import typer
from aiohttp import ServerDisconnectedError

from bench.processes import reserved_port
from holdfast.cli.failures import Exit
from holdfast.cli.remote import Server
from holdfast.cli.unreachable import unreachable
from holdfast.web.admin.faults import RequestFailed
from tests.cli.conftest import Shell
from tests.serving import ROOT

LIST = ["session", "list"]


def test_an_address_without_a_server_is_an_error(shell: Shell) -> None:
    with reserved_port() as port:
        done = shell.run(*LIST, "--url", f"http://127.0.0.1:{port}")
    assert done.exit_code == Exit.UNREACHABLE
    assert "holdfast serve" in done.stderr
    assert "--url" in done.stderr


@pytest.mark.parametrize(
    ("url", "causes", "told"),
    [
        ("http://a", [ServerDisconnectedError()], "(Server disconnected)"),
        ("http://a", [ServerDisconnectedError()], "or, if it uses TLS, write https://"),
        ("http://a", [ConnectionResetError(104, "x")], "or, if it uses TLS, write https://"),
        ("https://a", [SSLError(1, "x")], "(the TLS handshake failed)"),
        ("https://a", [SSLError(1, "x")], "or, if it does not use TLS, write http://"),
        ("https://a", [ValueError(), SSLCertVerificationError(1, "x")], "set SSL_CERT_FILE"),
        ("http://a", [ValueError("x"), TimeoutError()], "(no answer)"),
        ("http://a", [socket.gaierror(-2, "unknown")], "(unknown)"),
    ],
)
def test_the_reason_decides_what_is_advised(url: str, causes: list[Exception], told: str) -> None:
    for error, cause in pairwise(causes):
        error.__cause__ = cause
    advised = unreachable(url, causes[0])
    assert told in advised
    assert not told.startswith("(") or "HOLDFAST_URL" in advised


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8080",
        "ftp://host",
        "http://",
        "http://[",
        "http://a..b",
        "http://host:99999",
        "unix:",
    ],
)
def test_an_invalid_url_is_an_error(shell: Shell, url: str) -> None:
    done = shell.run(*LIST, "--url", url)
    assert done.exit_code == Exit.USAGE
    assert done.stderr.startswith("holdfast: ")


def answered_with(answer: bytes) -> str:
    """The URL of a server that says this once, whatever it is asked, and closes."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listening, listening.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(answer)

    threading.Thread(target=serve).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_says_nothing_may_speak_tls(shell: Shell) -> None:
    done = shell.run(*LIST, "--url", answered_with(b""))
    assert done.exit_code == Exit.UNREACHABLE
    assert "(Server disconnected)" in done.stderr
    assert "write https://" in done.stderr


@pytest.mark.parametrize("command", [LIST, ["dead", "export"]])
@pytest.mark.parametrize(
    "how", [b"Content-Length: 9\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n9"]
)
def test_a_response_that_breaks_off_is_an_error(
    shell: Shell, command: list[str], how: bytes
) -> None:
    done = shell.run(*command, "--url", answered_with(b"HTTP/1.1 200 OK\r\n" + how + b"\r\n{}\n"))
    assert done.exit_code == Exit.FAILED
    assert "the response is incomplete" in done.stderr


def test_a_missing_socket_is_an_error(shell: Shell) -> None:
    done = shell.run(*LIST, "--url", f"unix:{shell.home}/none")
    assert done.exit_code == Exit.UNREACHABLE


@pytest.mark.parametrize("path", ["/elsewhere", "/überall sonst"])
def test_a_server_without_an_administration_is_an_error(shell: Shell, path: str) -> None:
    done = shell.run(*LIST, "--url", shell.url + path)
    assert done.exit_code == Exit.FAILED
    assert "admin" in done.stderr


@pytest.mark.parametrize(
    ("token", "command", "code", "word"),
    [
        ("wrong" * 8, LIST, Exit.NOT_ALLOWED, "--token-file"),
        ("reader", ["dispatcher", "resume", "joe/1"], Exit.NOT_ALLOWED, "role of an operator"),
        ("reader", LIST, Exit.OK, ""),
        ("", LIST, Exit.USAGE, "the file has no token"),
        ("a\nb", LIST, Exit.USAGE, "the file has no token"),
        ("\xe9", LIST, Exit.USAGE, "it is not a token"),
    ],
)
def test_a_wrong_token_is_an_error(
    shell: Shell, token: str, command: list[str], code: Exit, word: str
) -> None:
    path = shell.home / "other-token"
    if token == "reader":
        path = shell.home / "reader-token"
    else:
        path.write_text(token, "utf-8")
    done = shell.run(*command, "--token-file", str(path))
    assert done.exit_code == code
    assert word in done.stderr


def test_a_missing_token_is_an_error(shell: Shell) -> None:
    (shell.home / "admin-token").unlink()
    done = shell.run(*LIST)
    assert done.exit_code == Exit.USAGE
    assert "admin-token: No such file" in done.stderr
    assert "HOLDFAST_TOKEN_FILE" in done.stderr


@pytest.mark.parametrize(
    ("code", "exit"),
    [
        ("resource.db.unavailable", Exit.UNREACHABLE),
        ("user.illegalArgument", Exit.USAGE),
        ("resource.admin.unavailable", Exit.NOT_ALLOWED),
        ("internal.unknown", Exit.FAILED),
    ],
)
def test_failures_of_the_server_have_exit_codes(shell: Shell, code: str, exit: Exit) -> None:
    shell.operations.fault = RequestFailed(code, "redis is \x1b[1maway")
    done = shell.run(*LIST)
    assert done.exit_code == exit
    assert "redis is \\x1b[1maway" in done.stderr


def test_too_many_requests_are_told_when_to_try_again(shell: Shell) -> None:
    path = shell.home / "wrong"
    path.write_text("wrong" * 8)
    done = [shell.run(*LIST, "--token-file", str(path)) for _ in range(11)][-1]
    assert done.exit_code == Exit.FAILED
    assert "try again in 5 s" in done.stderr


def test_the_token_is_read_from_the_data_directory_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_DATA", raising=False)
    for name in ("data", "elsewhere", "third"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "admin-token").write_text(name)
    assert Server().token() == "data"
    (tmp_path / "holdfast.toml").write_text('data = "elsewhere"\n')
    assert Server().token() == "elsewhere"
    monkeypatch.setenv("HOLDFAST_DATA", "third")
    assert Server().token() == "third"
    (tmp_path / "holdfast.toml").write_text("data = [")
    monkeypatch.delenv("HOLDFAST_DATA")
    assert Server().token() == "data"
    with pytest.raises(typer.Exit) as ended:
        Server(token_file=tmp_path / "none").token()
    assert ended.value.exit_code == Exit.USAGE


@pytest.mark.slow
def test_a_pipe_that_closes_early_is_not_an_error(shell: Shell) -> None:
    environment = {**os.environ, "HOLDFAST_URL": shell.url, "HOLDFAST_DATA": str(shell.home)}
    command = f"{sys.executable} -m holdfast dead export | head -c 1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert (done.stdout, done.stderr) == (b"{", b"")


def test_exit_codes_are_documented() -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    told = [int(code) for code in re.findall(r"^\| (\d) \|", page, re.MULTILINE)]
    assert told == [int(each) for each in Exit]
