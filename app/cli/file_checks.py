"""Checks the files that a server reads at its start, and again while it runs."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from holdfast.compose.alerts import read_limits
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.tls_files import read_tls
from holdfast.login.failures import Unusable
from holdfast.login.rights_file import read_rights
from holdfast.login.verification_keys import read_keys
from holdfast.login.watched_file import read_file
from holdfast.pipeline.doctor import Check
from holdfast.settings import Settings

_Read = Callable[[bytes], object]


def check_files(settings: Settings) -> Iterator[Check]:
    """Check each file that the settings name, as the server would."""
    for name, path, read in _files(settings):
        try:
            read_file(path, read)
        except Unusable as error:
            yield _fault(name, str(error))
        else:
            yield Check(name, True, str(path))
    if settings.tls_cert is not None:
        try:
            read_tls(settings)
        except CannotStart as error:
            yield _fault("TLS", str(error))
        else:
            yield Check("TLS", True, str(settings.tls_cert))


def _files(settings: Settings) -> Iterator[tuple[str, Path, _Read]]:
    if settings.rights is not None:
        has_backend = settings.backend is not None
        yield "rights", settings.rights, partial(read_rights, has_backend=has_backend)
    if settings.login_passwords is not None:
        # Few machines need its cryptography for this.
        from holdfast.login.passwords import read_users

        yield "login_passwords", settings.login_passwords, read_users
    if settings.login_keys is not None and "://" not in settings.login_keys:
        yield "login_keys", Path(settings.login_keys), read_keys
    if settings.alerts is not None:
        yield "alerts", settings.alerts, read_limits


def _fault(name: str, why: str) -> Check:
    what = "a server that runs goes on with what it read before, and none starts"
    return Check(name, False, f"{why}; correct it: until then, {what}")
