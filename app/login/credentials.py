"""The credentials that a handshake brings: in the message, its HTTP request, or its connection."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.bayeux.wire.caller import Caller, credentials_in
from holdfast.bayeux.wire.codec import Json, ext_of
from holdfast.login.failures import Cause, LoginFailed
from holdfast.login.tokens import looks_like_token


@dataclass(frozen=True, slots=True)
class PasswordCredentials:
    """A subject with its password."""

    subject: str
    password: str = field(repr=False)


def tokens_of(message: Json, caller: Caller, cookie: str | None) -> list[str]:
    """Return the tokens to try: the message's, else the header's, else the cookies'.

    Raises `LoginFailed` if the message's is unreadable.
    """
    if "token" in _authentication(message):
        return [token_of(message)]
    token = credentials_in(caller.headers.get("Authorization", ""), "bearer")
    if token is not None:
        return [token]
    # Other hosts of the domain can set a cookie of this name before the right one.
    return [each for each in caller.cookies(cookie) if looks_like_token(each)] if cookie else []


def shows_none(message: Json, caller: Caller) -> bool:
    """Return whether a client shows nothing that any login could take."""
    return "authentication" not in ext_of(message) and "Authorization" not in caller.headers


def shown_by(caller: Caller, cookie: str | None) -> str:
    """Return the credentials that a request shows besides its messages; empty if none."""
    tokens = caller.cookies(cookie) if cookie else []
    return "\n".join(filter(None, (caller.headers.get("Authorization", ""), *tokens)))


def password_of(message: Json, caller: Caller) -> PasswordCredentials | None:
    """Return the user and password, if there are any. Raises `LoginFailed`."""
    asked = _authentication(message)
    if "password" in asked:
        subject, password = asked.get("user"), asked["password"]
        if not isinstance(subject, str) or not isinstance(password, str):
            raise LoginFailed(Cause.MALFORMED)
        return PasswordCredentials(subject, password)
    credentials = credentials_in(caller.headers.get("Authorization", ""), "basic")
    return None if credentials is None else _basic(credentials)


def _basic(credentials: str) -> PasswordCredentials:
    try:
        text = base64.b64decode(credentials, validate=True).decode()
    except ValueError:
        # Not base64, not ASCII, or not UTF-8 inside.
        raise LoginFailed(Cause.MALFORMED) from None
    subject, colon, password = text.partition(":")
    if not colon:
        raise LoginFailed(Cause.MALFORMED)
    return PasswordCredentials(subject, password)


def token_of(message: Json) -> str:
    """Return the token in the message itself. Raises `LoginFailed` if there is none."""
    token = _authentication(message).get("token")
    if not isinstance(token, str):
        raise LoginFailed(Cause.MALFORMED)
    return token


def _authentication(message: Json) -> Mapping[str, object]:
    """Return the field. Raises `LoginFailed`: a wrong one must not mean "anonymous".

    A door reads messages that nothing has checked; one with an `ext` of another form is refused.
    """
    asked = ext_of(message).get("authentication")
    if asked is None:
        return {}
    if not isinstance(asked, Mapping):
        raise LoginFailed(Cause.MALFORMED)
    return asked
