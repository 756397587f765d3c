"""The cookie that identifies a browser."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from holdfast.settings.section import Section, Token
from holdfast.units import Unit


class CookieSettings(Section):
    heading: ClassVar[str] = "Browser cookie"

    browser_cookie_name: Token | None = Field(
        default=None,
        description="Name of the browser cookie. By default BAYEUX_BROWSER, with the prefix "
        "__Host- if the cookie is secure and has neither a domain nor a path.",
    )
    browser_cookie_domain: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9.-]+$", description="Domain of the browser cookie."
    )
    browser_cookie_path: str = Field(
        default="/", pattern=r"^/[!-:<-~]*$", description="Path of the browser cookie."
    )
    browser_cookie_max_age: Annotated[int | None, Unit.SECONDS] = Field(
        default=None, description="Max-Age of the browser cookie, in seconds."
    )
    browser_cookie_secure: bool | None = Field(
        default=None,
        description="Send the browser cookie over TLS only. By default on if the server has a "
        "certificate; switch it on if a proxy terminates TLS.",
    )
    browser_cookie_http_only: bool = Field(
        default=True, description="Hide the browser cookie from scripts."
    )
    browser_cookie_same_site: Literal["Strict", "Lax", "None"] | None = Field(
        default=None, description="SameSite attribute of the browser cookie."
    )
    browser_cookie_partitioned: bool = Field(
        default=False,
        description="Use a separate browser cookie for each embedding site (Partitioned).",
    )

    @property
    def is_cookie_of_host(self) -> bool:
        """Whether the cookie is for this host only, and for all its paths."""
        return self.browser_cookie_domain is None and self.browser_cookie_path == "/"
