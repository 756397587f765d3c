"""Clients log in with certificates, over real TLS."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from tests.web.certificates import Authority
from tests.web.people import Person, ServerAndClients, server_and_clients

pytestmark = pytest.mark.untraced

DENIED = "403::handshake_denied"
MISSING = "403:no_credentials:handshake_denied"
RIGHTS = """
[[rule]]
who = ["*"]
may = ["subscribe", "create"]
channels = ["/users/{subject}/**"]

[[rule]]
who = ["@staff"]
may = ["all"]
channels = ["/staff/**"]
"""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@asynccontextmanager
async def guarded(home: Path, authority: Authority, **more: Any) -> AsyncIterator[ServerAndClients]:
    """A server whose clients log in with certificates of this authority."""
    cert, key = authority.issue("server")
    given = {"tls_cert": cert, "tls_key": key, "tls_client_ca": authority.file}
    async with server_and_clients(home, login_certificate=True, **given, **more) as made:
        assert made.url.startswith("https://")
        yield made


def person(home: ServerAndClients, secure: ssl.SSLContext, like: Person | None = None) -> Person:
    """A client with this certificate, perhaps with the session id and the cookie of another."""
    made = home.person(secure)
    if like is not None:
        made.http.cookie_jar.update_cookies({e.key: e.value for e in like.http.cookie_jar})
        made.client_id = like.client_id
    return made


async def test_the_subject_and_its_groups_come_from_the_certificate(
    tmp_path: Path, authority: Authority
) -> None:
    async with guarded(tmp_path, authority, rights=RIGHTS) as home:
        ada = person(home, authority.client(authority.issue("ada", "staff", "admins")))
        bob = person(home, authority.client(authority.issue("bob")))

        told = (await ada.handshake("ada/1"))["ext"]
        assert told["authentication"] == {"subject": "ada", "method": "certificate"}
        assert told["delivery"]["session"]["name"] == "client/ada/1"
        assert (await bob.handshake())["ext"]["authentication"]["subject"] == "bob"
        stolen = await person(home, authority.client(authority.issue("bob"))).handshake("ada/1")
        assert stolen["error"] == "403:denied_by_security_policy:session_name_denied"

        assert (await ada.reply("/meta/subscribe", subscription="/staff/1"))["successful"]
        assert (await ada.reply("/meta/subscribe", subscription="/users/ada/1"))["successful"]
        for channel in ("/staff/1", "/users/ada/1"):
            denied = await bob.reply("/meta/subscribe", subscription=channel)
            assert denied["error"].startswith("403:denied_by_rights:")


async def test_a_session_is_closed_to_another_certificate_and_to_none(
    tmp_path: Path, authority: Authority
) -> None:
    async with guarded(tmp_path, authority) as home:
        pair = authority.issue("ada")
        ada = person(home, authority.client(pair))
        await ada.handshake()
        assert not await ada.is_out()
        for secure in (
            authority.client(authority.issue("bob")),
            authority.client(authority.issue("ada", "staff")),
            authority.client(),
        ):
            other = person(home, secure, like=ada)
            [refused] = await other.connect()
            assert refused["error"].startswith("402")
            assert refused["advice"]["reconnect"] == "handshake"
            assert (await other.reply("/x", data=1))["error"].startswith("402")
            async with other.http.ws_connect("/cometd") as socket:
                question = {"channel": "/x", "clientId": ada.client_id, "data": 1}
                await socket.send_str(orjson.dumps([question]).decode())
                [refused] = orjson.loads((await socket.receive()).data)
                assert refused["error"].startswith("402")
        # Another connection, and a renewed certificate.
        assert not await person(home, authority.client(pair), like=ada).is_out()
        renewed = authority.client(authority.issue("ada"))
        assert not await person(home, renewed, like=ada).is_out()


@pytest.mark.parametrize("is_allowed", [False, True])
async def test_a_client_without_a_certificate_is_refused_or_anonymous(
    tmp_path: Path, authority: Authority, *, is_allowed: bool
) -> None:
    async with guarded(tmp_path, authority, login_anonymous=is_allowed) as home:
        nobody = person(home, authority.client())
        if is_allowed:
            assert (await nobody.handshake())["successful"]
            named = await person(home, authority.client()).handshake("ada/1")
            assert named["error"].endswith("session_name_denied")
        else:
            assert (await nobody.handshake())["error"] == MISSING


@pytest.mark.parametrize("name", ["a", "ada lovelace", "ada/1", "anonymous"])
async def test_a_certificate_without_a_valid_subject_logs_nobody_in(
    tmp_path: Path, authority: Authority, name: str
) -> None:
    async with guarded(tmp_path, authority, login_anonymous=True) as home:
        odd = person(home, authority.client(authority.issue(name)))
        assert (await odd.handshake())["error"] == DENIED


async def test_an_untrusted_or_expired_certificate_gets_no_connection(
    tmp_path: Path, authority: Authority
) -> None:
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other")
    async with guarded(tmp_path, authority) as home:
        for pair in (stranger.issue("ada"), authority.issue("ada", ago=timedelta(days=3))):
            with pytest.raises((aiohttp.ClientError, ConnectionError)):
                await person(home, authority.client(pair)).handshake()
