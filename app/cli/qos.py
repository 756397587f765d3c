"""Options of messages and subscriptions, in the form of the client."""

from typing import Annotated, Any

import orjson
import typer

from holdfast.cli.options import Condition

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


def _publish_options(
    key: Annotated[
        str | None,
        typer.Option(
            help="Publish key: of several messages with the same key, only the first is "
            "delivered. May have placeholders."
        ),
    ] = None,
    priority: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=9,
            metavar="RANK",
            help="0 to 9: higher ranks overtake lower ones that wait; default: 5.",
        ),
    ] = None,
    persistent: Annotated[
        bool | None,
        typer.Option(
            "--persistent/--no-persistent",
            help="Whether the messages survive a restart of the server.",
        ),
    ] = None,
    lifetime: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="SECONDS",
            help="How long the messages are worth delivering; default: without end.",
        ),
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option(
            min=0.001, metavar="SECONDS", help="Deliver the messages later, after this time."
        ),
    ] = None,
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
) -> Options:
    """Delivery"""
    if force_queuing and not destinations:
        raise typer.BadParameter("--force-queuing needs --destination")
    return {
        "key": key,
        "priority": priority,
        "persistent": persistent,
        "lifetime_s": lifetime,
        "delay_s": delay,
        "properties": _pairs(properties) if properties else None,
        "destinations": [{"name": each, "forceQueuing": force_queuing} for each in destinations]
        if destinations
        else None,
        # Even an empty object lets the server tell the id of the message.
        "qos": _object(qos),
    }


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
