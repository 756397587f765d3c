"""`holdfast init`: writes the files with which a server begins."""

import os
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from holdfast.bayeux.wire.terms import is_subject
from holdfast.cli.first_files import (
    RIGHTS,
    SETTINGS,
    USERS,
    RunBy,
    Wanted,
    closed_to_the_service,
    files_of,
    owner_in_container,
    steps_of,
)
from holdfast.cli.login_files import checked_password, usable_files
from holdfast.cli.options import AsJson
from holdfast.cli.output import complain, print_json
from holdfast.cli.program import Program
from holdfast.cli.serve import read_settings
from holdfast.compose import CannotStart
from holdfast.login.passwords import PasswordFile, User, hashed
from holdfast.login.rights_file import read_rights

program = Program()

_PASSWORD = "HOLDFAST_PASSWORD"  # noqa: S105 - the name of a variable
_LOCAL = "127.0.0.1"


@program.command()
def init(
    directory: Annotated[Path, typer.Argument(help="Folder for the files.")] = Path(),
    *,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; 0.0.0.0 is all. [127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65534, help="Port to listen on. [8080]")
    ] = None,
    host_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name by which browsers reach it; repeatable."),
    ] = None,
    login: Annotated[
        bool | None,
        typer.Option(
            "--login/--no-login", help="Whether clients must log in; by default if others reach it."
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Who logs in first, and is an operator. [admin]")
    ] = None,
    run_by: Annotated[
        str | None, typer.Option(help="What runs it: terminal, systemd or compose. [terminal]")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: defaults are right.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the files with which a server begins.

    These are a commented holdfast.toml and, if you want them, a first login with its rights, and a
    unit of systemd or a compose file. On a terminal the command asks what no option says. The
    password comes from HOLDFAST_PASSWORD, or is asked for, or is made and shown once. The server's
    own check of settings reads the file before it is written.

    Example: holdfast init --host 0.0.0.0 --host-name push.example.org --run-by systemd --yes
    """
    ask = _Questions(is_silent=yes)
    host = ask.text("Address to listen on (0.0.0.0: all)", host, _LOCAL)
    port = int(ask.text("Port", None if port is None else str(port), "8080"))
    draft = Wanted(
        home=directory.absolute(),
        host=host,
        port=port,
        host_names=(),
        user=None,
        run_by=RunBy.TERMINAL,
    )
    names = tuple(host_name or ())
    if draft.is_reachable and not names:
        said = ask.text(
            "Name by which browsers reach it, such as push.example.org (none: -)", None, "-"
        )
        names = () if said == "-" else (said,)
    if user is None and ask.truth("Must clients log in?", login, draft.is_reachable):
        user = ask.text("User who logs in first, and is an operator", None, "admin")
    wanted = Wanted(
        home=draft.home,
        host=host,
        port=port,
        host_names=names,
        user=None if login is False else user,
        run_by=_run_by(ask.text("What runs it: terminal, systemd or compose", run_by, "terminal")),
    )
    if wanted.user is not None and not is_subject(wanted.user):
        raise typer.BadParameter(
            f"{wanted.user!r} is not a user's name: use letters, digits and . @ + ~ -, at least two"
        )
    if wanted.run_by is RunBy.SYSTEMD and (why := closed_to_the_service(wanted.home)):
        raise typer.BadParameter(f"--run-by systemd: {why}")
    made = files_of(wanted)
    names_of_files = [*made, *([USERS] if wanted.user else [])]
    _check_free(wanted.home, names_of_files, force=force)
    _check(made)
    password = ask.password(wanted.user) if wanted.user else None
    _write(wanted, made, password)
    _tell(wanted, names_of_files, password if ask.made_password else None, as_json=as_json)


class _Questions:
    """Asks what no option says, on a terminal."""

    def __init__(self, *, is_silent: bool) -> None:
        self._is_silent = is_silent
        # Whether the command made the password, and has to show it.
        self.made_password = False

    def text(self, question: str, given: str | None, usual: str) -> str:
        if given is not None or self._is_silent:
            return given or usual
        self._check()
        return str(typer.prompt(question, default=usual, err=True))

    def truth(self, question: str, given: bool | None, usual: bool) -> bool:
        if given is not None or self._is_silent:
            return usual if given is None else given
        self._check()
        return typer.confirm(question, default=usual, err=True)

    def password(self, user: str) -> str:
        if given := os.environ.get(_PASSWORD):
            return checked_password(given)
        if self._is_silent:
            self.made_password = True
            return secrets.token_urlsafe(12)
        question = f"Password of {user}"
        return checked_password(
            typer.prompt(question, hide_input=True, confirmation_prompt=True, err=True)
        )

    def _check(self) -> None:
        if not _is_somebody_there():
            raise typer.BadParameter("cannot ask here: give the options that differ, and --yes")


def _run_by(word: str) -> RunBy:
    try:
        return RunBy(word)
    except ValueError:
        raise typer.BadParameter(
            f"--run-by: {word!r} is none of terminal, systemd, compose"
        ) from None


def _check_free(home: Path, names: list[str], *, force: bool) -> None:
    """Refuse to begin what would overwrite a file."""
    found = [name for name in names if (home / name).exists()]
    if found and not force:
        raise typer.BadParameter(
            f"{', '.join(found)} exists in {home}: choose another folder, or overwrite with --force"
        )


def _check(made: dict[str, str]) -> None:
    """Have the server's own checks read the files."""
    with tempfile.TemporaryDirectory(prefix="holdfast-") as place, usable_files():
        file = Path(place, SETTINGS)
        file.write_text(made[SETTINGS], "utf-8")
        try:
            read_settings(file, {})
        except CannotStart as error:
            _refuse(str(error))
        if RIGHTS in made:
            read_rights(made[RIGHTS].encode())


def _refuse(faults: str) -> NoReturn:
    for line in faults.split("\n"):
        complain(line, "the server would not start:")
    raise typer.Exit(2)


def _write(wanted: Wanted, made: dict[str, str], password: str | None) -> None:
    home = wanted.home
    try:
        home.mkdir(parents=True, exist_ok=True)
        (home / "data").mkdir(mode=0o700, exist_ok=True)
        for name, text in made.items():
            (home / name).write_text(text, "utf-8")
        if wanted.user is not None and password is not None:
            (home / USERS).unlink(missing_ok=True)
            with usable_files():
                PasswordFile(home / USERS).put(User(wanted.user, hashed(password), ()))
        if wanted.run_by is RunBy.COMPOSE and os.getuid() == 0:
            for place in (home / "data", *([home / USERS] if wanted.user else [])):
                os.chown(place, owner_in_container(), owner_in_container())
    except OSError as error:
        raise typer.BadParameter(f"cannot write {error.filename}: {error.strerror}") from None


def _tell(wanted: Wanted, names: list[str], password: str | None, *, as_json: bool) -> None:
    written = [str(wanted.home / name) for name in names]
    steps = steps_of(wanted)
    if as_json:
        shown = {"written": written, "user": wanted.user, "password": password, "next": steps}
        print_json(
            {name: value for name, value in shown.items() if value is not None}, is_line=True
        )
        return
    lines = [f"wrote {each}" for each in written]
    if password is not None:
        lines.append(f"the password of {wanted.user}, shown only now: {password}")
    sys.stdout.write("\n".join([*lines, "next:", *(f"  {each}" for each in steps)]) + "\n")


def _is_somebody_there() -> bool:
    return sys.stdin.isatty()
