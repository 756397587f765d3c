"""Clients log in: with tokens, with passwords, or by the headers of a proxy."""

import asyncio
import base64
import logging
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast.bayeux.limits.buckets import Rate
from holdfast.compose import serving
from holdfast.compose.cannot_start import CannotStart
from tests.slowness import times_slower
from tests.store.servers import ValkeyServer
from tests.unit.login.signing import SECRET, ec_key, jwk, rsa_key, token
from tests.web.people import (
    Json,
    Person,
    Provider,
    keys,
    passwords,
    server_and_clients,
    settings,
    until,
)

DENIED = "403::handshake_denied"
MISSING = "403:no_credentials:handshake_denied"
# How many times longer tokens must be valid here than where everything takes moments.
SLOWER = round(times_slower(most=4.0))
RIGHTS = """
[[rule]]
who = ["*"]
may = ["all"]
channels = ["/rooms/**", "/users/{subject}/**"]
"""


async def test_the_token_decides_the_subject_of_a_client(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path) as home:
        ada = home.person()

        reply = await ada.handshake(session="ada/1", token=token(groups=["staff"]))

        assert reply["successful"]
        told = reply["ext"]["authentication"]
        assert (told["subject"], told["method"]) == ("ada", "token")
        assert reply["ext"]["delivery"]["session"]["name"] == "client/ada/1"


async def test_a_client_that_shows_nothing_is_told_to_show_credentials_as_slowly(
    tmp_path: Path,
) -> None:
    async with server_and_clients(tmp_path) as home:
        begun = time.monotonic()
        assert (await home.person().handshake())["error"] == MISSING
        assert time.monotonic() - begun >= 0.3
        by_header = home.person(Authorization="Basic YWRhOng=")
        assert (await by_header.handshake())["error"] == DENIED


async def test_the_token_may_come_in_a_header_or_a_cookie(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(SECRET)
    given = {"login_keys": str(tmp_path / "key"), "login_cookie": "login"}
    async with server_and_clients(tmp_path, **given) as home:
        by_header = home.person(Authorization=f"Bearer {token()}")
        by_cookie = home.person(Cookie=f"login=other; login={token()}")
        of_two = home.person(Cookie=f"login={token()}; login={token(sub='eve')}")

        assert (await by_header.handshake("ada/1"))["successful"]
        assert (await by_cookie.handshake("ada/2"))["successful"]
        assert (await of_two.handshake())["error"] == DENIED


async def test_all_failed_logins_get_the_same_slow_reply(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path) as home:
        wrong: list[Json] = [
            {"token": "x.y.z"},
            {"token": token(b"k" * 40)},
            {"token": token(exp=5)},
            {"token": 7},
            # The server knows no passwords, which stays unsaid.
            {"user": "ada", "password": "x"},
        ]
        begun = time.monotonic()
        replies = await asyncio.gather(*(home.person().handshake(**each) for each in wrong))

        assert time.monotonic() - begun >= 0.3
        assert {reply["error"] for reply in replies} == {DENIED}
        assert {reply["advice"]["reconnect"] for reply in replies} == {"none"}
        assert all(set(reply) == set(replies[0]) for reply in replies)


async def test_a_client_cannot_claim_a_session_name_of_another_subject(tmp_path: Path) -> None:
    """Guessed names, a user's cookie with another's token, and ids without credentials."""
    async with server_and_clients(tmp_path) as home:
        ada, eve = home.person(), home.person()
        await ada.handshake("ada/1", token=token())
        await eve.handshake("eve/1", token=token(sub="eve"))
        eves, hers = eve.client_id, ada.client_id

        stolen = await eve.handshake("ada/1", token=token(sub="eve"))
        assert stolen["error"] == "403:denied_by_security_policy:session_name_denied"
        # Her browser, perhaps at a public place, but another's token.
        shared = await ada.handshake("ada/1", token=token(sub="eve"))
        assert shared["error"] == stolen["error"]
        unproved = await ada.handshake("ada/1")
        assert unproved["error"] == MISSING

        ada.client_id, eve.client_id = hers, hers
        assert (await ada.reply("/meta/subscribe", subscription="/x"))["successful"]
        assert (await eve.reply("/meta/subscribe", subscription="/x"))["error"].startswith("402")
        eve.client_id = eves
        assert (await eve.reply("/meta/subscribe", subscription="/x"))["successful"]


async def test_rights_follow_the_rules_and_their_changes_at_once(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:
        ada, bob = home.person(), home.person()
        await ada.handshake(token=token())
        await bob.handshake(token=token(sub="bob"))

        for channel in ("/rooms/1", "/users/ada/mail", "/rooms/**"):
            assert (await ada.reply("/meta/subscribe", subscription=channel))["successful"]
        for channel in ("/**", "/users/bob/mail", "/users/**", "/other"):
            denied = await ada.reply("/meta/subscribe", subscription=channel)
            assert denied["error"] == "403:denied_by_rights:subscribe_denied"
        published = await bob.reply("/users/ada/mail", data="hello")
        assert published["error"] == "403:denied_by_rights:publish_denied"
        await ada.connect()
        assert (await bob.reply("/rooms/1", data="waits"))["successful"]

        (home.home / "rights.toml").write_text(RIGHTS.replace("/rooms/**", "/halls/**"))

        async def is_denied() -> bool:
            return "error" in await bob.reply("/rooms/1", data="more")

        await until(is_denied)

        # The messages that waited for her are discarded, and her subscriptions are gone.
        assert [each["channel"] for each in await ada.connect()] == ["/meta/connect"]
        assert (await ada.reply("/meta/subscribe", subscription="/halls/1"))["successful"]


CLAIMED = [
    {"may": ["subscribe", "create"], "channels": ["/own/{subject}/**"]},
    {"may_not": ["publish"], "channels": ["/rooms/quiet"]},
]


async def test_a_token_may_have_rights_in_a_claim(tmp_path: Path) -> None:
    async with server_and_clients(
        tmp_path, rights=RIGHTS, **keys(tmp_path, login_rights_claim="may")
    ) as home:
        ada, bob = home.person(), home.person()
        await ada.handshake(token=token(may=CLAIMED))
        await bob.handshake(token=token(sub="bob"))

        assert (await ada.reply("/meta/subscribe", subscription="/own/ada/**"))["successful"]
        for person, channel in ((ada, "/own/bob/x"), (ada, "/own/**"), (bob, "/own/bob/x")):
            denied = await person.reply("/meta/subscribe", subscription=channel)
            assert denied["error"] == "403:denied_by_rights:subscribe_denied"
        # The file allows it, and the token denies it.
        assert "error" in await ada.reply("/rooms/quiet", data="psst")
        assert (await bob.reply("/rooms/quiet", data="psst"))["successful"]


async def test_rights_to_histories_follow_file_and_claim_at_once(tmp_path: Path) -> None:
    may_read = '[[rule]]\nwho = ["*"]\nmay = ["history"]\nchannels = ["/rooms/**"]\n'
    rights = RIGHTS.replace('["all"]', '["subscribe", "publish", "create"]')
    given = keys(tmp_path, login_rights_claim="may", channels={"/**": {"history": 5}})
    async with server_and_clients(tmp_path, rights=rights + may_read, **given) as home:
        ada, bob = home.person(), home.person()
        await ada.handshake(token=token())
        claim = [{"may": ["replay"], "channels": ["/rooms/{subject}"]}]
        await bob.handshake(token=token(sub="bob", may=claim))
        for channel in ("/rooms/1", "/rooms/bob"):
            assert (await ada.reply(channel, data="kept"))["successful"]

        async def asks(person: Person, channel: str, **ext: Any) -> str | None:
            reply = await person.reply("/meta/subscribe", subscription=channel, ext=ext)
            error: str | None = reply.get("error")
            return error

        update: Json = {"delivery": {"initialUpdate": True}}
        assert await asks(ada, "/rooms/1", replay=-2) == "403:denied_by_rights:replay_denied"
        assert await asks(bob, "/rooms/1", replay=-2) == "403:denied_by_rights:replay_denied"
        assert await asks(bob, "/rooms/bob", replay=-2) is None
        assert await asks(ada, "/rooms/*", **update) is None
        assert await asks(bob, "/rooms/1", **update) is None
        (home.home / "rights.toml").write_text(rights)

        async def is_denied() -> bool:
            error = await asks(ada, "/rooms/2", **update)
            return error == "403:denied_by_rights:history_denied"

        await until(is_denied)
        assert (await ada.reply("/rooms/1", data="new"))["successful"]
        # Of what waits, the messages from histories are no longer theirs; bob may replay one.
        assert [each.get("data") for each in await ada.connect()] == ["new", None]
        assert [each.get("data") for each in await bob.connect()] == ["kept", "new", None]


async def test_a_token_has_only_the_rights_in_its_claim_if_there_is_no_file(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path, **keys(tmp_path, login_rights_claim="may")) as home:
        ada, bob = home.person(), home.person()
        await ada.handshake(token=token(may=CLAIMED))
        await bob.handshake(token=token(sub="bob"))

        assert (await ada.reply("/meta/subscribe", subscription="/own/ada/1"))["successful"]
        assert "error" in await bob.reply("/meta/subscribe", subscription="/own/bob/1")
        unusable = await home.person().handshake(token=token(may=[{"may": ["fly"]}]))
        assert unusable["error"] == DENIED


async def test_a_newer_token_replaces_the_one_before(tmp_path: Path) -> None:
    """The rights, the end and the id of the login are those of the newer token."""
    given = keys(tmp_path, login_rights_claim="may", login_leeway=0)
    async with server_and_clients(tmp_path, rights=RIGHTS, **given) as home:
        ada, bob = home.person(), home.person()
        await ada.handshake("ada/1", token=token(may=CLAIMED, jti="1"))
        await bob.handshake(token=token(sub="bob", jti="2"))
        await ada.reply("/meta/subscribe", subscription="/own/ada/1")
        await ada.connect()
        ends = int(time.time()) + 3 * SLOWER

        newer = {"token": token(exp=ends, jti="3")}
        renewed = await ada.reply("/service/login", data={}, ext={"authentication": newer})
        assert renewed["successful"]
        newer = {"token": token(sub="bob", jti="4")}
        await bob.reply("/service/login", data={}, ext={"authentication": newer})

        # What only the older token allowed is gone.
        gone = await ada.reply("/meta/subscribe", subscription="/own/ada/1")
        assert gone["error"] == "403:denied_by_rights:subscribe_denied"
        (home.home / "rights.toml").write_text(RIGHTS + "[revoked]\ntokens=['4']")
        await until(bob.is_out)
        await until(ada.is_out)
        assert time.time() >= ends


async def test_rights_of_a_token_survive_a_restart(tmp_path: Path) -> None:
    given = keys(tmp_path, login_rights_claim="may")
    with ValkeyServer() as valkey:
        async with server_and_clients(tmp_path, redis=valkey.url, rights=RIGHTS, **given) as home:
            ada = home.person()
            await ada.handshake("ada/1", token=token(may=CLAIMED))
            await ada.connect()
            jar = ada.http.cookie_jar
        async with server_and_clients(tmp_path, redis=valkey.url, rights=RIGHTS, **given) as home:
            person = home.person()
            person.http.cookie_jar.update_cookies({each.key: each.value for each in jar})
            person.client_id = ada.client_id
            assert (await person.reply("/meta/subscribe", subscription="/own/ada/1"))["successful"]
            assert "error" in await person.reply("/rooms/quiet", data="psst")


async def test_a_file_of_rights_that_breaks_changes_nothing(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:
        ada = home.person()
        await ada.handshake(token=token())
        (home.home / "rights.toml").write_text("[[rule]]\nwho = 5")
        await asyncio.sleep(1.5)

        assert (await ada.reply("/meta/subscribe", subscription="/rooms/1"))["successful"]
        assert "error" in await ada.reply("/meta/subscribe", subscription="/other")


async def test_a_login_ends_with_its_token_and_its_client_is_warned(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path) as home:
        ada = home.person()
        valid_s = 4 * SLOWER
        await ada.handshake("ada/1", token=token(exp=int(time.time()) + valid_s))
        await ada.reply("/meta/subscribe", subscription="/x")
        told: list[Json] = []

        async with asyncio.timeout(60):
            while "error" not in (messages := await ada.connect(500))[-1]:
                told += messages[:-1]

        assert messages[-1]["error"].startswith("402")
        assert messages[-1]["advice"]["reconnect"] == "handshake"
        # It comes again as long as she does not acknowledge it.
        assert {each["channel"] for each in told} == {"/service/login"}
        assert 0 < told[0]["data"]["expiresIn"] <= 1000 * valid_s
        # The queue of the session waits until its client logs in again.
        back = await ada.handshake("ada/1", token=token())
        assert back["ext"]["delivery"]["resumed"]


async def test_a_login_is_renewed_within_its_session(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:
        ada = home.person()
        ends = int(time.time()) + 5 * SLOWER
        await ada.handshake("ada/1", token=token(exp=ends))

        others = await ada.reply(
            "/meta/connect",
            connectionType="long-polling",
            advice={"timeout": 0},
            ext={"authentication": {"token": token(sub="eve")}},
        )
        assert others["error"] == "403::login_denied"
        renewed = await ada.reply(
            "/service/login", data={}, ext={"authentication": {"token": token()}}
        )
        assert renewed["successful"]
        await asyncio.sleep(max(0.0, ends + 2 - time.time()))

        assert (await ada.reply("/meta/subscribe", subscription="/rooms/1"))["successful"]


@pytest.mark.parametrize("given", ["x", [], 7, True, {}, {"token": 5}, {"token": "a.b.c"}])
async def test_an_unusable_token_is_refused_and_leaves_the_login_as_it_was(
    tmp_path: Path, given: object
) -> None:
    async with server_and_clients(tmp_path) as home:
        ada = home.person()
        await ada.handshake(token=token())

        reply = await ada.reply("/meta/subscribe", subscription="/x", ext={"authentication": given})

        assert reply["error"] == "403::login_denied"
        assert (await ada.reply("/meta/subscribe", subscription="/x"))["successful"]


async def test_revoked_logins_end_at_once(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:
        ada, bob = home.person(), home.person()
        await ada.handshake(token=token(jti="7"))
        await bob.handshake("bob/1", token=token(sub="bob"))

        (home.home / "rights.toml").write_text(RIGHTS + "[revoked]\ntokens=['7']\nsubjects=['bob']")
        await until(ada.is_out)
        await until(bob.is_out)

        assert (await ada.handshake(token=token(jti="7")))["error"] == DENIED
        assert (await ada.handshake(token=token(jti="8")))["successful"]
        assert (await bob.handshake(token=token(sub="bob")))["error"] == DENIED


async def test_logins_survive_a_restart(tmp_path: Path) -> None:
    with ValkeyServer() as valkey:
        async with server_and_clients(tmp_path, redis=valkey.url, rights=RIGHTS) as home:
            ends = int(time.time()) + 6 * SLOWER
            ada, bob, cid = home.person(), home.person(), home.person()
            await ada.handshake("ada/1", token=token())
            await bob.handshake("bob/1", token=token(sub="bob", exp=ends))
            await cid.handshake("cid/1", token=token(sub="cid", exp=ends))
            newer = {"authentication": {"token": token(sub="cid")}}
            assert (await cid.reply("/service/login", data={}, ext=newer))["successful"]
            for person in (ada, bob, cid):
                await person.connect()
                assert (await person.reply("/meta/subscribe", subscription="/rooms/1"))[
                    "successful"
                ]
            jars = [person.http.cookie_jar for person in (ada, bob, cid)]
        await asyncio.sleep(max(0.0, ends - time.time()))
        async with server_and_clients(tmp_path, redis=valkey.url, rights=RIGHTS) as home:
            for old, jar in zip((ada, bob, cid), jars, strict=True):
                person = home.person()
                person.http.cookie_jar.update_cookies({each.key: each.value for each in jar})
                person.client_id = old.client_id
                # Bob's has ended before his first request.
                assert await person.is_out() == (old is bob)
                if old is not bob:
                    denied = await person.reply("/meta/subscribe", subscription="/other")
                    assert denied["error"] == "403:denied_by_rights:subscribe_denied"


async def test_a_login_that_was_revoked_while_the_server_was_down_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def is_told() -> bool:
        return "it was revoked" in caplog.text

    given = {"login_passwords": passwords(tmp_path)}
    caplog.set_level(logging.INFO)
    revoked = RIGHTS + '[revoked]\nsubjects = ["ada"]'
    with ValkeyServer() as valkey:
        async with server_and_clients(tmp_path, redis=valkey.url, rights=RIGHTS, **given) as home:
            ada = home.person()
            await ada.handshake("ada/1", user="ada", password="correct horse")
            await ada.connect()
            jar = ada.http.cookie_jar
        async with server_and_clients(tmp_path, redis=valkey.url, rights=revoked, **given) as home:
            person = home.person()
            person.http.cookie_jar.update_cookies({each.key: each.value for each in jar})
            person.client_id = ada.client_id
            assert await person.is_out()
            [refused] = await person.connect()
            assert refused["error"].startswith("402")
            denied = await person.handshake("ada/1", user="ada", password="correct horse")
            assert denied["error"] == DENIED
            await until(is_told)


async def test_restored_sessions_without_a_login_must_log_in(tmp_path: Path) -> None:
    with ValkeyServer() as valkey:
        async with server_and_clients(
            tmp_path, redis=valkey.url, login_passwords=passwords(tmp_path)
        ) as home:
            pass
        async with serving(settings(tmp_path, redis=valkey.url)) as url:
            ada = Person(url)
            await ada.handshake("ada/1")
            await ada.connect()
            jar = ada.http.cookie_jar
            await ada.http.close()
        async with server_and_clients(tmp_path, redis=valkey.url) as home:
            person = home.person()
            person.http.cookie_jar.update_cookies({each.key: each.value for each in jar})
            person.client_id = ada.client_id
            assert await person.is_out()
            assert (await person.handshake("ada/1"))["error"] == MISSING
            back = await person.handshake("ada/1", token=token())
            assert back["ext"]["delivery"]["resumed"]


async def test_passwords_log_in_and_guesses_are_throttled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.login.extension._GUESSES", Rate(burst=10, per_s=0.001))
    given = {"login_passwords": passwords(tmp_path), "trusted_proxies": ["127.0.0.1"]}
    async with server_and_clients(tmp_path, **given) as home:
        ada = home.person()
        assert (await ada.handshake("ada/1", user="ada", password="correct horse"))["successful"]
        basic = "Basic " + base64.b64encode(b"ada:correct horse").decode()
        assert (await home.person(Authorization=basic).handshake("ada/2"))["successful"]

        far = {"X-Forwarded-For": "203.0.113.7"}
        guesses = [
            home.person(**far).handshake(user="ada", password=f"guess {n}") for n in range(14)
        ]
        errors = [reply["error"] for reply in await asyncio.gather(*guesses)]
        assert DENIED in errors
        assert "429:logins:budget_exceeded" in errors
        # Not even the right one, from there; from elsewhere it still opens.
        late = await home.person(**far).handshake(user="ada", password="correct horse")
        assert late["error"] == "429:logins:budget_exceeded"
        near = home.person(**{"X-Forwarded-For": "198.51.100.1"})
        assert (await near.handshake(user="ada", password="correct horse"))["successful"]


async def test_failures_without_a_password_do_not_use_up_the_guesses_of_passwords(
    tmp_path: Path,
) -> None:
    (tmp_path / "key").write_bytes(SECRET)
    given: Json = {"login_passwords": passwords(tmp_path), "trusted_proxies": ["127.0.0.1"]}
    async with server_and_clients(tmp_path, **given, login_keys=str(tmp_path / "key")) as home:
        far = {"X-Forwarded-For": "203.0.113.7"}
        expired = [home.person(**far).handshake(token=token(exp=5)) for _ in range(12)]
        without = [home.person(**far).handshake() for _ in range(12)]
        replies = await asyncio.gather(*expired, *without)
        assert {reply["error"] for reply in replies} == {DENIED, MISSING}

        ada = await home.person(**far).handshake(user="ada", password="correct horse")
        assert ada["successful"]


async def test_only_a_trusted_proxy_may_name_the_subject(tmp_path: Path) -> None:
    header = {"X-Remote-User": "ada", "X-Remote-Groups": "staff, users"}
    given: Json = {"login_header": "X-Remote-User", "login_groups_header": "X-Remote-Groups"}
    async with server_and_clients(tmp_path, **given, trusted_proxies=["127.0.0.1"]) as home:
        assert (await home.person(**header).handshake("ada/1"))["successful"]
        assert (await home.person(**{"X-Remote-User": "a b"}).handshake())["error"] == DENIED
    async with server_and_clients(tmp_path, **given, trusted_proxies=["192.0.2.1"]) as home:
        assert (await home.person(**header).handshake())["error"] == MISSING


async def test_a_repeated_login_header_is_refused(tmp_path: Path) -> None:
    given: Json = {"login_header": "X-Remote-User", "trusted_proxies": ["127.0.0.1"]}
    body = orjson.dumps(
        [{"channel": "/meta/handshake", "supportedConnectionTypes": ["long-polling"]}]
    )
    async with server_and_clients(tmp_path, **given) as home:
        place = home.url.removeprefix("http://").rstrip("/")
        host, _, port = place.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /cometd HTTP/1.1\r\nHost: %b\r\nContent-Type: application/json\r\n"
            b"X-Remote-User: eve\r\nX-Remote-User: ada\r\nContent-Length: %d\r\n"
            b"Connection: close\r\n\r\n%b" % (place.encode(), len(body), body)
        )
        answer = await reader.read()
        writer.close()
        assert DENIED.encode() in answer


async def test_anonymous_clients_are_let_in_where_that_is_set(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(SECRET)
    rights = (
        RIGHTS + '[[rule]]\nwho=["anonymous"]\nmay=["subscribe", "create"]\nchannels=["/news"]\n'
    )
    given = {"login_keys": str(tmp_path / "key"), "login_anonymous": True, "rights": rights}
    async with server_and_clients(tmp_path, **given) as home:
        guest = home.person()
        assert (await guest.handshake())["successful"]
        assert (await guest.reply("/meta/subscribe", subscription="/news"))["successful"]
        assert "error" in await guest.reply("/meta/subscribe", subscription="/rooms/1")
        assert "error" in await guest.reply("/news", data="lies")
        assert "error" in await guest.handshake("ada/1")
        # A client with wrong credentials does not become anonymous.
        assert (await guest.handshake(token=token(exp=5)))["error"] == DENIED


async def test_operators_need_no_login(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:
        shown = (home.home / "data" / "admin-token").read_text().strip()
        operator = home.person()
        assert (await operator.handshake(token=shown))["successful"]
        assert (await operator.reply("/meta/subscribe", subscription="/sys/alert"))["successful"]
        asked = await operator.reply(
            "/service/admin", data={"cmd": "client/joe/?subjectQueueNumMsgs"}
        )
        assert asked["successful"]


async def test_an_operators_token_opens_only_the_systems_channels(tmp_path: Path) -> None:
    """The tokens of the administration give no right to publish to users."""
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:
        for name in ("reader-token", "admin-token"):
            shown = (home.home / "data" / name).read_text().strip()
            operator = home.person()
            assert (await operator.handshake(token=shown))["successful"]
            assert (await operator.reply("/meta/subscribe", subscription="/sys/alert"))[
                "successful"
            ]
            for channel in ("/rooms/1", "/users/ada/mail", "/sys/alert"):
                assert (await operator.reply(channel, data="lies"))["error"].startswith("403:")
            assert "error" in await operator.reply("/meta/subscribe", subscription="/rooms/**")
        ada = home.person()
        await ada.handshake(token=token())
        assert "error" in await ada.reply(
            "/service/admin", data={"cmd": "client/joe/?subjectQueueNumMsgs"}
        )
        assert "error" in await ada.reply("/meta/subscribe", subscription="/sys/alert")


async def test_new_keys_of_a_provider_are_fetched(
    tmp_path: Path, aiohttp_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.login.key_sources._PAUSE_S", 0.5)
    provider = Provider()
    issuer = await provider.run(aiohttp_server)
    provider.keys = [jwk(ec_key(), kid="1")]
    async with server_and_clients(tmp_path, login_issuer=issuer) as home:
        first = token(ec_key(), "ES256", kid="1", iss=issuer)
        assert (await home.person().handshake(token=first))["successful"]
        await asyncio.gather(*(home.person().handshake(token=first) for _ in range(5)))
        assert provider.fetches == 1

        # Rotated in a moment ago.
        provider.keys = [jwk(ec_key(), kid="1"), jwk(rsa_key(), kid="2")]
        second = token(rsa_key(), "RS256", kid="2", iss=issuer)
        assert (await home.person().handshake(token=second))["successful"]
        assert provider.fetches == 2

        # Invented ids cost the provider nothing.
        made_up = [token(ec_key(), "ES256", kid=f"x{n}", iss=issuer) for n in range(20)]
        began = time.monotonic()
        await asyncio.gather(*(home.person().handshake(token=each) for each in made_up))
        assert provider.fetches <= 4 + (time.monotonic() - began) / 0.5

        # A key that was withdrawn is not believed any longer.
        provider.keys = [jwk(rsa_key(), kid="2")]
        await home.person().handshake(token=token(ec_key(), "ES256", kid="new", iss=issuer))
        assert (await home.person().handshake(token=first))["error"] == DENIED


async def test_a_slow_provider_does_not_delay_logins_with_known_keys(
    tmp_path: Path, aiohttp_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.login.key_sources._RETRY_S", 0.0)
    monkeypatch.setattr("holdfast.login.key_sources._RENEW_AFTER_S", 0.0)
    provider = Provider()
    issuer = await provider.run(aiohttp_server)
    provider.keys = [jwk(ec_key(), kid="1")]
    async with server_and_clients(tmp_path, login_issuer=issuer) as home:
        mine = token(ec_key(), "ES256", kid="1", iss=issuer)
        await home.person().handshake(token=mine)
        provider.delay_s = 3600.0

        async with asyncio.timeout(30):
            assert (await home.person().handshake(token=mine))["successful"]
            assert (await home.person().handshake(token=mine))["successful"]


@pytest.mark.parametrize("lie", ["another issuer", "keys elsewhere", "keys inside", "no keys"])
async def test_a_provider_that_names_another_issuer_or_host_is_not_followed(
    tmp_path: Path, aiohttp_server: Any, lie: str
) -> None:
    provider, other = Provider(), Provider()
    issuer, elsewhere = await provider.run(aiohttp_server), await other.run(aiohttp_server)
    provider.keys = other.keys = [jwk(ec_key(), kid="1")]
    lies: dict[str, Json] = {
        "another issuer": {"issuer": elsewhere},
        "keys elsewhere": {"jwks_uri": f"{elsewhere}/keys"},
        "keys inside": {"jwks_uri": "http://127.0.0.1:1/keys"},
        "no keys": {"jwks_uri": None},
    }
    provider.document |= lies[lie]
    async with server_and_clients(tmp_path, login_issuer=issuer) as home:
        reply = await home.person().handshake(token=token(ec_key(), "ES256", kid="1", iss=issuer))

        assert reply["error"] == DENIED
        assert provider.fetches == other.fetches == 0


async def test_a_server_with_a_login_may_listen_at_every_address(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(SECRET)
    async with serving(settings(tmp_path, host="0.0.0.0", login_keys=str(tmp_path / "key"))):
        pass
    with pytest.raises(CannotStart, match="configure a login"):
        async with serving(settings(tmp_path, host="0.0.0.0")):
            pass


async def test_an_error_in_a_file_is_reported_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"secret")
    (tmp_path / "rights").write_text("[[rule]]\nwho=['*']")
    faults: list[Json] = [
        {"login_keys": str(tmp_path / "short")},
        {"login_keys": str(tmp_path / "missing")},
        {"login_passwords": tmp_path / "missing"},
        {"login_passwords": tmp_path / "short", "rights": tmp_path / "rights"},
    ]
    for given in faults:
        with pytest.raises(CannotStart, match=str(tmp_path)):
            async with serving(settings(tmp_path, **given)):
                pass


async def test_the_chat_does_not_offer_users_a_transport_that_shows_credentials(
    tmp_path: Path,
) -> None:
    transports = ["websocket", "long-polling", "callback-polling"]
    async with server_and_clients(tmp_path, transports=transports) as home:
        page = await (await home.person().http.get("/chat/")).text()
    assert "<option>long-polling</option>" in page
    assert "callback-polling" not in page
