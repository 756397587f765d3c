"""Exit codes, and advice on what to do about a failure."""

from enum import IntEnum

import typer

from holdfast.cli.output import complain
from holdfast.web.admin.paths import API


class Exit(IntEnum):
    """Exit codes; docs/reference/command-line.md has the details."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    UNCERTAIN = 5


# Their meanings, in short.
MEANINGS = {
    Exit.OK: "Success.",
    Exit.FAILED: "The command failed, or the named object does not exist.",
    Exit.USAGE: "Wrong usage: an option, an argument, a file.",
    Exit.UNREACHABLE: "The server is unreachable, or unavailable now.",
    Exit.NOT_ALLOWED: "The token or login is unknown, or does not allow this.",
    Exit.UNCERTAIN: "Not everything is known: see holdfast-pipeline(1); or a replay goes on.",
}

# All others are failures.
EXITS = {
    400: Exit.USAGE,
    401: Exit.NOT_ALLOWED,
    403: Exit.NOT_ALLOWED,
    502: Exit.UNREACHABLE,
    503: Exit.UNREACHABLE,
    504: Exit.UNREACHABLE,
}

# Advice for things that do not exist, by the beginning of their path.
_LISTS = {
    "/sessions/": "list sessions with holdfast session list",
    "/dead-letters/": "list letters with holdfast dead list",
    "/replays/": "list replays with holdfast dead replays",
    "/held-channels": "list what is held back with holdfast dispatcher show",
    "/hosts/": "list hosts with holdfast host list",
    "/topic": "list topics with holdfast topic list",
}


def failed(text: str, exit: Exit = Exit.FAILED) -> typer.Exit:
    """Say why the command fails, and what to do next; return what ends it, to be raised."""
    complain(text)
    return typer.Exit(exit)


def advice(status: int, code: str, message: str, *, path: str, retry_after: str | None) -> str:
    """Why the server refused, and what to do about it."""
    match status:
        case 401:
            return (
                "the server does not accept this token. Name another file with --token-file; the "
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
