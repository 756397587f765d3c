"""The certificates with which hosts of a deployment know each other. They may change."""

import logging
import ssl
from pathlib import Path

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.tls_files import check_readable
from holdfast.settings import Settings
from holdfast.web.host_links.tls_connection import plain

log = logging.getLogger(__name__)


class TlsOfLinks:
    """How this host speaks TLS with others, as of some time. Raises `CannotStart`."""

    def __init__(self, cert: Path, key: Path, authority: Path) -> None:
        self.client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.client.hostname_checks_common_name = False
        self.server.verify_mode = ssl.CERT_REQUIRED
        for each in (self.client, self.server):
            each.minimum_version = ssl.TLSVersion.TLSv1_3
            try:
                each.load_cert_chain(cert, key)
            except (OSError, ssl.SSLError) as error:
                check_readable("link_cert", cert)
                check_readable("link_key", key)
                raise CannotStart(
                    f"link_cert, link_key: {cert} must have a certificate in PEM, and {key} its "
                    f"key: {error}"
                ) from error
            try:
                each.load_verify_locations(authority)
            except (OSError, ssl.SSLError) as error:
                check_readable("link_ca", authority)
                raise CannotStart(
                    f"link_ca: {authority} must have certificates in PEM: {error}"
                ) from error

    def fault_for(self, name: str) -> str | None:
        """Return why other hosts refuse this certificate of the host with this name, or None."""
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = [
            self.client.wrap_bio(to_client, to_server, server_hostname=plain(name)),
            self.server.wrap_bio(to_server, to_client, server_side=True),
        ]
        # Each has something to say twice.
        for each in ends * 3:
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                return f"{error}"
        return None


class LinkCertificates:
    """The certificates of links. Files that have changed hold from then on.

    If they cannot be read, the former ones stay in use.

    Args:
        name: The name of this host.
    """

    def __init__(self, settings: Settings, name: str) -> None:
        cert, key, authority = settings.link_cert, settings.link_key, settings.link_ca
        if cert is None or key is None or authority is None:
            raise CannotStart("hosts needs link_cert, link_key and link_ca: links use TLS")
        self._files = cert, key, authority
        self._name = name
        self._state = self._state_now()
        self._tls = self._read()
        self._said = ""

    @property
    def now(self) -> TlsOfLinks:
        """What holds for new connections."""
        state = self._state_now()
        if state != self._state:
            try:
                self._tls = self._read()
            except CannotStart as error:
                self._say(f"{error}")
            else:
                self._state, self._said = state, ""
                log.info("new links use the certificate in %s", self._files[0])
        return self._tls

    def _read(self) -> TlsOfLinks:
        found = TlsOfLinks(*self._files)
        fault = found.fault_for(self._name)
        if fault is not None:
            log.error("link_cert: other machines refuse %s: %s", self._files[0], fault)
        return found

    def _say(self, fault: str) -> None:
        if fault != self._said:
            self._said = fault
            log.error("the former certificate of links stays in use: %s", fault)

    def _state_now(self) -> list[tuple[int, int, int] | None]:
        """Return what is different if a file was replaced."""
        return [_state_of(each) for each in self._files]


def _state_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
