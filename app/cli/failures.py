"""What a command ends with, and what it says to do next when it did not work."""

from enum import IntEnum

from app.web.admin.address import API


class Exit(IntEnum):
    """What the program ends with; docs/command-line.md has the table."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4


# Others are failures.
EXITS = {
    400: Exit.USAGE,
    401: Exit.NOT_ALLOWED,
    403: Exit.NOT_ALLOWED,
    502: Exit.UNREACHABLE,
    503: Exit.UNREACHABLE,
    504: Exit.UNREACHABLE,
}

# Where there is nothing, by the beginning of its path: what shows all that there is.
_LISTS = {
    "/sessions/": "holdfast session list shows who there is",
    "/dead-letters/": "holdfast dead list shows those that there are",
    "/replays/": "holdfast dead replays shows those that are remembered",
    "/held-channels": "holdfast dispatcher show says what is held back",
}


class RemoteFailed(Exception):
    """It did not work; the text says why, and what to do next."""

    def __init__(self, exit: Exit, text: str) -> None:
        super().__init__(text)
        self.exit = exit


def advice(status: int, code: str, message: str, *, path: str, retry_after: str | None) -> str:
    """Why the server refused, and what may help."""
    match status:
        case 401:
            return (
                "the server does not know this token. --token-file names another file; the "
                "server's is admin-token in its data directory"
            )
        case 403:
            return f"not allowed: {message}"
        case 404:
            _, _, place = path.partition(API)
            lists = (shown for begin, shown in _LISTS.items() if place.startswith(begin))
            return f"{message} ({code})" + "".join(f": {shown}" for shown in lists)
        case 429:
            return f"too many requests: try again in {retry_after or '?'} s"
        case 503:
            return f"{message} ({code}): try again when the server is ready, see its /readyz"
        case _:
            return f"{message} ({code})"


def reason(error: Exception) -> str:
    """Why nothing was heard."""
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
