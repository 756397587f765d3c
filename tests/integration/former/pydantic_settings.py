"""As much of `pydantic_settings` as release 0.3.0 needs to get its settings from a program."""

from pydantic import BaseModel, ConfigDict
from pydantic.config import ExtraValues


class BaseSettings(BaseModel):
    """Settings that come from their caller only."""


def SettingsConfigDict(*, env_prefix: str, extra: ExtraValues, frozen: bool) -> ConfigDict:
    """Return the options without those of variables."""
    return ConfigDict(extra=extra, frozen=frozen)


class EnvSettingsSource: ...


class PydanticBaseSettingsSource: ...


class TomlConfigSettingsSource: ...
