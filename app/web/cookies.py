"""The cookie that identifies a browser."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.bayeux.wire.caller import cookie_values

# Other hosts of the same domain can set cookies of the same name, one for each path and each parent
# domain.
_MAX_IDENTITIES = 16
_IDENTITY = re.compile(r"[A-Za-z0-9._~-]{1,64}")
DEFAULT_NAME = "BAYEUX_BROWSER"
# Browsers send `Origin` with each upgrade and POST; older ones send only a `Referer` with some
# POSTs. `Sec-Fetch-Mode` does not prove a browser: Node's own `fetch` sends it.
_SIGNS_OF_BROWSERS = ("Origin", "Referer", "Sec-Fetch-Site")


def is_cookieless(headers: Mapping[str, str]) -> bool:
    """Return whether a POST or an upgrade has no cookie at all and does not come from a browser."""
    return "Cookie" not in headers and not any(sign in headers for sign in _SIGNS_OF_BROWSERS)


@dataclass(frozen=True, slots=True)
class BrowserCookie:
    """The name and attributes of the cookie."""

    name: str = DEFAULT_NAME
    domain: str | None = None
    path: str = "/"
    max_age: int | None = None
    secure: bool = False
    http_only: bool = True
    same_site: str | None = None
    partitioned: bool = False
    # All attributes after the value, built once.
    _attributes: str = field(init=False, repr=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "_attributes", self._make_attributes())

    def find(self, lines: Iterable[str]) -> tuple[str, ...]:
        """Return the identities in `Cookie` headers, without values that this server never sets.

        If there are several, any of them may be the browser's: a cookie does not tell who set it.
        """
        values = dict.fromkeys(cookie_values(lines, self.name))
        identities = [value for value in values if _IDENTITY.fullmatch(value)]
        return tuple(identities[:_MAX_IDENTITIES])

    def header(self, identity: str) -> str:
        """Return the value of `Set-Cookie` for this identity."""
        return f"{self.name}={identity}{self._attributes}"

    def _make_attributes(self) -> str:
        parts = ["", f"Path={self.path}"]
        if self.domain is not None:
            parts.append(f"Domain={self.domain}")
        if self.max_age is not None:
            parts.append(f"Max-Age={self.max_age}")
        flags = {
            "Secure": self.secure,
            "HttpOnly": self.http_only,
            f"SameSite={self.same_site}": self.same_site is not None,
            "Partitioned": self.partitioned,
        }
        return "; ".join(parts + [flag for flag, is_set in flags.items() if is_set])
