"""The bases of all sections of the settings, and of the tables that name a URL to post to."""

import re
from binascii import a2b_base64
from typing import Annotated, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from holdfast.units import Unit

Milliseconds = Annotated[int, Field(ge=0), Unit.MS]
Limit = Annotated[int, Field(ge=1)]
TimeLimit = Annotated[Limit, Unit.MS]
SizeLimit = Annotated[Limit, Unit.BYTES]
# A token of HTTP, such as the name of a cookie or sub-protocol.
Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]


_PREFIX = "whsec_"
# A name or an address, as the network has it.
_HOST = re.compile(r"[A-Za-z0-9._:%-]+")
# How long a key of Standard Webhooks may be, in bytes.
_KEY_LENGTHS = range(24, 65)


class Section(BaseModel):
    """Settings that belong together, under one heading."""

    # Only all sections together are ever checked. Type checkers see a default only by its name.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    heading: ClassVar[str]


class SignedPostSettings(BaseModel):
    """Where to post, and the keys of the signatures."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(
        description="Where to post. It begins with `https`, or with `allow_private` also with "
        "`http`."
    )
    secret: SecretStr = Field(
        description="The key of the signatures: `whsec_` and the base64 of 24 to 64 bytes."
    )
    former_secret: SecretStr | None = Field(
        default=None,
        description="A second key that also signs, while receivers change to the new one.",
    )
    allow_private: bool = Field(
        default=False,
        description="Allow addresses that are not public, and `http`: for an application on the "
        "same machine or network.",
    )

    @property
    def keys(self) -> list[bytes]:
        """The keys that sign: the present one and, while receivers change, the former one."""
        secrets = (self.secret, self.former_secret)
        return [_key(each.get_secret_value()) for each in secrets if each is not None]

    @property
    def origin(self) -> str:
        """The scheme and host of the URL, whose path may be secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @field_validator("secret", "former_secret")
    @classmethod
    def _check_secret(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            _key(secret.get_secret_value())
        return secret

    @model_validator(mode="after")
    def _check_url(self) -> Self:
        try:
            parts = urlsplit(self.url)
            host = (parts.hostname or "").encode("idna").decode()
            is_complete = _HOST.fullmatch(host) is not None and parts.port != 0
        except ValueError as error:
            raise ValueError(f"url: {error}") from None
        if parts.scheme not in ("http", "https") or not is_complete:
            raise ValueError("url must be like https://example.org/hook")
        if parts.username is not None or parts.fragment:
            raise ValueError("url must have neither credentials nor a fragment")
        if parts.scheme == "http" and not self.allow_private:
            raise ValueError("url must begin with https: http is only for allow_private")
        return self


def _key(secret: str) -> bytes:
    """Return the key in a secret. Raises `ValueError`, without the secret."""
    try:
        key = a2b_base64(secret.removeprefix(_PREFIX), strict_mode=True)
    except ValueError:
        key = b""
    if not secret.startswith(_PREFIX) or len(key) not in _KEY_LENGTHS:
        raise ValueError(
            f"a secret is {_PREFIX} and the base64 of 24 to 64 bytes: make one with "
            f"echo {_PREFIX}$(openssl rand -base64 32)"
        )
    return key
