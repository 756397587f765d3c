"""The cookie that identifies a browser."""

import re
from collections.abc import Iterable, Mapping

from holdfast.bayeux.wire.caller import cookie_values
from holdfast.settings import Settings

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


class BrowserCookie:
    """The name and attributes of the cookie."""

    __slots__ = ("_attributes", "name")

    def __init__(self, settings: Settings) -> None:
        name = settings.browser_cookie_name
        if name is None:
            # Browsers accept such a name only from this host over TLS.
            is_of_host = settings.is_cookie_secure and settings.is_cookie_of_host
            name = ("__Host-" if is_of_host else "") + DEFAULT_NAME
        self.name = name
        self._attributes = attributes_of(settings)

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


def attributes_of(settings: Settings) -> str:
    """Return what follows the value in `Set-Cookie`."""
    parts = ["", f"Path={settings.browser_cookie_path}"]
    if settings.browser_cookie_domain is not None:
        parts.append(f"Domain={settings.browser_cookie_domain}")
    if settings.browser_cookie_max_age is not None:
        parts.append(f"Max-Age={settings.browser_cookie_max_age}")
    same_site = settings.browser_cookie_same_site
    flags = {
        "Secure": settings.is_cookie_secure,
        "HttpOnly": settings.browser_cookie_http_only,
        f"SameSite={same_site}": same_site is not None,
        "Partitioned": settings.browser_cookie_partitioned,
    }
    return "; ".join(parts + [flag for flag, is_set in flags.items() if is_set])
