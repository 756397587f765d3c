"""Prints lists: the first items as a table or as JSON, or all of them as JSON lines."""

from typing import Annotated

import typer

from holdfast.cli.output import Columns, Json, brief, note, print_items, print_json
from holdfast.cli.remote import Params, Remote, Server

_IN_A_TABLE = 100

Most = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        min=1,
        show_default=False,
        help=f"Maximum number; default: {_IN_A_TABLE}, or all with --json.",
    ),
]

First = Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="Maximum number.")]


def _data(message: Json) -> str:
    return "(too long)" if message["is_cut"] else brief(message["data"])


# The column of the data of messages.
DATA = ("DATA", _data)


def print_first(server: Server, path: str, params: Params, columns: Columns) -> None:
    """Print the first items of a short list, as a table or as a JSON array."""
    found = server.get(path, params)["items"]
    if server.as_json:
        print_json(found)
    else:
        print_items(columns, found)


def print_list(
    server: Server, path: str, params: Params, columns: Columns, limit: int | None
) -> None:
    """Print the first items of a list as a table, or all of them as JSON lines.

    Says if there are more.
    """
    most = _IN_A_TABLE if limit is None and not server.as_json else limit
    items: list[Json] = []

    async def conversation(remote: Remote) -> bool:
        count = 0
        async for item in remote.items(path, params, None if most is None else most + 1):
            if count == most:
                return True
            count += 1
            if server.as_json:
                print_json(item, is_line=True)
            else:
                items.append(item)
        return False

    goes_on = server.talk(conversation)
    if not server.as_json:
        print_items(columns, items)
    if goes_on:
        note(f"Showing {most}; there are more: use --limit")
