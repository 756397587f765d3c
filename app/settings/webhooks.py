"""The settings of webhooks."""

import re
from binascii import a2b_base64
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from holdfast.delivery.basics.channels import Channels, Kind
from holdfast.delivery.queues.receivers import WEBHOOK_NAME
from holdfast.settings.section import Milliseconds, Section, TimeLimit

_PREFIX = "whsec_"
# A name or an address, as the network has it.
_HOST = re.compile(r"[A-Za-z0-9._:%-]+")
# How long a key of Standard Webhooks may be, in bytes.
_KEY_LENGTHS = range(24, 65)
_MOST_DELAYS = 20
_LONGEST_TIMEOUT_MS = 60_000
# A queue pauses no longer.
_LONGEST_DELAY_MS = 24 * 3_600_000

EventName = Literal["letters", "holdbacks", "presence", "session_ends", "alerts"]


class WebhookSettings(BaseModel):
    """One webhook: where messages are posted, and which ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    secret: SecretStr
    former_secret: SecretStr | None = None
    channels: list[str] = []
    events: list[EventName] = []
    delays: Annotated[
        list[Annotated[Milliseconds, Field(le=_LONGEST_DELAY_MS)]], Field(max_length=_MOST_DELAYS)
    ] = [
        5_000,
        30_000,
        120_000,
        600_000,
    ]
    timeout: Annotated[TimeLimit, Field(le=_LONGEST_TIMEOUT_MS)] = 15_000
    in_flight: Annotated[int, Field(ge=1, le=16)] = 1
    allow_private: bool = False

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

    @field_validator("channels")
    @classmethod
    def _check_channels(cls, channels: list[str]) -> list[str]:
        known = Channels()
        for pattern in channels:
            channel = known.get(pattern)
            if channel is None or channel.kind is not Kind.BROADCAST:
                raise ValueError(f"{pattern!r} is neither a channel nor a pattern of channels")
        return channels

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
        if not self.channels and not self.events:
            raise ValueError("channels or events must say what is posted")
        return self


class WebhooksSettings(Section):
    heading: ClassVar[str] = "Webhooks"

    webhooks: dict[str, WebhookSettings] = Field(
        default={}, description="[Webhooks](webhooks.md), by name."
    )

    @field_validator("webhooks")
    @classmethod
    def _check_webhooks(cls, webhooks: dict[str, WebhookSettings]) -> dict[str, WebhookSettings]:
        for name in webhooks:
            if not WEBHOOK_NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r}: a name is a small letter and up to 30 small letters, digits or -"
                )
        return webhooks


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
