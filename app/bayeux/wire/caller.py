"""The request behind a message, by which extensions may identify its client."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from holdfast.bayeux.wire.login import Vouched
from holdfast.bayeux.wire.transports import SpeakerKind

# White space around a cookie's name. Other white space belongs to the name: any host of the domain
# can set a cookie with such a character before `__Host-...`.
_SPACE: Final = " \t"


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """The sender of a request, from HTTP; over WebSocket, of the upgrade request."""

    # The client's IP address; behind trusted proxies, the one that they forward. Empty if there is
    # none, as over a Unix socket.
    address: str = ""
    # The key of limits per address: the address, or the /64 of an IPv6 one. Empty for callers
    # that are not counted: this machine, and proxies that forward no address.
    network: str = ""
    # Names are case-insensitive. Values include secrets, so they are never printed.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    # Whether a trusted proxy forwarded the request. If not, its headers prove nothing.
    is_proxied: bool = False
    # Whether the client uses TLS, to this server or to a trusted proxy.
    is_secure: bool = False
    # The subject of the client certificate that this server verified: pairs such as
    # `("commonName", "ada")`.
    tls_subject: tuple[tuple[str, str], ...] = ()
    # What the backend said about it, if another worker has asked for a handshake.
    vouched: Vouched | None = None

    def cookies(self, name: str) -> list[str]:
        """Return all values of the cookie, in the order in which they were sent.

        There may be several: other hosts of the same domain can set a cookie of the same name.
        """
        return list(cookie_values([self.headers.get("Cookie", "")], name))


def cookie_values(lines: Iterable[str], name: str) -> Iterator[str]:
    """Yield all values of a cookie in `Cookie` headers, in the order in which they were sent."""
    for line in lines:
        for pair in line.split(";"):
            found, _, value = pair.partition("=")
            if found.strip(_SPACE) == name:
                yield value.strip(_SPACE).strip('"')


def credentials_in(authorization: str, scheme: str) -> str | None:
    """Return the credentials in an `Authorization` header, or `None` if it has another scheme."""
    found, _, credentials = authorization.partition(" ")
    return credentials.strip() if found.lower() == scheme else None


# For messages that did not arrive over HTTP, and for sessions without a request so far.
UNKNOWN: Final = Caller()


class Speaker:
    """The client and the browser identified by the headers of an HTTP request."""

    # Each new cookie makes one. The constructor of a data class would be interpreted.
    __slots__ = ("browsers", "caller", "host", "is_cookieless", "is_spread", "kind")

    def __init__(
        self,
        caller: Caller = UNKNOWN,
        browsers: tuple[str, ...] = (),
        is_cookieless: bool = False,
        kind: SpeakerKind = SpeakerKind.PROGRAM,
        *,
        is_spread: bool = False,
        host: str | None = None,
    ) -> None:
        self.caller: Final = caller
        # The browser's identities, from its cookies or given to its socket. Other hosts of the
        # domain can set such cookies too: the one that matches the session applies.
        self.browsers: Final = browsers
        # Whether it is a program, not a browser, and sends no cookie at all.
        self.is_cookieless: Final = is_cookieless
        self.kind: Final = kind
        # Whether its identity alone says which shard has its session, not its subject.
        self.is_spread: Final = is_spread
        # The host that its cookie names, empty without such a cookie; None for speakers who need
        # not know theirs.
        self.host: Final = host

    def with_browsers(self, browsers: tuple[str, ...]) -> "Speaker":
        """Return the same speaker with these identities."""
        return Speaker(
            *(self.caller, browsers, self.is_cookieless, self.kind),
            is_spread=self.is_spread,
            host=self.host,
        )


# The speaker of requests that did not arrive over HTTP.
NO_SPEAKER: Final = Speaker()
