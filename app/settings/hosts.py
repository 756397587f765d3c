"""Settings of a deployment that runs on several machines."""

from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, field_validator, model_validator

from holdfast.settings.section import Section


class HostsSettings(Section):
    heading: ClassVar[str] = "Many machines"

    hosts: list[str] = Field(
        default=[],
        description="Every machine of the deployment as NAME:PORT, the same list on all of them. "
        "Others connect to this port, and NAME is in its certificate.",
    )
    own_host: str | None = Field(
        default=None, description="Name of this machine in hosts, without the port."
    )

    capacity: int | None = Field(
        default=None,
        ge=1,
        description="Most shards of this machine while others can have them. By default each "
        "machine has its part.",
    )

    @field_validator("hosts")
    @classmethod
    def _check_list(cls, hosts: list[str]) -> list[str]:
        if not hosts:
            return []
        # Most servers have no list.
        from holdfast.settings.host_list import HostList

        return [str(each) for each in HostList.parse(hosts).hosts]

    @field_validator("own_host")
    @classmethod
    def _check_name(cls, name: str | None) -> str | None:
        if name is None:
            return None
        from holdfast.settings.host_list import name_of

        return name_of(name)

    @model_validator(mode="after")
    def _check_own_host(self) -> Self:
        if self.hosts and self.own_host is None:
            raise ValueError("hosts needs own_host: the name of this machine in the list")
        if self.own_host is not None and not self.hosts:
            raise ValueError("own_host needs hosts: the list of all machines")
        if self.own_host is not None:
            from holdfast.settings.host_list import HostList

            HostList.parse(self.hosts).own(self.own_host)
        return self


class LinkSettings(Section):
    heading: ClassVar[str] = "Links between machines"

    link_cert: Path | None = Field(
        default=None,
        description="Certificate chain of this machine, for a server and a client, with its name "
        "in hosts as an alternative name. Each new link uses the file as it is then.",
    )
    link_key: Path | None = Field(default=None, description="Private key of the certificate.")
    link_ca: Path | None = Field(
        default=None,
        description="Certificate authorities that have signed the certificates of all machines, "
        "and no others.",
    )

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        if len({each is None for each in (self.link_cert, self.link_key, self.link_ca)}) > 1:
            raise ValueError("link_cert, link_key and link_ca need each other: set all, or none")
        return self
