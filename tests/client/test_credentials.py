"""How client and server authenticate each other, over both transports."""

import asyncio
import gc
import logging
import signal
import warnings
from collections.abc import Iterator
from functools import partial

import aiohttp
import pytest

from holdfast import Client, NotConnected, ReplyError
from holdfast.login.passwords import PasswordFile, User, hashed
from tests.client.conftest import LONG_POLLING, WEBSOCKET
from tests.serving import Server
from tests.slowness import times_slower
from tests.web.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(authority: Authority) -> Iterator[Server]:
    """A server with TLS, which takes the names of clients from their certificates."""
    cert, key = authority.issue("server")
    server = Server(
        {
            "tls_cert": str(cert),
            "tls_key": str(key),
            "tls_client_ca": str(authority.file),
            "login_certificate": True,
            "login_anonymous": True,
        }
    )
    yield server
    server.stop()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that requires passwords."""
    file = tmp_path_factory.mktemp("guarded") / "passwords"
    PasswordFile(file).put(User("ada", hashed("correct horse"), ("staff",)))
    server = Server({"login_passwords": str(file)})
    yield server
    server.stop()


async def test_a_client_connects_only_to_a_server_whose_certificate_it_trusts(
    secure: Server, authority: Authority, transport: str
) -> None:
    trusting = authority.client()
    async with (
        Client(secure.url, ssl=trusting, transports=[transport]) as client,
        client.subscribe("/secure") as subscription,
    ):
        await client.publish("/secure", "a secret")
        assert (await anext(subscription)).data == "a secret"
    patience_s = times_slower(most=10.0)
    with pytest.raises(NotConnected, match="certificate"):
        async with Client(secure.url, transports=[transport], connect_timeout_s=patience_s):
            pass


async def test_the_certificate_of_a_client_decides_its_subject(
    secure: Server, authority: Authority, transport: str
) -> None:
    ada = authority.client(authority.issue("ada"))
    async with Client(secure.url, session="ada/1", ssl=ada, transports=[transport]) as client:
        assert client.session_name == "client/ada/1"
        await client.close(end=True)
    with pytest.raises(ReplyError, match="session_name_denied"):
        async with Client(secure.url, session="bob/1", ssl=ada, transports=[transport]):
            pass


def test_a_client_leaves_no_connection_behind_if_the_server_does_not_answer(
    secure: Server, authority: Authority
) -> None:
    client = partial(Client, secure.url, ssl=authority.client(), close_timeout_s=0.1)

    async def come_and_go() -> None:
        async with (
            client(transports=[WEBSOCKET]),
            client(transports=[LONG_POLLING]),
        ):
            # It answers neither the disconnect nor the ends of the socket and of TLS.
            secure.process.send_signal(signal.SIGSTOP)

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            asyncio.run(come_and_go())
            gc.collect()
    finally:
        secure.process.send_signal(signal.SIGCONT)
    assert [str(each.message) for each in caught] == []


async def test_a_client_logs_in_with_a_password_and_gets_one_error_if_it_is_wrong(
    guarded: Server, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    right = {"user": "ada", "password": "correct horse"}
    async with Client(guarded.url, credentials=right, transports=[transport]) as client:
        assert str(client.session_name).startswith("client/ada/")
    with pytest.raises(ReplyError, match="handshake_denied"):
        async with Client(
            guarded.url, credentials={**right, "password": "wrong"}, transports=[transport]
        ):
            pass
    # An exception that nobody retrieved is logged when it is discarded.
    gc.collect()
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


async def test_a_client_can_log_in_with_a_header_of_its_own(
    guarded: Server, transport: str
) -> None:
    login = {"Authorization": aiohttp.encode_basic_auth("ada", "correct horse")}
    async with Client(guarded.url, headers=login, transports=[transport]) as client:
        assert str(client.session_name).startswith("client/ada/")


async def test_clients_share_a_connector_which_stays_open(server: Server, transport: str) -> None:
    async with aiohttp.TCPConnector() as connector:
        for _ in range(2):
            async with Client(server.url, connector=connector, transports=[transport]) as client:
                await client.publish("/shared", 1)
        assert not connector.closed


async def test_an_error_of_the_token_function_is_in_the_client_s_error(server: Server) -> None:
    def token() -> str:
        raise OSError("no file")

    with pytest.raises(NotConnected, match="no file"):
        async with Client(server.url, token=token, connect_timeout_s=0.1):
            pass


async def test_terms_that_json_cannot_hold_are_a_type_error(server: Server, transport: str) -> None:
    with pytest.raises(TypeError, match="JSON"):
        async with Client(server.url, terms={"a": object()}, transports=[transport]):
            pass


@pytest.mark.parametrize("url", ["localhost", "ftp://localhost", "localhost:8080"])
def test_an_invalid_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="write a URL"):
        Client(url)
