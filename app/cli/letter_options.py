"""Options that choose dead letters, and the replays of some."""

import re
from typing import Annotated

import typer

from holdfast.cli.model_options import options_of
from holdfast.cli.moments import now_ms
from holdfast.cli.options import Conditions
from holdfast.store.letters.filter import LetterFilter

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of letters.")]
Everything = Annotated[bool, typer.Option("--all", help="Apply to all dead letters.")]
LetterConditions = Annotated[Conditions, options_of(LetterFilter, without=["ids"])]

_ID = re.compile("[0-9]{19}")


def wanted(ids: list[str] | None, conditions: Conditions, *, everything: bool) -> Conditions:
    """Return the selected dead letters, in the server's form."""
    letters = {**conditions, "ids": [*map(id_of, ids)]} if ids else conditions
    if bool(letters) is everything:
        raise typer.BadParameter("give ids or conditions, or --all")
    # Later deaths are not included in the number that was confirmed.
    return {"filter": {"until": now_ms(), **letters}}


def id_of(text: str) -> str:
    """Check the id of a letter."""
    if _ID.fullmatch(text) is None:
        message = f"{text!r} is not an id: ids have 19 digits, see holdfast dead list"
        raise typer.BadParameter(message)
    return text


def replay_of(text: str) -> str:
    """Check the id of a replay."""
    if not text.isalnum() or not text.isascii():
        raise typer.BadParameter(f"{text!r} is not an id: see holdfast dead replays")
    return text
