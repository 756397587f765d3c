"""The extensions of the server."""

from typing import ClassVar

from pydantic import Field, field_validator

from holdfast.settings.section import Milliseconds, Section


class ExtensionSettings(Section):
    heading: ClassVar[str] = "Extensions"

    extension: list[str] = Field(default=[], description="Extension to install, as MODULE:FACTORY.")
    ack: bool = Field(default=True, description="Offer acknowledged messages.")
    request: bool = Field(default=True, description="Offer requests with [replies](requests.md).")
    timesync: bool = Field(default=True, description="Offer clock synchronisation.")
    chat: bool = Field(default=True, description="Offer the chat demo at /chat/.")
    docs_url: str = Field(
        default="/docs/",
        pattern=r"^(|/docs/|https?://.*/)$",
        description="Where the documentation is, for links in pages, replies and logs. `/docs/` "
        "serves it here, if it was built into this installation; another URL, which ends in a "
        "slash, is only linked to; empty for no links.",
    )
    timestamp: bool = Field(default=False, description="Add a timestamp to every message sent.")
    max_inactivity: Milliseconds = Field(
        default=0,
        description="Time after which a session that sends only connects ends; 0 is never.",
    )

    @field_validator("extension")
    @classmethod
    def _check_extensions(cls, extensions: list[str]) -> list[str]:
        for extension in extensions:
            module, _, factory = extension.partition(":")
            if not module or not factory.isidentifier():
                raise ValueError(f"{extension!r} must be like package.module:factory")
        return extensions
