"""`holdfast rights`: checks the file of rights, and explains its decisions."""

from typing import Annotated

import typer

from holdfast.bayeux.login import Login, LoginMethod
from holdfast.bayeux.operation import Operation
from holdfast.cli.failures import Exit
from holdfast.cli.login_files import Groups, RightsPath, usable_files
from holdfast.cli.options import AsJson
from holdfast.cli.output import answer
from holdfast.delivery.channels import Channels
from holdfast.delivery.receivers import NOBODY
from holdfast.login.rights_file import RightsFile, read_rights
from holdfast.login.rules import Decision, LoginRules, Rule
from holdfast.login.watched_file import read_file

program = typer.Typer(
    help="Check and explain rights.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@program.command()
def check(*, file: RightsPath, as_json: AsJson = False) -> None:
    """Check the file of rights."""
    rules = len([rule for rule in _read(file).rules if rule.number])
    answer({"rules": rules}, f"{file} is valid: {rules} rules", as_json=as_json)


@program.command()
def explain(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="The subject, or anonymous.")],
    operation: Annotated[Operation, typer.Argument(help="The operation.")],
    channel: Annotated[str, typer.Argument(help="The channel, or a pattern to subscribe to.")],
    *,
    file: RightsPath,
    group: Groups = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a subject may do something, and which rule decides.

    The exit code is 0 if the operation is allowed, otherwise 1.
    """
    if Channels().get(channel) is None:
        raise typer.BadParameter(f"{channel!r} is neither a channel nor a pattern")
    method = LoginMethod.ANONYMOUS if subject == NOBODY else LoginMethod.TOKEN
    login = Login(subject, method, frozenset(group or []))
    rights = _read(file)
    if rights.revoked.includes(login):
        found, text = Decision(is_allowed=False), "denied: the subject is revoked"
    else:
        found = LoginRules(rights.rules, login).decide(operation, channel)
        text = f"{'allowed' if found.is_allowed else 'denied'}: {_reason(found)}"
    rule = None if found.rule is None else found.rule.number
    answer({"allowed": found.is_allowed, "rule": rule}, text, as_json=as_json)
    if not found.is_allowed:
        raise typer.Exit(Exit.FAILED)


def _read(file: "RightsPath") -> RightsFile:
    with usable_files():
        return read_file(file, read_rights)


def _reason(found: Decision) -> str:
    if found.rule is None:
        return "no rule allows it"
    name = f"rule {found.rule.number}" if found.rule.number else "the built-in rule"
    return f"{name}, {_outline(found.rule)}"


def _outline(rule: Rule) -> str:
    names = " ".join(sorted(each.value for each in rule.operations))
    verb = "may not" if rule.denies else "may"
    return f"{' '.join(sorted(rule.who))} {verb} {names} {' '.join(rule.channels)}"
