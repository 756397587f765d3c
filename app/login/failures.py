"""Failed logins: operators learn the cause, clients do not."""

from enum import Enum


class Cause(Enum):
    """Why a login failed, for the log and the counters."""

    MISSING = "no credentials"
    MALFORMED = "malformed credentials"
    ALGORITHM = "an algorithm that no key allows"
    UNKNOWN_KEY = "an unknown key"
    NO_KEYS = "no keys to verify with"
    SIGNATURE = "a wrong signature"
    UNTRIMMED = "a wrong signature, made with the newline or space around the secret in its file"
    EXPIRED = "an expired token"
    TOO_EARLY = "a token that is not valid yet"
    AUDIENCE = "a token for another audience"
    ISSUER = "a token from another issuer"
    SUBJECT = "no usable subject"
    RIGHTS = "unusable rights in its claim"
    REVOKED = "revoked credentials"
    PASSWORD = "a wrong user name or password"  # noqa: S105 - a text
    TOO_MANY = "too many wrong passwords before"
    BACKEND = "refused by the backend"
    CONTRADICTION = "another subject than the session's"


class LoginFailed(Exception):
    """The credentials do not prove a login."""

    def __init__(self, cause: Cause, more: str = "") -> None:
        super().__init__(f"{cause.value}: {more}" if more else cause.value)
        self.cause = cause


class SaysNo(Exception):
    """The backend refuses. The text is for the client, and may be empty."""


class NoAnswer(Exception):
    """The backend has not answered, or what it said means nothing.

    Args:
        wait_s: When the client may try again.
    """

    def __init__(self, wait_s: float) -> None:
        super().__init__()
        self.wait_s = wait_s


class Unusable(Exception):
    """A file or URL with keys, passwords or rights is unusable; the text says why."""
