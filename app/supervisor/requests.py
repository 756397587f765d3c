"""Requests for a restart: of `holdfast restart`, by the socket for commands, or of a signal."""

from contextlib import suppress

from holdfast.supervisor.control import Channel, Do, Parcel
from holdfast.supervisor.system import System

# A year, so that it can be added to any time.
_LONGEST_S = 3.2e7


class Request:
    """A request, and the command that is told how it goes; a signal is told nothing."""

    def __init__(self, answers: Channel | None = None, timeout_s: float | None = None) -> None:
        self._answers = answers
        # Within which the new server must be ready; None if that is up to the server's settings.
        self.timeout_s = timeout_s
        # Until when it may wait for a server that starts; zero if it does not.
        self.waits_until = 0.0

    def tell(self, **fields: object) -> None:
        """Tell how it goes; a command that has gone, or reads nothing, misses it."""
        if self._answers is not None:
            with suppress(ConnectionError):
                self._answers.send(**fields)

    def end(self, **fields: object) -> None:
        self.tell(**fields)
        if self._answers is not None:
            self._answers.close()


def request_of(parcel: Parcel, system: System) -> Request | None:
    """Return what a command asks for; one that is not known is told so. May raise `OSError`."""
    if not parcel.descriptors:
        return None
    request = Request(system.channel(parcel.descriptors[-1]))
    parcel.descriptors.pop()
    match parcel.fields:
        case {"do": Do.RESTART, "timeout": float(timeout_s) | int(timeout_s)} if (
            0 < timeout_s < _LONGEST_S
        ):
            request.timeout_s = timeout_s
        case {"do": Do.RESTART, **more} if not more:
            pass
        case _:
            request.end(failed="the supervisor does not know this request", serving=True)
            return None
    return request
