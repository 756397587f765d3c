"""`holdfast user`: users who log in with a password."""

import getpass
import sys
from typing import Annotated, NoReturn

import typer

from holdfast.bayeux.wire.terms import is_subject
from holdfast.cli.failures import failed
from holdfast.cli.login_files import Groups, PasswordsPath, checked_password, usable_files
from holdfast.cli.options import AsJson
from holdfast.cli.output import answer, print_json, print_table
from holdfast.cli.program import group_of_commands
from holdfast.login.passwords import PasswordFile, User, check_groups, hashed

program = group_of_commands()

Subject = Annotated[str, typer.Argument(help="The user, such as joe.")]


@program.command()
def add(
    user: Subject, *, file: PasswordsPath, group: Groups = None, as_json: AsJson = False
) -> None:
    """Add a user. The password comes from the terminal, or from standard input.

    Example: holdfast user add joe --group sales --file users
    """
    if not is_subject(user):
        raise typer.BadParameter(
            f"{user!r} is not a user's name: use letters, digits and . @ + ~ -, at least two"
        )
    with usable_files():
        groups = check_groups(group or [])
        users = PasswordFile(file)
        if user in users.users():
            raise typer.BadParameter(
                f"{user} exists: change the password with holdfast user passwd"
            )
        users.put(User(user, hashed(_read_password(user)), groups))
    answer({"user": user, "groups": groups}, f"added {user}", as_json=as_json)


@program.command()
def passwd(
    user: Subject, *, file: PasswordsPath, group: Groups = None, as_json: AsJson = False
) -> None:
    """Change the password of a user, and the groups if any are given."""
    with usable_files():
        users = PasswordFile(file)
        known = users.users().get(user)
        if known is None:
            _unknown(user)
        groups = check_groups(group) if group else known.groups
        users.put(User(user, hashed(_read_password(user)), groups))
    answer({"user": user, "groups": groups}, f"changed {user}", as_json=as_json)


@program.command("list")
def show(*, file: PasswordsPath, as_json: AsJson = False) -> None:
    """List the users with their groups."""
    with usable_files():
        users = sorted(PasswordFile(file).users().values(), key=lambda user: user.subject)
    if as_json:
        print_json([{"user": each.subject, "groups": each.groups} for each in users])
    else:
        print_table(("USER", "GROUPS"), [(each.subject, " ".join(each.groups)) for each in users])


@program.command()
def remove(user: Subject, *, file: PasswordsPath, as_json: AsJson = False) -> None:
    """Remove a user. The user's sessions continue; revoke the subject in the rights to end them."""
    with usable_files():
        if not PasswordFile(file).remove(user):
            _unknown(user)
    hint = "list the subject in [revoked] of the rights to end its sessions, too"
    answer({"user": user}, f"removed {user}; {hint}", as_json=as_json)


def _unknown(user: str) -> NoReturn:
    raise failed(f"{user} is not in the file: see holdfast user list")


def _read_password(user: str) -> str:
    """Ask twice on a terminal; otherwise read a line."""
    if sys.stdin.isatty():
        password = getpass.getpass(f"Password of {user}: ")
        if password != getpass.getpass("Again: "):
            raise typer.BadParameter("the two passwords differ: try again")
    else:
        password = sys.stdin.readline().rstrip("\n")
    return checked_password(password)
