"""Addresses to listen at. Who can reach an address decides what is served there."""

import logging
import ssl
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.compose.cannot_start import CannotStart
from holdfast.settings import Settings
from holdfast.web.http.addresses import Address, resolve

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListenAddresses:
    """The main address; the operators' own, and this worker's own, if these are set."""

    main: Address
    admin: Address | None
    own: Address | None = None

    @property
    def has_admin_on_main(self) -> bool:
        """Whether the main address serves the administration too: only if it is private."""
        return self.admin is None and self.main.is_private


async def find_addresses(settings: Settings, shard: int = 0) -> ListenAddresses:
    """Resolve the addresses in the settings; raises `CannotStart`."""
    tls = None
    if settings.tls_cert is not None:
        from holdfast.compose.tls_files import read_tls

        tls = read_tls(settings)
    main = await _main(settings, tls)
    if not main.is_private and not settings.open and not settings.requires_login:
        raise CannotStart(
            f"host {settings.host} can be reached from other machines, and no setting says who may "
            "connect: configure a login, or set open to admit everybody"
        )
    own = None if settings.own_port is None else replace(main, port=settings.own_port + shard)
    return ListenAddresses(main, await _admin(settings.admin, tls), own)


async def _main(settings: Settings, tls: ssl.SSLContext | None) -> Address:
    if settings.unix is not None:
        return Address("", 0, settings.unix, tls)
    ips = await _resolve("host", settings.host)
    return Address(settings.host, settings.port, tls=tls, ips=ips)


async def _admin(place: str | None, tls: ssl.SSLContext | None) -> Address | None:
    """Tokens protect it, so it does not need `open`; a private address does not need TLS."""
    if place is None:
        return None
    host, _, port = place.rpartition(":")
    host = host.strip("[]")
    ips = await _resolve("admin", host)
    private = Address(host, int(port), ips=ips)
    return private if private.is_private else Address(host, int(port), tls=tls, ips=ips)


async def _resolve(setting: str, host: str) -> tuple[str, ...]:
    try:
        return await resolve(host)
    except OSError as error:
        raise CannotStart(f"{setting}: {host}: {error.strerror or error}") from error


def log_where_admin_is(place: Address, url: str, data: Path) -> None:
    """Log where the administration is, and warn if it is not safe there."""
    log.info("the administration is at %s/console/, its tokens in %s", url, data.absolute())
    if not place.is_private and place.tls is None:
        log.warning(
            "admin: tokens can be read on their way to %s: set tls_cert and tls_key, or make it "
            "reachable only from this machine or through a proxy with TLS",
            f"{place.url_host}:{place.port}",
        )
