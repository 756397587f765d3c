"""The settings: flags first, then `HOLDFAST_*` variables, then `holdfast.toml`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from holdfast.settings.channels import ChannelSettings
from holdfast.settings.cookie import CookieSettings
from holdfast.settings.delivery import DeliverySettings
from holdfast.settings.environment import OF_THE_COMMAND_LINE, given_by_environment
from holdfast.settings.extensions import ExtensionSettings
from holdfast.settings.hosts import HostsSettings, LinkSettings
from holdfast.settings.limits import LimitSettings, QuotaSettings
from holdfast.settings.login import BackendSettings, LoginSettings
from holdfast.settings.protocol import BayeuxSettings, TransportSettings
from holdfast.settings.section import Section
from holdfast.settings.server import ServerSettings
from holdfast.settings.store import StoreSettings
from holdfast.settings.webhooks import WebhookSettings, WebhooksSettings

__all__ = [
    "OFTEN_SET",
    "OF_THE_COMMAND_LINE",
    "SECTIONS",
    "SET_OFTEN",
    "BackendSettings",
    "ChannelSettings",
    "Settings",
    "WebhookSettings",
    "read",
]

# The chat is off if channel names may not be this long.
_CHAT_LENGTH = len("/service/chat/private")
_CHAT_SEGMENTS = "/sys/presence/chat/room/NAME".count("/")
_YEAR_S = 365 * 24 * 3600


class Settings(
    # Pydantic takes the fields of the last one first.
    QuotaSettings,
    LimitSettings,
    TransportSettings,
    CookieSettings,
    LoginSettings,
    WebhooksSettings,
    ExtensionSettings,
    DeliverySettings,
    BayeuxSettings,
    StoreSettings,
    LinkSettings,
    HostsSettings,
    ServerSettings,
):
    """Every setting, with CometD's names and defaults where it has one; times in milliseconds."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Check what settings of one section require of another."""
        if self.login_header is not None and not self.trusted_proxies:
            raise ValueError("login_header needs trusted_proxies: others could send any header")
        if self.login_certificate and self.tls_client_ca is None:
            raise ValueError("login_certificate needs tls_client_ca, which verifies certificates")
        if self.webhooks and not self.delivery:
            raise ValueError("webhooks need delivery: they give verdicts")
        self._check_cookie()
        self._check_shards()
        if self.chat and (
            self.max_channel_length < _CHAT_LENGTH or self.max_channel_segments < _CHAT_SEGMENTS
        ):
            raise ValueError(
                f"the chat's channels have {_CHAT_LENGTH} characters and {_CHAT_SEGMENTS} "
                "segments: allow them, or switch chat off"
            )
        return self

    def _check_shards(self) -> None:
        """Refuse another number of shards than this machine, or all of them, can have."""
        if not self.hosts:
            if self.shards is not None and self.workers not in ("auto", self.shards):
                raise ValueError(
                    f"shards must be as many as workers: set both to {self.shards}, or both to "
                    f"{self.workers}"
                )
        elif self.redis is None:
            raise ValueError("hosts needs redis: all machines use the same store")
        elif self.shards is None or self.shards < len(self.hosts):
            raise ValueError(
                "hosts needs shards: how many all machines have together, one for each at least"
            )
        elif None in (self.link_cert, self.link_key, self.link_ca):
            raise ValueError("hosts needs link_cert, link_key and link_ca: links use TLS")
        elif self.workers != 1:
            raise ValueError("hosts excludes workers: each machine has its part of the shards")
        elif self.standby:
            raise ValueError("hosts excludes standby: each machine takes over for the others")
        elif not self.supervisor:
            raise ValueError("hosts needs the supervisor, which starts a process for each shard")

    def _check_cookie(self) -> None:
        """Refuse attributes that the cookie's prefix forbids: browsers would drop it silently."""
        name = (self.browser_cookie_name or "").lower()
        if name.startswith(("__host-", "__secure-")) and not self.is_cookie_secure:
            raise ValueError(
                f"a browser_cookie_name like {self.browser_cookie_name} needs tls_cert or "
                "browser_cookie_secure"
            )
        if name.startswith("__host-") and not self.is_cookie_of_host:
            raise ValueError(
                f"a browser_cookie_name like {self.browser_cookie_name} excludes "
                "browser_cookie_domain and browser_cookie_path"
            )

    @property
    def is_cookie_secure(self) -> bool:
        """Whether browsers send the cookie only over TLS."""
        if self.browser_cookie_secure is None:
            return self.tls_cert is not None
        return self.browser_cookie_secure

    @property
    def hsts_s(self) -> int | None:
        """Seconds for which browsers must use TLS; None if responses have no HSTS header."""
        if self.hsts is None and (self.tls_cert is not None or self.is_cookie_secure):
            return _YEAR_S
        return self.hsts


# What people set most often: lists of all settings begin with these.
OFTEN_SET = (
    *("host", "port", "open", "host_name", "allow_origin", "trusted_proxies"),
    *("tls_cert", "tls_key", "admin", "data", "redis", "channels"),
    *("login_passwords", "login_keys", "rights"),
)
SET_OFTEN = "Set most often"
SECTIONS = [base for base in reversed(Settings.__bases__) if issubclass(base, Section)]


def read(file: Path | None, given: Mapping[str, Any]) -> Settings:
    """Read the settings: flags override variables, variables override the file."""
    found = {} if file is None else _in_file(file)
    for source in (given_by_environment(Settings.model_fields), given):
        found = _overridden(found, source)
    return Settings(**found)


def _in_file(file: Path) -> dict[str, Any]:
    # Many servers have none.
    import tomllib

    try:
        return tomllib.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _overridden(found: Mapping[str, Any], by: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, overridden by the other source, key by key where they are tables."""
    tables = {
        name: _overridden(found[name], value)
        for name, value in by.items()
        if isinstance(value, dict) and isinstance(found.get(name), dict)
    }
    return {**found, **by, **tables}
