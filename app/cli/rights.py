"""`holdfast rights`: checks the file of rights, and explains its decisions."""

import json
from pathlib import Path
from typing import Annotated

import typer

from holdfast.bayeux.login import Login, LoginMethod, Right
from holdfast.bayeux.operation import Operation
from holdfast.cli.failures import Exit
from holdfast.cli.login_files import Groups, OptionalRightsPath, RightsPath, usable_files
from holdfast.cli.options import AsJson
from holdfast.cli.output import answer
from holdfast.cli.program import group_of_commands
from holdfast.delivery.channels import Channels
from holdfast.delivery.receivers import NOBODY
from holdfast.login.failures import Unusable
from holdfast.login.rights_file import RightsFile, read_claim, read_rights, without_file
from holdfast.login.rules import Decision, LoginRules, Rule, RuleSource
from holdfast.login.watched_file import read_file
from holdfast.units import counted

_OPERATIONS = "The operation: " + ", ".join(each.value for each in Operation) + "."

program = group_of_commands()


@program.command()
def check(*, file: RightsPath, as_json: AsJson = False) -> None:
    """Check the file of rights."""
    rules = len([rule for rule in _read(file).rules if rule.source is RuleSource.FILE])
    answer({"rules": rules}, f"{file} is valid: {counted(rules, 'rule')}", as_json=as_json)


@program.command()
def explain(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="The subject, or anonymous.")],
    operation: Annotated[Operation, typer.Argument(metavar="OPERATION", help=_OPERATIONS)],
    channel: Annotated[
        str, typer.Argument(metavar="CHANNEL", help="The channel, or a pattern to subscribe to.")
    ],
    *,
    file: OptionalRightsPath = None,
    group: Groups = None,
    claim: Annotated[
        str | None, typer.Option(metavar="JSON", help="The rights that the subject's token brings.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a subject may do something, and which rule of the file or the claim decides.

    Without a file, only the claim gives rights; without either, everything is allowed. The exit
    code is 0 if the operation is allowed, otherwise 1.

    Example: holdfast rights explain joe publish /orders/7 --file rights.toml
    """
    if Channels().get(channel) is None:
        raise typer.BadParameter(f"{channel!r} is neither a channel nor a pattern")
    method = LoginMethod.ANONYMOUS if subject == NOBODY else LoginMethod.TOKEN
    login = Login(subject, method, frozenset(group or []), rights=_claimed(claim))
    rights = without_file(has_claims=claim is not None) if file is None else _read(file)
    if rights.revoked.includes(login):
        found, text = Decision(is_allowed=False), "denied: the subject is revoked"
    else:
        found = LoginRules(rights.rules, login).decide(operation, channel)
        text = f"{'allowed' if found.is_allowed else 'denied'}: {_reason(found)}"
    rule = None if found.rule is None else found.rule.number
    source = None if found.rule is None else found.rule.source.name.lower()
    decided = {"allowed": found.is_allowed, "source": source, "rule": rule}
    answer(decided, text, as_json=as_json)
    if not found.is_allowed:
        raise typer.Exit(Exit.FAILED)


def _read(file: Path) -> RightsFile:
    with usable_files():
        return read_file(file, read_rights)


def _claimed(claim: str | None) -> tuple[Right, ...]:
    if claim is None:
        return ()
    try:
        return read_claim(json.loads(claim))
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"--claim is not JSON: {error}") from None
    except Unusable as error:
        raise typer.BadParameter(f"--claim: {error}") from None


def _reason(found: Decision) -> str:
    rule = found.rule
    if rule is None:
        return "no rule allows it"
    is_built_in = rule.source is RuleSource.BUILT_IN
    name = rule.source.value if is_built_in else f"{rule.source.value} {rule.number}"
    return f"{name}, {_outline(rule)}"


def _outline(rule: Rule) -> str:
    right = rule.right
    names = " ".join(sorted(each.value for each in right.operations))
    verb = "may not" if right.denies else "may"
    return f"{' '.join(sorted(rule.who))} {verb} {names} {' '.join(right.channels)}"
