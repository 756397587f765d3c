"""Settings of the store: where the data are, and what they survive."""

from pathlib import Path
from typing import ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from holdfast.settings.section import Milliseconds, Section, SizeLimit

# A server, a cluster, or Sentinels.
_KINDS = ("", "+cluster", "+sentinel")
_SCHEMES = {"unix", *(f"{each}{kind}" for each in ("redis", "rediss") for kind in _KINDS)}


class StoreSettings(Section):
    heading: ClassVar[str] = "Store and journal"

    data: Path = Field(default=Path("data"), description="Data directory, for this server only.")
    redis: str | None = Field(
        default=None,
        description="URL of a Redis or Valkey: redis://HOST:PORT/DB, redis+cluster://HOST:PORT, or "
        "redis+sentinel://HOST:PORT/SERVICE/DB. By default the server runs its own Valkey in the "
        "data directory.",
    )
    standby: bool = Field(
        default=False,
        description="Wait as long as another server has the store, and take over when it ends.",
    )
    namespace: str = Field(
        default="holdfast",
        pattern=r"^[a-z0-9-]{1,32}$",
        description="Name of this deployment in Redis, the prefix of all its keys.",
    )
    node: str = Field(
        default="holdfast",
        pattern=r"^[a-z0-9-]{1,32}$",
        description="Name of this server: in the journal, and in the attempts of dead letters.",
    )
    deployment: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9]{1,16}$",
        description="Name of the deployment, with which message ids begin. The store keeps it: it "
        "cannot change. By default a new store gets a random one.",
    )
    durable: Literal["none", "named", "acked"] = Field(
        default="named",
        description="Sessions that survive a restart of the server: none, named ones, or also "
        "those with acknowledgements.",
    )
    durability: str = Field(
        default="everysec",
        pattern=r"^(?:memory|everysec|always|replicas:[1-9])$",
        description="When a write counts as safe: memory, everysec, always, replicas:N.",
    )
    journal: bool = Field(
        default=True, description="Record the life of every message in the journal."
    )
    journal_age: Milliseconds = Field(
        default=7 * 24 * 3600 * 1000,
        description="Time after which journal frames are removed, read or not.",
    )
    journal_size: SizeLimit = Field(
        default=512 * 1024**2,
        description="Maximum size of the journal in the store; beyond it the oldest frames are "
        "removed.",
    )

    @field_validator("redis")
    @classmethod
    def _check_redis(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            # Those with a plus may have many hosts.
            is_one = "+" not in parts.scheme
            if parts.scheme not in _SCHEMES or (is_one and parts.port == 0):
                raise ValueError(
                    "must be like redis://host:6379/0, redis+sentinel://host:26379/service/0, or "
                    "redis+cluster://host:6379"
                )
        return url

    @model_validator(mode="after")
    def _check_durability(self) -> Self:
        if self.durability.startswith("replicas:") and self.redis is None:
            raise ValueError(
                f"durability {self.durability} needs redis: a server's own store has no replicas"
            )
        return self
