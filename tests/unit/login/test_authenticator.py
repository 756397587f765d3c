"""Whether each request still proves the login of its session."""

import pytest

from holdfast.bayeux.wire.caller import UNKNOWN, Caller
from holdfast.bayeux.wire.login import Login, LoginMethod
from holdfast.login.authenticator import Authenticator, Methods
from holdfast.settings.login import LoginSettings

SETTINGS = LoginSettings(
    login_header="X-User", login_groups_header="X-Groups", login_certificate=True
)
BY_CERTIFICATE = Login("ada", LoginMethod.CERTIFICATE, frozenset({"staff"}))
BY_HEADER = Login("ada", LoginMethod.HEADER, frozenset({"staff"}))
BY_TOKEN = Login("ada", LoginMethod.TOKEN)


def shows(name: str, *units: str) -> Caller:
    """A client with this certificate."""
    groups = [("organizationalUnitName", unit) for unit in units]
    return Caller(tls_subject=(("commonName", name), *groups))


def named(name: str, groups: str, *, is_proxied: bool = True) -> Caller:
    """A client that a proxy names."""
    return Caller(headers={"X-User": name, "X-Groups": groups}, is_proxied=is_proxied)


@pytest.mark.parametrize(
    ("login", "caller", "is_proved"),
    [
        (BY_CERTIFICATE, shows("ada", "staff"), True),
        (BY_CERTIFICATE, shows("ada"), False),
        (BY_CERTIFICATE, shows("eve", "staff"), False),
        (BY_CERTIFICATE, shows("-"), False),
        (BY_CERTIFICATE, UNKNOWN, False),
        (BY_CERTIFICATE, named("ada", "staff"), False),
        (BY_HEADER, named("ada", "staff"), True),
        (BY_HEADER, named("ada", ""), False),
        (BY_HEADER, named("ada", "staff", is_proxied=False), False),
        (BY_HEADER, shows("ada", "staff"), False),
        (BY_TOKEN, UNKNOWN, True),
        (BY_TOKEN, shows("eve"), True),
    ],
)
def test_a_session_is_open_to_requests_that_still_prove_its_login(
    login: Login, caller: Caller, is_proved: bool
) -> None:
    assert Authenticator(Methods(SETTINGS)).still_names(login, caller) is is_proved


def test_a_method_that_is_not_configured_proves_nothing() -> None:
    authenticator = Authenticator(Methods(LoginSettings()))
    assert not authenticator.still_names(BY_CERTIFICATE, shows("ada", "staff"))
    assert not authenticator.still_names(BY_HEADER, named("ada", "staff"))
