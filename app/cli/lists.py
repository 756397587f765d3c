"""Lists that the server gives in parts: tables of the first items, JSON lines of all of them."""

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from app.cli.output import note, print_json, print_table
from app.cli.remote import Json, Params, Place, Remote, talk

_IN_A_TABLE = 100

Most = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        min=1,
        show_default=False,
        help=f"How many at most; otherwise {_IN_A_TABLE}, or all with --json.",
    ),
]


def print_list(
    place: Place,
    path: str,
    params: Params,
    *,
    limit: int | None,
    as_json: bool,
    head: Sequence[str],
    row: Callable[[Json], Sequence[object]],
) -> None:
    """Print the list at a path; say so if it goes on."""
    most = _IN_A_TABLE if limit is None and not as_json else limit
    rows: list[Sequence[object]] = []

    async def conversation(remote: Remote) -> bool:
        count = 0
        async for item in remote.items(path, params, None if most is None else most + 1):
            if count == most:
                return True
            count += 1
            if as_json:
                print_json(item, is_line=True)
            else:
                rows.append(row(item))
        return False

    goes_on = talk(place, conversation)
    if not as_json:
        print_table(head, rows)
    if goes_on:
        note(f"These are {most}; there are more: --limit")
