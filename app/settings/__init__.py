"""The settings: flags first, then `HOLDFAST_*` variables, then `holdfast.toml`."""

import os
import re
from functools import cache
from pathlib import Path
from typing import Any, Self

from pydantic import model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from holdfast.settings.channels import ChannelSettings
from holdfast.settings.cookie import CookieSettings
from holdfast.settings.delivery import DeliverySettings
from holdfast.settings.extensions import ExtensionSettings
from holdfast.settings.limits import LimitSettings, QuotaSettings
from holdfast.settings.login import LoginSettings
from holdfast.settings.protocol import BayeuxSettings, TransportSettings
from holdfast.settings.section import Section
from holdfast.settings.server import ServerSettings
from holdfast.settings.store import StoreSettings
from holdfast.settings.suggestion import did_you_mean

__all__ = ["OF_THE_COMMAND_LINE", "SECTIONS", "ChannelSettings", "Settings", "read"]

# The chat is off if channel names may not be this long.
_CHAT_LENGTH = len("/service/chat/private")
_CHAT_SEGMENTS = "/sys/presence/chat/room/NAME".count("/")
_YEAR_S = 365 * 24 * 3600
# The form of variables that Kubernetes sets for a Service named `holdfast`.
_LINK = re.compile(r"(?:tcp|udp|sctp)://")
_LINKS = re.compile(
    r"HOLDFAST_(?:SERVICE_HOST|SERVICE_PORT(?:_.+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_.+)?)"
)
# Variables of the commands that talk to a running server.
OF_THE_COMMAND_LINE = frozenset(
    {"HOLDFAST_CLIENT_URL", "HOLDFAST_PASSWORD", "HOLDFAST_TOKEN_FILE", "HOLDFAST_URL"}
)


class _Environment(EnvSettingsSource):
    """Environment variables, except a port that Kubernetes has set to a URL."""

    def __call__(self) -> dict[str, Any]:
        found = super().__call__()
        if _LINK.match(str(found.get("port"))):
            del found["port"]
        return found


class Settings(
    # Pydantic takes the fields of the last one first.
    QuotaSettings,
    LimitSettings,
    TransportSettings,
    CookieSettings,
    LoginSettings,
    ExtensionSettings,
    DeliverySettings,
    BayeuxSettings,
    StoreSettings,
    ServerSettings,
    BaseSettings,
):
    """Every setting, with CometD's names and defaults where it has one; times in milliseconds."""

    model_config = SettingsConfigDict(env_prefix="HOLDFAST_", extra="forbid", frozen=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, _Environment(settings_cls), TomlConfigSettingsSource(settings_cls)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Check what settings of one section require of another."""
        if self.login_header is not None and not self.trusted_proxies:
            raise ValueError("login_header needs trusted_proxies: others could send any header")
        if self.login_certificate and self.tls_client_ca is None:
            raise ValueError("login_certificate needs tls_client_ca, which verifies certificates")
        self._check_cookie()
        if self.chat and (
            self.max_channel_length < _CHAT_LENGTH or self.max_channel_segments < _CHAT_SEGMENTS
        ):
            raise ValueError(
                f"the chat's channels have {_CHAT_LENGTH} characters and {_CHAT_SEGMENTS} "
                "segments: allow them, or switch chat off"
            )
        return self

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


SECTIONS = [base for base in reversed(Settings.__bases__) if issubclass(base, Section)]


def read(file: Path | None, given: dict[str, Any]) -> Settings:
    """Read the settings: flags override variables, variables override the file."""
    fields = {f"HOLDFAST_{name.upper()}" for name in Settings.model_fields}
    for name in os.environ:
        is_ours = name.upper().startswith("HOLDFAST_") and not _LINKS.fullmatch(name.upper())
        if is_ours and name.upper() not in fields | OF_THE_COMMAND_LINE:
            meant = did_you_mean(name.upper(), fields)
            raise ValueError(f"{name}: this setting does not exist{meant}")

    return _reading(file)(**given)


@cache
def _reading(file: Path | None) -> type[Settings]:
    """The settings that are also read from the file."""

    class FromFile(Settings):
        model_config = SettingsConfigDict(toml_file=file)

    return FromFile
