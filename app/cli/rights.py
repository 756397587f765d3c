"""`holdfast rights`: checks the file of rights, and explains its decisions."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.bayeux.wire.login import Login, LoginMethod, Right
from holdfast.bayeux.wire.operation import Operation
from holdfast.cli.failures import Exit
from holdfast.cli.flags import ConfigFile
from holdfast.cli.login_files import Groups, RightsPath, usable_files
from holdfast.cli.options import AsJson
from holdfast.cli.output import answer
from holdfast.cli.program import group_of_commands
from holdfast.cli.serve import read_settings, telling_failures
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.login.failures import Unusable
from holdfast.login.rights_check import Answer
from holdfast.login.rights_check import explain as answers_for
from holdfast.login.rights_file import RightsFile, read_claim, read_rights, without_file
from holdfast.login.rules import Decision, Rule, RuleSource
from holdfast.login.watched_file import read_file
from holdfast.units import counted

_OPERATIONS = "The operation: " + ", ".join(each.value for each in Operation) + "."

program = group_of_commands()


@program.command()
def check(*, file: RightsPath = None, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Check the file of rights: the one in the server's settings, if no other one is named."""
    file = file or _of_settings(config)
    if file is None:
        raise typer.BadParameter("the settings have no rights: name the file with --file")
    rules = len([rule for rule in _read(file).rules if rule.source is RuleSource.FILE])
    answer({"rules": rules}, f"{file} is valid: {counted(rules, 'rule')}", as_json=as_json)


@program.command()
def explain(
    subject: Annotated[str, typer.Argument(help="The subject, or anonymous.")],
    operation: Annotated[Operation, typer.Argument(help=_OPERATIONS)],
    channel: Annotated[str, typer.Argument(help="The channel, or a pattern to subscribe to.")],
    *,
    file: RightsPath = None,
    config: ConfigFile = None,
    group: Groups = None,
    claim: Annotated[
        str | None, typer.Option(metavar="JSON", help="The rights that the subject's token brings.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a subject may do something, and which rule of the file or the claim decides.

    It also says whether the subject has the other rights that the server asks for: with `request`,
    for example, `publish`; and on a channel without subscribers, `create`. The exit code is 0 if
    the operation is allowed whether or not there are subscribers, otherwise 1. The file is the
    one in the server's settings, if no other one is named. Without a file, only the claim gives
    rights; without either, everything is allowed.

    Example: holdfast rights explain joe publish /orders/7 --file rights.toml
    """
    method = LoginMethod.ANONYMOUS if subject == NOBODY else LoginMethod.TOKEN
    login = Login(subject, method, frozenset(group or []), rights=_claimed(claim))
    file = file or _of_settings(config)
    rights = without_file(has_claims=claim is not None) if file is None else _read(file)
    try:
        answers = answers_for(rights, login, operation, channel)
    except Unusable as error:
        raise typer.BadParameter(str(error)) from None
    if rights.revoked.includes(login):
        answers = [Answer(operation, is_allowed=False)]
        text = "denied: the subject is revoked"
    else:
        told = [each for each in answers if _is_told(operation, each)] or answers
        text = "\n".join(_line(operation, each) for each in told)
    allowed = all(each.is_allowed for each in answers)
    decisive = next((each for each in answers if not each.is_allowed), answers[0])
    asked = [{"right": each.right.value, **_outcome(each)} for each in answers]
    outcome = {**_outcome(decisive), "asked": asked}
    answer(outcome, text, as_json=as_json)
    if not allowed:
        raise typer.Exit(Exit.FAILED)


def _of_settings(config: Path | None) -> Path | None:
    """Return the file that the server reads."""
    with telling_failures():
        return read_settings(config, {}).rights


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


def _is_told(operation: Operation, given: Answer) -> bool:
    """Return whether to tell an answer: other rights that are there decide nothing."""
    return given.right in (operation, Operation.CREATE) or not given.is_allowed


def _line(operation: Operation, given: Answer) -> str:
    verdict, reason = "allowed" if given.is_allowed else "denied", _reason(given.decision)
    if given.decision is not None and given.decision.is_asked:
        verdict = "the backend decides"
    if given.right is operation:
        return f"{verdict}: {reason}"
    if given.right is Operation.CREATE:
        return f"where nobody has subscribed, it also needs create: {verdict}: {reason}"
    return f"{verdict}: it needs {given.right.value}: {reason}"


def _outcome(given: Answer) -> dict[str, Any]:
    rule = None if given.decision is None else given.decision.rule
    is_asked = given.decision is not None and given.decision.is_asked
    return {
        **({"asks_backend": True} if is_asked else {}),
        "allowed": given.is_allowed,
        "source": None if rule is None else rule.source.name.lower(),
        "rule": None if rule is None else rule.number,
    }


def _reason(found: Decision | None) -> str:
    if found is None:
        return "only operators and readers may do this"
    rule = found.rule
    if rule is None:
        return "no rule allows it"
    is_built_in = rule.source is RuleSource.BUILT_IN
    name = rule.source.value if is_built_in else f"{rule.source.value} {rule.number}"
    return f"{name}, {_outline(rule)}"


def _outline(rule: Rule) -> str:
    right = rule.right
    names = " ".join(sorted(each.value for each in right.operations))
    verb = "ask" if rule.asks else "may not" if right.denies else "may"
    return f"{' '.join(sorted(rule.who))} {verb} {names} {' '.join(right.channels)}"
