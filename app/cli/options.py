"""Options that several commands share, and how what they say is understood."""

import inspect
import re
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from app.cli.remote import DEFAULT_URL, Place

AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of tables.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Letters one by one.")]
Everything = Annotated[bool, typer.Option("--all", help="Every dead letter is meant.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say only what would be done.")]
Key = Annotated[
    str, typer.Argument(metavar="SESSION", help="The session, as joe/1 or client/joe/1.")
]

_SPAN = re.compile(r"(\d{1,9})(s|m|h|d)")
_ID = re.compile("[0-9]{19}")
_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

Conditions = dict[str, Any]


def _option(flag: str, metavar: str, help: str, envvar: str | None = None) -> Any:  # noqa: ANN401 - typer's
    return typer.Option(flag, metavar=metavar, help=help, envvar=envvar)


_URL = _option("--url", "URL", "Where the server is, or unix:PATH.", "HOLDFAST_URL")
_TOKEN = _option(
    "--token-file",
    "FILE",
    "File with the token; else admin-token in the data directory.",
    "HOLDFAST_TOKEN_FILE",
)
_CHANNEL = _option("--channel", "CHANNEL", "On this channel.")
_RECEIVER = _option("--receiver", "SESSION", "For joe/1.")
_SUBJECT = _option("--subject", "SUBJECT", "For sessions of joe.")
_CODE = _option("--code", "CODE", "With this error code.")
_FINGERPRINT = _option("--fingerprint", "FINGERPRINT", "Of this group; see dead list --groups.")
_STATE = _option("--state", "STATE", "new or replayed.")
_SINCE = _option("--since", "TIME", "Died since: 2h, 2026-11-20, 2026-11-20T08:00.")
_UNTIL = _option("--until", "TIME", "Died before; as for --since.")


def place(
    url: Annotated[str, _URL] = DEFAULT_URL,
    token_file: Annotated[Path | None, _TOKEN] = None,
) -> Place:
    """Where the server is, and what opens it."""
    return Place(url, token_file)


def conditions(
    channel: Annotated[str | None, _CHANNEL] = None,
    receiver: Annotated[str | None, _RECEIVER] = None,
    subject: Annotated[str | None, _SUBJECT] = None,
    code: Annotated[str | None, _CODE] = None,
    fingerprint: Annotated[str | None, _FINGERPRINT] = None,
    state: Annotated[str | None, _STATE] = None,
    since: Annotated[str | None, _SINCE] = None,
    until: Annotated[str | None, _UNTIL] = None,
) -> Conditions:
    """Which dead letters are meant, as the server takes it."""
    given = deaths(channel, receiver, subject, code, fingerprint, since, until)
    return given if state is None else {**given, "state": state}


def deaths(
    channel: Annotated[str | None, _CHANNEL] = None,
    receiver: Annotated[str | None, _RECEIVER] = None,
    subject: Annotated[str | None, _SUBJECT] = None,
    code: Annotated[str | None, _CODE] = None,
    fingerprint: Annotated[str | None, _FINGERPRINT] = None,
    since: Annotated[str | None, _SINCE] = None,
    until: Annotated[str | None, _UNTIL] = None,
) -> Conditions:
    """Which deaths are meant, whatever became of their letters."""
    given = {
        "channel": channel,
        "receiver": receiver and receiver.removeprefix("client/"),
        "subject": subject,
        "code": code,
        "fingerprint": fingerprint,
        "since": moment(since, ago=True),
        "until": moment(until, ago=True),
    }
    return {name: value for name, value in given.items() if value is not None}


def gathers(*groups: Callable[..., object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of each group, for its parameter of the group's name."""
    by_name = {group.__name__: inspect.signature(group).parameters for group in groups}
    makers = {group.__name__: group for group in groups}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def gathered(**given: object) -> None:
            for name, parameters in by_name.items():
                given[name] = makers[name](**{part: given.pop(part) for part in parameters})
            command(**given)

        signature = inspect.signature(command)
        shown = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for given in signature.parameters.values()
            for parameter in (by_name[given.name].values() if given.name in by_name else [given])
        ]
        gathered.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        gathered.__doc__ = command.__doc__
        return gathered

    return decorate


def moment(text: str | None, *, ago: bool) -> int | None:
    """A time in ms since 1970: a date, or a span before now or from now on."""
    if text is None:
        return None
    if span := _SPAN.fullmatch(text.strip()):
        ms = int(span[1]) * _MS[span[2]]
        return now_ms() + (-ms if ago else ms)
    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except ValueError:
        message = f"{text!r} is no time: write 2h, or 2026-11-20T08:00"
        raise typer.BadParameter(message) from None


def now_ms() -> int:
    """The time as the server tells it."""
    return time.time_ns() // 1_000_000


def path_of(key: str) -> str:
    """Where the server has this session."""
    subject, _, number = key.removeprefix("client/").rpartition("/")
    if not subject or not number.removeprefix("-").isdecimal():
        raise typer.BadParameter(f"{key!r} is no session: write joe/1")
    return f"/sessions/{quote(subject, safe='')}/{number}"


def wanted(ids: list[str] | None, conditions: Conditions, *, everything: bool) -> Conditions:
    """Dead letters to do something with, as the server takes them."""
    letters = {**conditions, "ids": [*map(id_of, ids)]} if ids else conditions
    if bool(letters) is everything:
        raise typer.BadParameter("name letters or conditions, or else --all")
    # What dies after the count that somebody said yes to is not meant.
    return {"filter": {"until": now_ms(), **letters}}


def id_of(text: str) -> str:
    """The id of a letter."""
    if _ID.fullmatch(text) is None:
        message = f"{text!r} is no id: an id has 19 digits, as dead list shows it"
        raise typer.BadParameter(message)
    return text


def replay_of(text: str) -> str:
    """The id of a replay, as it may stand in a path."""
    if not text.isalnum() or not text.isascii():
        raise typer.BadParameter(f"{text!r} is no id: dead replays shows those of replays")
    return text


def confirm(question: str, *, yes: bool) -> None:
    """Ask whoever sits there; nothing more is done without a yes."""
    if yes:
        return
    if not _is_somebody_there():
        raise typer.BadParameter("nobody can be asked here: --yes says that it is meant")
    typer.confirm(question, abort=True, err=True)


def _is_somebody_there() -> bool:
    return sys.stdin.isatty()
