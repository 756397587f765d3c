"""The cookie that names the host with a client's session, for proxies to route by."""

from collections.abc import Callable, Iterable
from typing import Final

from holdfast.bayeux.wire.caller import Speaker, cookie_values
from holdfast.settings import Settings
from holdfast.web.http.cookies import attributes_of

# Without the prefix `__Host-`: the variables of nginx have no hyphen.
NAME: Final = "HOLDFAST_HOST"


def _unknown(_: Speaker) -> str:
    return ""


class HostCookie:
    """Names a host as the setting `hosts` does. It proves nothing, and opens nothing.

    Args:
        own: The name of this host.
    """

    def __init__(self, settings: Settings, own: str) -> None:
        self.own = own
        self._attributes = attributes_of(settings)
        # Returns where the session of a new socket will be, as far as its request says; empty if
        # that is unknown.
        self.host_of_newcomer: Callable[[Speaker], str] = _unknown

    def find(self, lines: Iterable[str]) -> str:
        """Return the host in `Cookie` headers, which may be anything; empty without one.

        Of several, proxies read the first, too.
        """
        return next(cookie_values(lines, NAME), "")

    def header(self, host: str) -> str:
        """Return the value of `Set-Cookie` for this host."""
        return f"{NAME}={host}{self._attributes}"

    def of_socket(self, speaker: Speaker) -> str | None:
        """Return `Set-Cookie` for the response to an upgrade; None if it needs none.

        Which session the socket will have is not certain before its first message. So a client that
        a cookie has led here keeps it.
        """
        if speaker.host == self.own:
            return None
        host = self.host_of_newcomer(speaker)
        return self.header(host) if host not in ("", speaker.host) else None
