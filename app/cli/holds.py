"""Options and the text of the commands that hold back sessions and channels."""

from typing import Annotated

import typer

from holdfast.cli.moments import moment
from holdfast.cli.output import Json, when

Reason = Annotated[str, typer.Option(help="The reason, shown with the hold.")]


def _until(
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When the hold ends: in 30m, or at 2026-11-20T08:00."),
    ] = None,
) -> int | None:
    return moment(until, ago=False)


Until = Annotated[int | None, _until]


def unstored_text(change: Json) -> str:
    """Return what to add to a sentence about a change that the store does not have yet."""
    if not change["unstored"]:
        return ""
    return ". The store is unavailable and does not have this yet: a kill of the server undoes it"


def hold_text(hold: Json | None) -> str:
    """Return a hold as text."""
    if hold is None:
        return ""
    until = f" until {when(hold['until'])}" if hold["until"] is not None else ""
    return f"{hold['reason'] or 'no reason given'} ({hold['who']}, {when(hold['since'])}{until})"
