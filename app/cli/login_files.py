"""The common part of the commands about users and rights: options, and errors of files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.failures import Exit, failed
from holdfast.login.failures import Unusable
from holdfast.login.passwords import LONGEST

_SHORTEST = 8

Groups = Annotated[
    list[str] | None,
    typer.Option("--group", "-g", metavar="GROUP", help="A group of the user; repeatable."),
]
PasswordsPath = Annotated[
    Path,
    typer.Option(
        envvar="HOLDFAST_LOGIN_PASSWORDS",
        help="File of users and passwords, the server's login_passwords.",
    ),
]
_RIGHTS = typer.Option(
    metavar="FILE",
    envvar="HOLDFAST_RIGHTS",
    help="File that says who may do what, the server's rights.",
)
RightsPath = Annotated[Path | None, _RIGHTS]


@contextmanager
def usable_files() -> Iterator[None]:
    """End the command if a file is unusable."""
    try:
        yield
    except Unusable as error:
        raise failed(str(error), Exit.USAGE) from None


def checked_password(password: str) -> str:
    """Return the password; ends the command if it is too short or too long."""
    if not _SHORTEST <= len(password) <= LONGEST:
        raise typer.BadParameter(f"a password has {_SHORTEST} to {LONGEST} characters")
    return password
