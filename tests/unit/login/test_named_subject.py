"""The subject that credentials name is the one that they prove, if they prove one."""

import asyncio
from base64 import b64encode
from typing import Any

import pytest

from holdfast.bayeux.wire.caller import UNKNOWN, Caller
from holdfast.login.authenticator import Authenticator, Methods
from holdfast.login.failures import LoginFailed
from holdfast.login.key_sources import KeyFile
from holdfast.login.passwords import User, hashed, read_users
from holdfast.login.watched_file import WatchedFile
from holdfast.settings.login import LoginSettings
from tests.unit.login.signing import SECRET, token

PASSWORD = "correct horse"
OTHER_KEY = b"k" * 40


@pytest.fixture(scope="module")
def authenticator(tmp_path_factory: pytest.TempPathFactory) -> Authenticator:
    home = tmp_path_factory.mktemp("login")
    (home / "key").write_bytes(SECRET)
    (home / "users").write_text(User("ada", hashed(PASSWORD)).line())
    return Authenticator(
        Methods(
            LoginSettings(
                login_keys="key",
                login_subject_claim="id.name",
                login_cookie="login",
                login_header="X-User",
                login_certificate=True,
                login_anonymous=True,
            ),
            keys=KeyFile(home / "key"),
            users=WatchedFile(home / "users", read_users),
        )
    )


def of(name: str, key: bytes = SECRET) -> str:
    return token(key, id={"name": name})


def asking(**authentication: Any) -> dict[str, Any]:
    return {"ext": {"authentication": authentication}}


def sending(**headers: str) -> Caller:
    return Caller(
        headers={name.replace("_", "-"): text for name, text in headers.items()}, is_proxied=True
    )


BASIC = f"Basic {b64encode(f'ada:{PASSWORD}'.encode()).decode()}"
CERTIFIED = Caller(tls_subject=(("commonName", "ada"),))
PROVED = {
    "a token": (asking(token=of("ada")), UNKNOWN),
    "a token of a user with a certificate": (asking(token=of("ada")), CERTIFIED),
    "a header": ({}, sending(Authorization=f"Bearer {of('ada')}")),
    "a cookie": ({}, sending(Cookie=f"login={of('ada')}")),
    "a cookie after another's": (
        {},
        sending(Cookie=f"login={of('eve', OTHER_KEY)}; login={of('ada')}"),
    ),
    "a password": (asking(user="ada", password=PASSWORD), UNKNOWN),
    "a password in a header": ({}, sending(Authorization=BASIC)),
    "a proxy": ({}, sending(X_User="ada")),
    "a certificate": ({}, CERTIFIED),
}
UNPROVED = {
    "nothing": ({}, UNKNOWN, None),
    "a wrong token": (asking(token=of("eve", OTHER_KEY)), UNKNOWN, "eve"),
    "no token": (asking(token=7), UNKNOWN, None),
    "a token of nobody": (asking(token=token(OTHER_KEY)), UNKNOWN, None),
    "a wrong password": (asking(user="eve", password="x"), UNKNOWN, "eve"),
    "no credentials": ({"ext": {"authentication": 7}}, UNKNOWN, None),
    "cookies of strangers": (
        {},
        sending(Cookie=f"login={of('eve', OTHER_KEY)}; login={of('joe', OTHER_KEY)}"),
        "eve",
    ),
    "two users of a proxy": (
        {},
        Caller(headers={"X-User": "ada", "x-user": "eve"}, is_proxied=True),
        None,
    ),
}


@pytest.mark.parametrize(("handshake", "caller"), PROVED.values(), ids=PROVED)
def test_the_subject_is_read_before_it_is_proved(
    authenticator: Authenticator, handshake: Any, caller: Caller
) -> None:
    proved = asyncio.run(authenticator.authenticate(handshake, caller, lambda: True))
    assert authenticator.named_by(handshake, caller) == proved.subject == "ada"


@pytest.mark.parametrize(("handshake", "caller", "named"), UNPROVED.values(), ids=UNPROVED)
def test_credentials_that_prove_nothing_may_name_a_subject(
    authenticator: Authenticator, handshake: Any, caller: Caller, named: str | None
) -> None:
    assert authenticator.named_by(handshake, caller) == named
    if named is not None:
        with pytest.raises(LoginFailed):
            asyncio.run(authenticator.authenticate(handshake, caller, lambda: True))
