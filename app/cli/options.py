"""Options that several commands share."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from holdfast.cli.remote import DEFAULT_URL, Server

AsJson = Annotated[
    bool, typer.Option("--json", rich_help_panel="Options", help="Print JSON instead of tables.")
]
OfData = Annotated[
    Path | None,
    typer.Option(metavar="DIRECTORY", help="Data directory of the server; default: as for serve."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of items.")]
DryRun = Annotated[bool, typer.Option(help="Only count; change nothing.")]
Channel = Annotated[str, typer.Argument(help="The channel, such as /orders/7.")]
Prefix = Annotated[str, typer.Option(help="Beginning of the channel's name.")]
Condition = Annotated[
    str | None,
    typer.Option(metavar="CONDITION", help="Only messages that pass, such as 'data.price > 100'."),
]
Key = Annotated[
    str, typer.Argument(metavar="SESSION", help="The session, such as joe/1 or client/joe/1.")
]

Conditions = dict[str, Any]

_Url = Annotated[
    str,
    typer.Option(metavar="URL", envvar="HOLDFAST_URL", help="The server's URL, or unix:PATH."),
]
_TokenFile = Annotated[
    Path | None,
    typer.Option(
        envvar="HOLDFAST_TOKEN_FILE",
        help="Token file; default: admin-token in the data directory.",
    ),
]


def _address(url: _Url = DEFAULT_URL, token_file: _TokenFile = None) -> Server:
    return Server(url, token_file)


AtAddress = Annotated[Server, _address]


def _server(as_json: AsJson = False, *, address: AtAddress) -> Server:
    return replace(address, as_json=as_json)


ToServer = Annotated[Server, _server]


def place_of(key: str) -> str:
    """Return the subject and the number of a session as a path has them."""
    subject, _, number = key.removeprefix("client/").rpartition("/")
    if not subject or not number.removeprefix("-").isdecimal():
        raise typer.BadParameter(f"{key!r} is not a session: write a name such as joe/1")
    return f"{quote(subject, safe='')}/{number}"


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation; ends the program without a yes."""
    if yes:
        return
    if not _is_somebody_there():
        raise typer.BadParameter("cannot ask for confirmation here: use --yes to confirm")
    typer.confirm(question, abort=True, err=True)


def _is_somebody_there() -> bool:
    return sys.stdin.isatty()
