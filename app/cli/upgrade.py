"""`holdfast upgrade`: shows and finishes the upgrade of a server's store."""

from typing import Annotated

import typer

from holdfast.cli.options import ToServer, Yes, confirm
from holdfast.cli.output import Json, answer
from holdfast.cli.program import Program

program = Program()


@program.command()
def upgrade(
    *,
    finish: Annotated[
        bool, typer.Option(help="Finish it: earlier releases then refuse the store.")
    ] = False,
    yes: Yes = False,
    server: ToServer,
) -> None:
    """Show and finish the upgrade of a server's store to the newest layout.

    Until the upgrade is finished, you can go back to the release before: stop the server, and start
    the older one.

    Example: holdfast upgrade --finish
    """
    found = server.get("/upgrade")
    if finish and not found["finished"]:
        confirm(_question(found), yes=yes)
        found = server.ask("POST", "/upgrade/finish", {})
    answer(found, _text(found), as_json=server.as_json)


def _question(found: Json) -> str:
    if not found["releases"]:
        return "Finish the upgrade?"
    return f"Releases {found['releases']} will refuse the store for good. Finish the upgrade?"


def _text(found: Json) -> str:
    if found["finished"]:
        return f"the store has the newest layout, {found['layout']}: nothing is left to finish"
    changes = "".join(f"\n  - {change}" for change in found["changes"])
    readers = f"releases {found['releases']} read" if found["releases"] else "no release reads"
    return (
        f"the store has layout {found['layout']}, which {readers}, too.\n"
        f"holdfast upgrade --finish puts it into layout {found['newest']}, which only this release"
        f" reads:{changes}"
    )
