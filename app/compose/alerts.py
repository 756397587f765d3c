"""Sets up the alerts."""

from collections.abc import Callable

from holdfast.compose.cannot_start import CannotStart
from holdfast.settings import Settings
from holdfast.web.admin.alert_limits import AlertLimits


def alert_limits(settings: Settings) -> Callable[[], AlertLimits]:
    """Return what reads the limits in force. Raises `CannotStart`."""
    if settings.alerts is None:
        limits = AlertLimits()
        return lambda: limits
    # Few servers have such a file.
    from holdfast.login.failures import Unusable
    from holdfast.login.toml_file import read_toml
    from holdfast.login.watched_file import WatchedFile

    def read(text: bytes) -> AlertLimits:
        return read_toml(text, AlertLimits)

    try:
        file = WatchedFile(settings.alerts, read)
    except Unusable as error:
        raise CannotStart(f"alerts: {error}") from error

    def current() -> AlertLimits:
        file.refresh()
        return file.value

    return current
