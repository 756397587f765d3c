"""Named operators: an ordinary login gives access to the administration if it has a role."""

import base64
import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.login import passwords as hashing
from tests.unit.login.signing import token
from tests.web.people import Json, Person, keys, passwords, server_and_clients, until

pytestmark = pytest.mark.untraced

API = "/admin/api/v1"
FEED = "/admin/feed"
RIGHTS = """
[administration]
operators = ["ada", "@admins"]
readers = ["@support"]
"""
DENIED = "403:denied_by_security_policy:publish_denied"


def bearer(**claims: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(**claims)}"}


def basic(password: str, user: str = "ada") -> dict[str, str]:
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {text}"}


async def ask(
    person: Person, path: str = "/about", method: str = "GET", **request: Any
) -> tuple[int, Json]:
    async with person.http.request(method, API + path, **request) as response:
        assert "Basic" not in response.headers.get("WWW-Authenticate", "")
        return response.status, await response.json() if response.status != 204 else {}


async def who(person: Person) -> object:
    status, about = await ask(person)
    return about["who"] if status == 200 else status


async def test_roles_come_from_the_file_of_rights_and_names_from_the_login(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:
        ada, sue = home.person(**bearer()), home.person(**bearer(sub="sue", groups=["support"]))
        assert await who(ada) == "operator ada"
        assert (await ask(ada))[1]["role"] == "operator"
        assert await who(home.person(**bearer(sub="bo", groups=["admins"]))) == "operator bo"
        assert await who(sue) == "reader sue"
        # The name of the login counts, and not another one in a header.
        assert (await ask(ada, headers={"X-Operator": "eve"}))[1]["who"] == "operator ada"
        status, refused = await ask(home.person(**bearer(sub="eve")))
        assert (status, refused["error"]["message"]) == (
            403,
            "eve has no role in the administration",
        )

        hold = ("/sessions/ada/1/hold", "PUT")
        status, refused = await ask(sue, *hold, json={"reason": "mine"})
        assert status == 403
        assert refused["error"]["message"] == "this requires the role of an operator"
        await home.person().handshake("ada/1", token=token())
        assert (await ask(ada, *hold, json={"reason": "mine"}))[0] == 200
        _, audit = await ask(ada, "/audit")
        assert audit["items"][0]["who"] == "operator ada"


async def test_tokens_of_the_administration_work_beside_logins(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:
        for name, role in (("admin-token", "operator"), ("reader-token", "reader")):
            own = (tmp_path / "data" / name).read_text().strip()
            assert await who(home.person(Authorization=f"Bearer {own}")) == role
            named = home.person(**{"Authorization": f"Bearer {own}", "X-Operator": "ann"})
            assert await who(named) == f"{role}/ann"


async def test_a_login_without_a_role_gives_no_access(tmp_path: Path) -> None:
    rights = '[[rule]]\nwho = ["*"]\nmay = ["all"]\nchannels = ["/**"]\n'
    for number, more in enumerate(({}, {"rights": rights})):
        (tmp_path / str(number)).mkdir()
        async with server_and_clients(tmp_path / str(number), **more) as home:
            assert await who(home.person(**bearer())) == 403
            ada = home.person()
            await ada.handshake(token=token())
            asked = await ada.reply(
                "/service/admin", data={"cmd": "client/joe/?subjectQueueNumMsgs"}
            )
            assert asked["error"] == DENIED


async def test_failed_logins_are_slow_counted_and_logged_without_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    given = keys(
        tmp_path, login_passwords=passwords(tmp_path), login_cookie="login", login_anonymous=True
    )
    async with server_and_clients(tmp_path, rights=RIGHTS, **given) as home:
        mine = token()
        wrong: list[dict[str, str]] = [
            {},
            {"Cookie": f"login={mine}"},
            {"Authorization": f"Bearer {token(exp=5)}"},
            {"Authorization": f"Bearer {token(b'k' * 40)}"},
            basic("battery staple"),
            {"Authorization": f"Negotiate {mine}"},
        ]
        for headers in wrong:
            status, refused = await ask(home.person(**headers))
            assert status == 401
            assert refused["error"]["message"].startswith("a valid token is required")
        twice = [("Authorization", f"Bearer {mine}"), ("Authorization", "Bearer x")]
        async with home.person().http.get(f"{API}/about", headers=twice) as response:
            assert response.status == 401
    assert "failed: a wrong user name or password" in caplog.text
    for secret in (*mine.split("."), "battery staple"):
        assert secret not in caplog.text


async def test_a_password_gives_access_and_is_hashed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    verify = hashing.verify

    def counted(users: hashing.Users, subject: str, password: str) -> hashing.User:
        hashed.append(subject)
        return verify(users, subject, password)

    monkeypatch.setattr(hashing, "verify", counted)
    file = passwords(tmp_path)
    async with server_and_clients(tmp_path, rights=RIGHTS, login_passwords=file) as home:
        ada = home.person(**basic("correct horse"))
        for _ in range(3):
            assert await who(ada) == "operator ada"
        assert hashed == ["ada"]
        assert await who(home.person(**basic("correct hors"))) == 401
        # The old password is refused, although it was remembered.
        hashing.PasswordFile(file).put(hashing.User("ada", hashing.hashed("another")))
        assert await who(ada) == 401
        assert await who(home.person(**basic("another"))) == "operator ada"


async def test_a_proxys_user_needs_no_token(tmp_path: Path) -> None:
    given: Json = {"login_header": "X-Remote-User", "trusted_proxies": ["127.0.0.1"]}
    async with server_and_clients(tmp_path, rights=RIGHTS, **given) as home:
        ada = home.person(**{"X-Remote-User": "ada"})
        assert await who(ada) == "operator ada"
        assert await who(home.person(**{"X-Remote-User": "eve"})) == 403
        assert await who(home.person()) == 401
        # Pages of other origins come through the proxy, too.
        status, _ = await ask(
            ada, "/commands", "POST", json={"cmd": "x"}, headers={"Origin": "https://evil.example"}
        )
        assert status == 403


async def test_a_role_opens_the_systems_channels_until_the_file_changes(
    tmp_path: Path,
) -> None:
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:
        ada, eve = home.person(), home.person()
        await ada.handshake("ada/1", token=token())
        await eve.handshake(token=token(sub="eve"))

        async def has_role(person: Person) -> bool:
            asked = await person.ask(
                "/service/admin", data={"cmd": "client/joe/?subjectQueueNumMsgs"}
            )
            return bool(asked[-1]["successful"])

        assert (await ada.reply("/meta/subscribe", subscription="/sys/alert"))["successful"]
        assert await has_role(ada)
        assert not await has_role(eve)
        assert "error" in await eve.reply("/meta/subscribe", subscription="/sys/alert")
        (home.home / "rights.toml").write_text(RIGHTS.replace('"ada"', '"eve"'))

        async def has_changed() -> bool:
            return await has_role(eve)

        await until(has_changed)
        assert not await has_role(ada)
        assert "error" in await ada.reply("/meta/subscribe", subscription="/sys/alert")
        assert await who(home.person(**bearer())) == 403
        given = RIGHTS.replace('"ada"', '"eve"')
        (home.home / "rights.toml").write_text(given + '[revoked]\nsubjects = ["eve"]')

        await until(eve.is_out)
        assert await who(home.person(**bearer(sub="eve"))) == 401


async def test_live_figures_are_for_logins_with_a_role(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:

        async def greet(person: Person) -> aiohttp.ClientResponse:
            hello = {"channel": "/meta/handshake", "supportedConnectionTypes": ["long-polling"]}
            return await person.http.post(FEED, json=[{**hello, "version": "1.0"}])

        ada = home.person(**bearer())
        [reply] = await (await greet(ada)).json()
        ask = {"channel": "/meta/subscribe", "subscription": "/sys/figures"}
        subscribed = await ada.http.post(FEED, json=[{**ask, "clientId": reply["clientId"]}])
        assert (await subscribed.json())[0]["successful"]
        assert (await greet(home.person(**bearer(sub="eve")))).status == 403


async def test_a_typo_in_the_file_of_rights_is_told_and_the_former_rights_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("holdfast.web.admin.alert_watch.EVERY_S", 0.05)
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:
        ada = home.person(**bearer())

        async def alerts() -> list[Json]:
            status, found = await ask(ada, "/now")
            assert status == 200
            return list(found["alerts"]["items"])

        async def is_alerted() -> bool:
            return bool(await alerts())

        async def is_calm() -> bool:
            return not await alerts()

        (tmp_path / "rights.toml").write_text(RIGHTS + 'opertors = ["bo"]\n')
        await until(is_alerted)
        [raised] = await alerts()
        assert raised["alert"] == "files"
        fault = "rights.toml: line 5: administration.opertors: there is no such key"
        assert fault in raised["reason"]
        assert "correct the file" in raised["next"]
        async with ada.http.get("/metrics") as page:
            assert 'holdfast_alert_raised{alert="files"} 1.0' in await page.text()
        [logged] = [each.message for each in caplog.records if each.levelno == logging.ERROR]
        assert fault in logged
        (tmp_path / "rights.toml").write_text(RIGHTS)
        await until(is_calm)
