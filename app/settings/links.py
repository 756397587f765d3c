"""Settings of the links between machines."""

from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, model_validator

from holdfast.settings.section import Section


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
