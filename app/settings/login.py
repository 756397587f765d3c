"""Settings of logins, rights, and the backend that decides about clients."""

from pathlib import Path
from typing import Annotated, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from holdfast.settings.section import (
    Milliseconds,
    Section,
    SignedPostSettings,
    TimeLimit,
    Token,
)

# Headers that the server sets in its requests, or that concern one connection only.
_OWN_HEADERS = frozenset(
    [
        *("accept", "accept-encoding", "connection", "content-encoding", "content-length"),
        *("content-type", "cookie", "expect", "host", "keep-alive", "te", "trailer"),
        *("transfer-encoding", "upgrade", "user-agent"),
        *("webhook-id", "webhook-timestamp", "webhook-signature"),
    ]
)
_MOST_NAMES = 20
# A session waits no longer for an answer.
_LONGEST_TIMEOUT_MS = 2_000
# Settings without effect where no client logs in with a token.
_OF_TOKENS = (
    *("login_audience", "login_leeway", "login_subject_claim", "login_groups_claim"),
    *("login_rights_claim", "login_key_host", "login_cookie"),
    # What the backend says expires, too.
    "login_warning",
)


def _check_url(name: str, url: str) -> None:
    """Keys that come over a network must come over TLS, unless from this machine."""
    parts = urlsplit(url)
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and is_here)):
        raise ValueError(f"{name} must be an https URL")


class BackendSettings(SignedPostSettings):
    """Where the application is asked, and what of a client's request it gets to see."""

    cookies: Annotated[list[Token], Field(max_length=_MOST_NAMES)] = Field(
        default=[], description="Names of the client's cookies that are passed on; no others are."
    )
    headers: Annotated[list[Token], Field(max_length=_MOST_NAMES)] = Field(
        default=[],
        description="Names of the client's headers that are passed on, such as `Authorization`.",
    )
    timeout: Annotated[TimeLimit, Field(le=_LONGEST_TIMEOUT_MS)] = Field(
        default=_LONGEST_TIMEOUT_MS, description="How long an answer may take, at most 2 s."
    )

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: list[str]) -> list[str]:
        for name in headers:
            if name.lower() == "cookie":
                raise ValueError("name the cookies themselves, in cookies")
            if name.lower() in _OWN_HEADERS:
                raise ValueError(f"{name} is the server's own in its requests to the backend")
        return headers


class LoginSettings(Section):
    heading: ClassVar[str] = "Login and rights"

    login_keys: str | None = Field(
        default=None,
        description="Keys that verify tokens (JWT): a file with a JWK Set, public keys in PEM or "
        "a secret, or the https URL of a JWK Set.",
    )
    login_issuer: str | None = Field(
        default=None,
        description="The iss that tokens must have. Without login_keys, the URL of an OpenID "
        "provider, which is asked for its keys.",
    )
    login_audience: list[str] = Field(
        default=[],
        description="Accepted audience (aud): a token must have one of them. By default any is "
        "accepted.",
    )
    login_leeway: Milliseconds = Field(
        default=30_000,
        description="Maximum difference between the clocks of the issuer and this server.",
    )
    login_subject_claim: str = Field(
        default="sub",
        min_length=1,
        description="Claim with the subject, as a.b within another claim.",
    )
    login_groups_claim: str = Field(
        default="groups",
        min_length=1,
        description="Claim with the groups, as a.b within another claim.",
    )
    login_rights_claim: str | None = Field(
        default=None,
        min_length=1,
        description="Claim with rights of the token's own, as a.b within another claim.",
    )
    login_key_host: list[str] = Field(
        default=[],
        description="Host, besides the issuer's own, from which the provider's keys may come.",
    )
    login_cookie: Token | None = Field(default=None, description="Cookie that may contain a token.")
    login_passwords: Path | None = Field(
        default=None, description="File of users and passwords, made by holdfast user."
    )
    login_header: Token | None = Field(
        default=None, description="Header in which trusted proxies name the subject."
    )
    login_groups_header: Token | None = Field(
        default=None,
        description="Header in which trusted proxies list the groups, separated by commas.",
    )
    login_certificate: bool = Field(
        default=False,
        description="Take the subject from the common name of a verified client certificate, and "
        "the groups from its organizational units.",
    )
    backend: BackendSettings | None = Field(
        default=None,
        description="The [application that decides](../how-to/backend.md) who a client is and "
        "what it may "
        "do.",
    )
    login_anonymous: bool = Field(
        default=False, description="Let clients without credentials in, as anonymous."
    )
    login_warning: Milliseconds = Field(
        default=60_000, description="Time before the end of a login at which the client is warned."
    )
    rights: Path | None = Field(
        default=None,
        description="File that says who may do what. By default every client may do everything.",
    )

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if self.login_groups_header is not None and self.login_header is None:
            raise ValueError("login_groups_header needs login_header")
        if self.login_issuer is not None and self.login_keys is None:
            _check_url("login_issuer", self.login_issuer)
        if self.login_keys is not None and "://" in self.login_keys:
            _check_url("login_keys", self.login_keys)
        if not self.takes_tokens:
            for name in _OF_TOKENS[: None if self.backend is None else -1]:
                if getattr(self, name) != type(self).model_fields[name].get_default():
                    raise ValueError(
                        f"{name} needs login_keys or login_issuer: without these, there are no "
                        "tokens"
                    )
        for name in ("login_anonymous", "rights"):
            if getattr(self, name) and not self.requires_login:
                raise ValueError(
                    f"{name} needs a way to log in: login_keys, login_issuer, login_passwords, "
                    "login_header, login_certificate or backend"
                )
        return self

    @property
    def takes_tokens(self) -> bool:
        """Whether clients may log in with tokens."""
        return self.login_keys is not None or self.login_issuer is not None

    @property
    def requires_login(self) -> bool:
        """Whether there is a way to log in, so that clients have to."""
        return (
            self.takes_tokens
            or self.login_passwords is not None
            or self.login_header is not None
            or self.login_certificate
            or self.backend is not None
        )
