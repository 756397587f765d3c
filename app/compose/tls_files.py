"""The certificate of the server, and the authority of its clients. They may change as it runs."""

import logging
import ssl
from collections.abc import Iterable
from pathlib import Path

from holdfast.compose.cannot_start import CannotStart
from holdfast.settings import Settings
from holdfast.web.front.listener import Listener

log = logging.getLogger(__name__)


def read_tls(settings: Settings) -> ssl.SSLContext | None:
    """Return the TLS of the listeners, or None without it. Raises `CannotStart`."""
    if settings.tls_cert is None:
        return None
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        tls.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        check_readable("tls_cert", settings.tls_cert)
        check_readable("tls_key", settings.tls_key)
        raise CannotStart(
            f"tls_cert, tls_key: {settings.tls_cert} must have a certificate in PEM, and "
            f"{settings.tls_key} its key: {error}"
        ) from error
    if settings.tls_client_ca is not None:
        try:
            tls.load_verify_locations(settings.tls_client_ca)
        except (OSError, ssl.SSLError) as error:
            check_readable("tls_client_ca", settings.tls_client_ca)
            raise CannotStart(
                f"tls_client_ca: {settings.tls_client_ca} must have certificates in PEM: {error}"
            ) from error
        # Extensions decide whether a client without a certificate may connect.
        tls.verify_mode = ssl.CERT_OPTIONAL
    return tls


def reload_tls(settings: Settings, listeners: Iterable[Listener]) -> str:
    """Read the files again, for connections that are accepted from now on.

    If they cannot be read, the former certificate stays in use; returns why.
    """
    try:
        tls = read_tls(settings)
    except CannotStart as error:
        log.error("the former certificate stays in use: %s", error)
        return str(error)
    if tls is not None:
        for listener in listeners:
            listener.use_tls(tls)
        log.info("new connections use the certificate in %s", settings.tls_cert)
    return ""


def check_readable(setting: str, path: Path | None) -> None:
    """Raise `CannotStart` with the name of a file that cannot be read: OpenSSL names none."""
    if path is None:
        return
    try:
        path.open("rb").close()
    except FileNotFoundError:
        raise CannotStart(f"{setting}: there is no file {path}") from None
    except OSError as error:
        raise CannotStart(f"{setting}: {path}: {error.strerror}") from error
