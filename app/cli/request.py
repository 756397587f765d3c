"""`holdfast request`: asks the responders on a channel, and prints the replies."""

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

import typer

from holdfast.cli.clients import AsClient
from holdfast.cli.content import Data
from holdfast.cli.failures import Exit
from holdfast.cli.output import print_json
from holdfast.cli.program import Program
from holdfast.cli.qos import Destinations
from holdfast.client import Client, Message

program = Program()


class Mode(Enum):
    """The receivers that are asked, and the replies that count."""

    FIRST = "first"
    ONE = "one"
    ALL = "all"


@program.command()
def request(
    *,
    channel: Annotated[str, typer.Argument(help="The channel, such as /prices/ask.")],
    data: Data,
    timeout: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="How long to wait for the reply.")
    ] = 10.0,
    mode: Annotated[
        Mode,
        typer.Option(
            metavar="first|one|all",
            help="first: ask all receivers, print the first reply; one: ask one receiver; all: ask "
            "all receivers, print every reply.",
        ),
    ] = Mode.FIRST,
    destinations: Destinations = None,
    login: AsClient,
) -> None:
    """Ask the responders on a channel; print the reply.

    A reply is one line of JSON: its data, or with --json an object with data and sender. The exit
    code is 1 if there is no reply; the error says why.

    Example: holdfast request /prices/ask '{"of": "tea"}' --timeout 2
    """

    async def ask(client: Client) -> Sequence[Message]:
        if mode is Mode.ALL:
            return await client.request_all(
                channel, data, timeout_s=timeout, destinations=destinations
            )
        one = mode.value
        reply = await client.request(
            channel, data, timeout_s=timeout, mode=one, destinations=destinations
        )
        return [reply]

    async def conversation() -> None:
        async with login.client(channels=[channel]) as client:
            for reply in await ask(client):
                whole = {"sender": reply.sender, "data": reply.data}
                print_json(whole if login.as_json else reply.data, is_line=True)

    if not login.run(conversation):
        raise typer.Exit(Exit.FAILED)
