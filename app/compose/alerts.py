"""Sets up the alerts."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from holdfast.compose.cannot_start import CannotStart
from holdfast.settings import Settings
from holdfast.web.admin.alert_limits import AlertLimits

if TYPE_CHECKING:
    from holdfast.login.watched_file import WatchedFile


class ReadAgain:
    """The files that are read again while the server runs: those that cannot be used are told."""

    def __init__(self, files: "Iterable[WatchedFile[Any]]" = ()) -> None:
        self._files = [*files]
        self.tls_fault = ""

    def add(self, files: "Iterable[WatchedFile[Any]]") -> None:
        self._files += files

    def faults(self) -> list[str]:
        """Return why files are not in use as they are now."""
        found = (self.tls_fault, *(each.fault for each in self._files))
        return [each for each in found if each]


def alert_limits(settings: Settings, read_again: ReadAgain) -> Callable[[], AlertLimits]:
    """Return what reads the limits in force. Raises `CannotStart`."""
    if settings.alerts is None:
        limits = AlertLimits()
        return lambda: limits
    # Few servers have such a file.
    from holdfast.login.failures import Unusable
    from holdfast.login.watched_file import WatchedFile

    try:
        file = WatchedFile(settings.alerts, read_limits)
    except Unusable as error:
        raise CannotStart(f"alerts: {error}") from error
    read_again.add([file])

    def current() -> AlertLimits:
        file.refresh()
        return file.value

    return current


def read_limits(text: bytes) -> AlertLimits:
    """Read the file. Raises `Unusable`."""
    from holdfast.login.toml_file import read_toml

    return read_toml(text, AlertLimits)
