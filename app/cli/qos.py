"""Options of messages and subscriptions, in the form of the client."""

import inspect
from typing import Annotated, Any

import orjson
import typer

from holdfast.cli.options import Condition
from holdfast.client.publish_options import OPTIONS, InWords, Option

Options = dict[str, Any]

_FURTHER = "Further options of ext.delivery, such as"

Destinations = Annotated[
    list[str] | None,
    typer.Option(
        "--destination",
        metavar="NAME",
        help="A session (joe/1) or a subject (joe) to address; repeatable.",
    ),
]


def _in_words(name: str, kind: object, option: Option) -> inspect.Parameter:
    """Return an option of the command line for an option of a publish."""
    word = option.in_words or InWords()
    flag = name.removesuffix("_s")
    about = typer.Option(
        f"--{flag}/--no-{flag}" if kind == bool | None else f"--{flag}",
        help=option.help + word.more,
        metavar=word.value,
        min=word.least,
        max=word.most,
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, about]
    )


def _publish_options(
    *,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property", metavar="NAME=VALUE", help="A property for receivers; repeatable."
        ),
    ] = None,
    destinations: Destinations = None,
    force_queuing: Annotated[
        bool, typer.Option(help="Let messages wait for subjects that have no session.")
    ] = False,
    qos: Annotated[
        str | None, typer.Option(metavar="JSON", help=f"{_FURTHER} '{{\"forceUpdate\": false}}'.")
    ] = None,
    **given: object,
) -> Options:
    """Delivery"""
    if force_queuing and not destinations:
        raise typer.BadParameter("--force-queuing needs --destination")
    return {
        **given,
        "properties": _pairs(properties) if properties else None,
        "destinations": [{"name": each, "forceQueuing": force_queuing} for each in destinations]
        if destinations
        else None,
        # Even an empty object lets the server tell the id of the message.
        "qos": _object(qos),
    }


_signature = inspect.signature(_publish_options)
_publish_options.__signature__ = _signature.replace(  # type: ignore[attr-defined]
    parameters=[
        *(_in_words(name, *each) for name, each in OPTIONS.items() if each[1].in_words),
        *list(_signature.parameters.values())[:-1],
    ]
)


def _subscribe_options(
    filter: Condition = None,
    history: Annotated[
        int | None,
        typer.Option(
            min=-1,
            help="Begin with this number of the newest messages that each channel keeps; "
            "-1 for all.",
        ),
    ] = None,
    oneway: Annotated[
        bool, typer.Option(help="Messages count as delivered when they are written.")
    ] = False,
    qos: Annotated[
        str | None, typer.Option(metavar="JSON", help=f"{_FURTHER} '{{\"newestOnly\": true}}'.")
    ] = None,
) -> Options:
    """Selection"""
    return {
        "filter": filter,
        "history": history,
        "qos": {"oneway": True, **_object(qos)} if oneway else _object(qos) or None,
    }


PublishOptions = Annotated[Options, _publish_options]
SubscribeOptions = Annotated[Options, _subscribe_options]


def _pairs(given: list[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise typer.BadParameter(f"--property {name!r}: write NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _object(text: str | None) -> Options:
    if text is None:
        return {}
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"--qos is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise typer.BadParameter("--qos: write an object, such as '{\"local\": false}'")
    return found
