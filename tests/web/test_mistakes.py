"""What people do wrong, and the sentence that they see: each says what to do."""

import asyncio
import json
import logging
import os
import re
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from holdfast import Client, NewSubscription, NotConnected, Refuse, SyncClient, WrongUse
from holdfast.cli.main import program
from tests.serving import Server, Servers, environment

JSON = {"Content-Type": "application/json"}
HANDSHAKE = {
    "channel": "/meta/handshake",
    "version": "1.0",
    "supportedConnectionTypes": ["long-polling"],
}
# The origin of pages that may use the server.
PAGE = "https://shop.example"
CONNECT = {"channel": "/meta/connect", "connectionType": "long-polling"}


@pytest.fixture(scope="module")
def server(servers: Servers) -> Server:
    return servers.with_settings(
        {"max_request_size": 100_000, "max_message_size": 50_000, "allow_origin": [PAGE]}
    )


class Ask(NamedTuple):
    """A request, as somebody with curl or a browser sends it."""

    path: str
    body: object = None
    headers: Mapping[str, str] | None = None
    method: str | None = None


def opened(request: Request) -> Any:
    try:
        return urlopen(request)
    except HTTPError as error:
        return error


def answer(server: Server, ask: Ask) -> str:
    body = ask.body if isinstance(ask.body, str | None) else json.dumps(ask.body)
    request = Request(
        server.url + ask.path,
        None if body is None else body.encode(),
        {**(ask.headers or JSON)},
        method=ask.method,
    )
    with opened(request) as response:
        return str(response.read().decode())


def denied(**ext: Any) -> Ask:
    return Ask("/cometd", {**HANDSHAKE, "ext": ext})


REQUESTS = {
    "a wrong path": (Ask("/comet", []), "Clients connect to /cometd or /bayeux by POST"),
    "a wrong page": (Ask("/index.html"), "people begin at /"),
    "a path below static": (Ask("/static/cometd.js"), "nothing at this path"),
    "the path of clients in the address bar": (Ask("/cometd"), "clients connect by POST"),
    "another method": (Ask("/cometd", "[]", method="PUT"), "connect by POST or WebSocket"),
    "a GET to publish": (Ask("/publish"), "This path takes OPTIONS or POST only"),
    "a POST to metrics": (Ask("/metrics", "x"), "takes GET or HEAD only"),
    "no clientId": (Ask("/cometd", CONNECT), "402:send the clientId:client_id_missing"),
    "text that is no JSON": (Ask("/publish", "hello"), "not JSON at byte 0"),
    "single quotes": (Ask("/publish", "{'channel': '/a'}"), "not JSON at byte 1"),
    "lines as one JSON": (Ask("/publish", '{"channel":"/a","data":1}\n{}'), "not JSON at byte 26"),
    "no body": (Ask("/publish", ""), "an empty body"),
    "no messages": (Ask("/cometd", []), "no messages"),
    "a text as a message": (Ask("/cometd", ["x"]), "message 1 is not an object"),
    "a form to publish": (
        Ask("/publish", "message=%7B%7D", {"Content-Type": "application/x-www-form-urlencoded"}),
        "a form where JSON was expected",
    ),
    "JSON as curl's form": (
        Ask("/cometd", [HANDSHAKE], {"Content-Type": "application/x-www-form-urlencoded"}),
        "JSON with the Content-Type of a form",
    ),
    "a channel without its slash": (
        Ask("/publish", {"channel": "orders", "data": 1}),
        "405::channel_invalid",
    ),
    "a publish without data": (Ask("/publish", {"channel": "/a"}), "400::data_missing"),
    "a misspelt option": (
        Ask("/publish", {"channel": "/a", "data": 1, "ext": {"delivery": {"priorty": 1}}}),
        "priorty:delivery_invalid",
    ),
    "a misspelt option of the handshake": (denied(delivery={"sesion": "a/1"}), "sesion:delivery"),
    "a token where no login is": (denied(authentication={"token": "x"}), "no_login"),
    "a message too large": (
        Ask("/publish", {"channel": "/a", "data": "x" * 60_000}),
        "413:50000:message_too_large",
    ),
    "a handshake with other messages": (
        Ask("/cometd", [HANDSHAKE, {"channel": "/a", "data": 1}]),
        "handshake_batched",
    ),
    "no connection types": (
        Ask("/cometd", {"channel": "/meta/handshake", "version": "1.0"}),
        "406::connection_types_unsupported",
    ),
    "another name of the host": (Ask("/", None, {"Host": "a.example"}), "--host-name NAME"),
    "a page of another origin": (
        Ask("/cometd", [HANDSHAKE], {**JSON, "Origin": "http://localhost:3000"}),
        "allow_origin:origin_denied",
    ),
    "a channel that keeps nothing": (Ask("/streams/a"), "404::history_missing"),
    "the administration without a token": (
        Ask("/admin/api/v1/sessions"),
        "send what admin-token in the data directory has",
    ),
}


@pytest.mark.parametrize("mistake", REQUESTS)
def test_a_request_by_hand_is_answered_by_what_to_do(mistake: str, server: Server) -> None:
    ask, sentence = REQUESTS[mistake]
    assert sentence in answer(server, ask)


@pytest.mark.parametrize(
    ("method", "path", "sentence"),
    [("POST", "/comet", "Clients connect to /cometd"), ("POST", "/metrics", "takes GET or HEAD")],
)
def test_a_page_of_an_allowed_origin_reads_what_to_do_and_no_other_does(
    method: str, path: str, sentence: str, server: Server
) -> None:
    asking = {"Access-Control-Request-Method": method}
    for origin, allowed in ((PAGE, PAGE), ("https://evil.example", None)):
        asked = Request(server.url + path, headers={**asking, "Origin": origin}, method="OPTIONS")
        with opened(asked) as preflight:
            assert (preflight.status == 200) is (allowed is not None)
            assert preflight.headers["Access-Control-Allow-Origin"] == allowed
        with opened(Request(server.url + path, b"[]", {**JSON, "Origin": origin})) as posted:
            assert sentence in posted.read().decode()
        assert posted.headers["Access-Control-Allow-Origin"] == allowed
        assert posted.headers["Vary"] == "Origin"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("sessions?foo=1", "foo: there is no such field or parameter here"),
        ("nope", "/admin/api/v1/openapi.json has all paths"),
        ("sessions/joe/1", "there is no session"),
    ],
)
def test_a_wrong_question_of_an_operator_is_answered_by_what_to_do(
    path: str, sentence: str, server: Server
) -> None:
    token = (server.data / "admin-token").read_text().strip()
    asked = Ask(f"/admin/api/v1/{path}", None, {"Authorization": f"Bearer {token}"})
    assert sentence in answer(server, asked)


def test_a_lost_cookie_and_an_unknown_meta_channel_are_named(server: Server) -> None:
    [begun] = json.loads(answer(server, Ask("/cometd", [HANDSHAKE])))
    connect = {**CONNECT, "clientId": begun["clientId"]}
    assert "402:send the cookie:cookie_missing" in answer(server, Ask("/cometd", [connect]))

    request = Request(f"{server.url}/cometd", json.dumps([HANDSHAKE]).encode(), JSON)
    with urlopen(request) as response:
        cookie = response.headers["Set-Cookie"].split(";")[0]
        [begun] = json.loads(response.read())
    odd = {"channel": "/meta/foo", "clientId": begun["clientId"]}
    said = answer(server, Ask("/cometd", [odd], {**JSON, "Cookie": cookie}))
    assert "400:/meta/foo:not_supported" in said


# The Python client


async def subscribe_to_a_result(client: Client) -> None:
    # As `print()` returns it.
    await client.subscribe("/a", None)  # type: ignore[arg-type]


async def subscribe_a_generator(client: Client) -> None:
    async def each(message: object) -> Any:
        yield message

    await client.subscribe("/a", each)


async def respond_with_nothing(client: Client) -> None:
    await client.respond("/a", None)  # type: ignore[arg-type]


async def next_of(subscription: NewSubscription) -> None:
    await anext(subscription)


PROGRAMS: dict[str, tuple[Callable[[Client], Awaitable[object]], str]] = {
    'subscribe("/a", print())': (subscribe_to_a_result, "print, and not its result, print()"),
    "an async generator": (subscribe_a_generator, "has a yield, so it would never run"),
    "respond(None)": (respond_with_nothing, "is no function"),
    "a channel without its slash": (
        lambda client: client.publish("orders", 1),
        "write a channel such as /orders/7",
    ),
    "a subscription without its slash": (
        lambda client: client.subscribe("orders"),
        "or a pattern such as /orders/**",
    ),
    "nobody answers": (
        lambda client: client.request("/nobody", {}),
        "nobody responds on this channel; start a responder",
    ),
    "a message too large": (
        lambda client: client.publish("/a", "x" * 60_000),
        "raise max_message_size on the server",
    ),
    "a priority beyond 9": (
        lambda client: client.publish("/a", 1, priority=10),
        "not with this value",
    ),
    "a set as data": (lambda client: client.publish("/a", {1, 2}), "not JSON serializable: set"),
    "NaN as data": (lambda client: client.publish("/a", float("nan")), "send None, or a text"),
    "a list of channels": (
        lambda client: client.subscribe(["/a", "/b"]),  # type: ignore[arg-type]
        "subscribe to one channel or pattern at a time",
    ),
    "a misspelt option of a publish": (
        lambda client: client.publish("/a", 1, persistant=True),  # type: ignore[call-arg]
        "did you mean persistent?",
    ),
    "another event loop": (
        lambda client: asyncio.to_thread(lambda: asyncio.run(client.publish("/a", 1))),
        "create one in each loop, or use one SyncClient from threads",
    ),
    "another loop that subscribes": (
        lambda client: asyncio.to_thread(client.subscribe, "/a"),
        "create one in each loop, or use one SyncClient from threads",
    ),
    "a loop over messages in another event loop": (
        lambda client: asyncio.to_thread(lambda: asyncio.run(next_of(client.listen("/a")))),
        "create one in each loop, or use one SyncClient from threads",
    ),
}


@pytest.mark.parametrize("mistake", PROGRAMS)
def test_a_python_program_is_told_what_to_do(mistake: str, server: Server) -> None:
    act, sentence = PROGRAMS[mistake]

    async def run() -> None:
        async with Client(server.url) as client:
            await act(client)

    with pytest.raises(Exception, match=re.escape(sentence)):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "options", "sentence"),
    [
        ("{url}/comet", {}, "no Bayeux server is at this path: Holdfast has /cometd"),
        ("http://127.0.0.1:9", {}, "is a server running there? holdfast serve starts one"),
        ("https{place}", {}, "no TLS is spoken there: write http://"),
        ("127.0.0.1:8080", {}, "write a URL such as http://127.0.0.1:8080"),
        ("{url}", {"token": "x"}, "leave the token out, or configure a login"),
    ],
    ids=["a wrong path", "no server", "https", "no scheme", "a token where no login is"],
)
def test_a_python_program_at_a_wrong_place_is_told_what_to_do(
    url: str, options: dict[str, Any], sentence: str, server: Server
) -> None:
    place = url.format(url=server.url, place=server.url.removeprefix("http"))

    async def run() -> None:
        async with Client(place, connect_timeout_s=3.0, **options):
            pass

    with pytest.raises(Exception, match=re.escape(sentence)):
        asyncio.run(run())


def test_a_python_program_without_credentials_is_told_to_give_some(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)

    async def run(url: str, **options: Any) -> None:
        async with Client(url, connect_timeout_s=3.0, **options):
            pass

    server = Server({"login_keys": str(key), "data": str(tmp_path / "data")})
    try:
        with pytest.raises(Exception, match="this server has a login: give token, or credentials"):
            asyncio.run(run(server.url))
        with pytest.raises(Exception, match="the token or the password is wrong or expired"):
            asyncio.run(run(server.url, token="x.y.z"))
    finally:
        server.stop()


def test_a_client_without_async_is_told_of_the_one_without_a_loop() -> None:
    with pytest.raises(WrongUse, match="use SyncClient"), Client("http://127.0.0.1:9"):
        pass


def said_by_a_fork(act: Callable[[], object]) -> str:
    """What an action raises in a fork of this process."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            act()
        except BaseException as error:
            os.write(writes, str(error).encode())
        os._exit(0)
    os.close(writes)
    os.waitpid(child, 0)
    with open(reads) as said:
        return said.read()


# Later Pythons warn of a fork beside threads.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_client_in_a_fork_says_to_create_one_there(server: Server) -> None:
    async def run() -> str:
        async with Client(server.url) as client:
            return said_by_a_fork(lambda: asyncio.run(client.publish("/a", 1)))

    assert "create one in each process" in asyncio.run(run())
    with SyncClient(server.url) as client:
        assert "create one in each process" in said_by_a_fork(lambda: client.publish("/a", 1))
        assert "create one in each process" in said_by_a_fork(
            lambda: client.__exit__(None, None, None)
        )


def test_a_message_that_does_not_come_in_time_is_named(server: Server) -> None:
    with SyncClient(server.url) as client:
        silent = client.subscribe("/silent")
        with pytest.raises(TimeoutError, match=r"no message on /silent within 0\.1 s"):
            silent.next(timeout_s=0.1)


def test_a_server_in_an_event_loop_that_is_blocked_has_not_answered() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        client = SyncClient(f"http://127.0.0.1:{port}", connect_timeout_s=0.1)
        with pytest.raises(NotConnected, match="there is no answer yet"), client:
            pass


def test_a_coroutine_function_for_the_client_without_a_loop_is_refused(server: Server) -> None:
    async def book(message: object) -> None: ...

    with SyncClient(server.url) as client, pytest.raises(TypeError, match="or Client instead"):
        client.subscribe("/a", book)


def test_a_code_that_is_none_is_in_the_log_of_the_client(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    seen = asyncio.Event()

    def book(_: object) -> None:
        seen.set()
        raise Refuse("nonsense", "whatever")

    async def run() -> None:
        async with Client(server.url) as client:
            await client.subscribe("/codes", book)
            await client.publish("/codes", 1)
            await seen.wait()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert "such as user.order.quantity" in caplog.text


def test_a_session_that_another_client_takes_says_so(server: Server) -> None:
    async def run() -> None:
        async with Client(server.url, session="taken/1") as first:
            subscription = await first.subscribe("/x")
            async with Client(server.url, session="taken/1"):
                await anext(subscription)

    with pytest.raises(Exception, match="another client has taken the session over"):
        asyncio.run(run())


# The command line, settings and stores

COMMANDS = {
    "publsh /a 1": "Did you mean 'publish'?",
    "publish orders 1": "write a channel such as /orders/7",
    "publish /a 1 --token-file {data}/reader-tokn": "No such file",
    "subscribe orders": "or a pattern such as /orders/**",
    "publish /meta/x 1": "choose a channel such as /orders/7",
    "request /nobody {{}}": "start a responder, such as holdfast respond",
    "session show joe": "write a name such as joe/1",
    "session show nobody/1": "list sessions with holdfast session list",
    "dead show 123": "ids have 19 digits, see holdfast dead list",
    "dead replay --yes": "give ids or conditions, or --all",
    "message foo": "write NAME-NUMBER",
    "command nonsense": "a command is client/",
    "session list --url 127.0.0.1:1": "write a URL such as",
    "session list --url http://127.0.0.1:9": "Start one with holdfast serve",
    "restart --data {home}": "Is a server running there",
    "init {home} --run-by docker --yes": "none of terminal, systemd, compose",
}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_says_what_to_do(line: str, server: Server, tmp_path: Path) -> None:
    words = line.format(data=server.data, home=tmp_path).split()
    known = {
        "HOLDFAST_URL": server.url,
        "HOLDFAST_TOKEN_FILE": str(server.data / "admin-token"),
        "COLUMNS": "500",
    }
    result = CliRunner().invoke(program, words, env=known)
    assert result.exit_code != 0
    assert COMMANDS[line] in " ".join(result.output.split())


STARTS = {
    "HOLDFAST_TIMEOUT=30s": "timeout: write a whole number, such as 30000, without a unit",
    "--port 99999": "port:",
    "--host 0.0.0.0": "configure a login, or set open to admit everybody",
    "--tls-cert a.pem": "tls_cert and tls_key need each other",
    "--rights rights.toml": "rights needs a way to log in: login_keys",
    "--allow-origin localhost:3000": "must be like https://example.org, or *",
    "--admin 8081": "must be HOST:PORT, such as 127.0.0.1:9000",
    "--redis localhost:6379": "must be like redis://host:6379/0",
    "--redis redis://127.0.0.1:1": "start it, correct redis, or leave redis out",
    "--durability yes": "write memory, everysec, always, or replicas:N",
    "--channels x": "channels: not JSON",
    "--config nope.toml": "the file nope.toml does not exist",
    "--data /proc/x": "choose a folder that you may write to with --data",
}


@pytest.mark.parametrize("flags", STARTS)
def test_a_server_that_cannot_start_says_what_to_do(flags: str, tmp_path: Path) -> None:
    words = [each for each in flags.split() if "=" not in each]
    variables = dict(each.split("=") for each in flags.split() if "=" in each)
    place = [] if "--data" in words else ["--data", str(tmp_path / "data")]
    ports = [] if "--port" in words else ["--port", "0"]
    command = [sys.executable, "-P", "-m", "holdfast", "serve", *ports, *place, *words]
    found = subprocess.run(
        command, cwd=tmp_path, env=environment() | variables, capture_output=True, text=True
    )
    assert found.returncode == 2
    assert STARTS[flags] in " ".join(found.stderr.split())
