"""Credentials as they come in: whatever is unreadable is a failed login, not an error."""

import pytest

from holdfast.bayeux.wire.caller import Caller
from holdfast.login.credentials import password_of, token_of, tokens_of
from holdfast.login.failures import Cause, LoginFailed
from holdfast.login.tokens import key_id_of

ODD = ["ä", "YWRhé", "YWRh\udcff", "====", "YQ", "/w==", "YWRh", "", "\x00", "💥"]


@pytest.mark.parametrize("value", ODD)
def test_unreadable_basic_credentials_are_malformed(value: str) -> None:
    with pytest.raises(LoginFailed) as failed:
        password_of({}, Caller(headers={"Authorization": f"Basic {value}"}))
    assert failed.value.cause is Cause.MALFORMED


@pytest.mark.parametrize("value", ODD)
def test_unreadable_bearer_tokens_are_malformed_and_such_cookies_are_ignored(value: str) -> None:
    caller = Caller(headers={"Authorization": f"Bearer {value}", "Cookie": f"login={value}"})

    [found] = tokens_of({}, caller, "login")
    with pytest.raises(LoginFailed) as failed:
        key_id_of(found)
    assert failed.value.cause is Cause.MALFORMED
    assert tokens_of({}, Caller(headers={"Cookie": f"login={value}"}), "login") == []


@pytest.mark.parametrize("value", [True, 7, 1.5, "x", [], [[]]])
def test_an_authentication_field_of_the_wrong_json_type_is_a_failed_login(value: object) -> None:
    message = {"ext": {"authentication": value}}
    with pytest.raises(LoginFailed):
        tokens_of(message, Caller(), "")
    with pytest.raises(LoginFailed):
        password_of(message, Caller())


@pytest.mark.parametrize("value", [None, {}, {"token": None}])
def test_an_authentication_field_without_credentials_has_neither_token_nor_password(
    value: object,
) -> None:
    message = {"ext": {"authentication": value}}

    with pytest.raises(LoginFailed):
        token_of(message)
    assert password_of(message, Caller()) is None


@pytest.mark.parametrize("value", [None, True, 7, [], {}])
def test_a_user_or_a_password_of_the_wrong_json_type_is_a_failed_login(value: object) -> None:
    for asked in ({"user": value, "password": "x"}, {"user": "ada", "password": value}):
        with pytest.raises(LoginFailed):
            password_of({"ext": {"authentication": asked}}, Caller())
