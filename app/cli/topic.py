"""`holdfast topic`: lists, shows and erases topics, shows what channels keep, and holds them."""

from typing import Annotated

import typer

from holdfast.cli.holds import Reason, Until, hold_body
from holdfast.cli.lists import DATA, First, Most, print_first, print_list
from holdfast.cli.options import ToServer, Yes, confirm, gathered, group_of_commands
from holdfast.cli.output import Json, age, answer, print_facts, print_json
from holdfast.cli.remote import Params, Remote

program = group_of_commands()

_TOPICS = ("channel", "state", "kept", "queued", "subscribers")
_PATH = "/topic"
_HELD = "/held-channels"
_MESSAGES = ("id", "sender", age("published", "AGE"), "bytes", DATA)
Channel = Annotated[str, typer.Argument(metavar="CHANNEL", help="The channel, such as /orders/7.")]


@program.command("list")
@gathered
def list_topics(
    *,
    prefix: Annotated[str, typer.Option("--prefix", help="Beginning of the channel.")] = "",
    limit: Most = None,
    server: ToServer,
) -> None:
    """List topics by name, with what refers to them."""
    print_list(server, "/topics", {"prefix": prefix}, _TOPICS, limit)


@program.command("show")
@gathered
def show_topic(*, channel: Channel, server: ToServer) -> None:
    """Show one topic: its state, its configuration, and what refers to it."""
    found = server.get(_PATH, {"channel": channel})
    if server.as_json:
        print_json(found)
    else:
        print_facts(found, ())


@program.command("get")
@gathered
def get_messages(
    *,
    channel: Channel,
    filter: Annotated[
        str | None,
        typer.Option(
            "--filter", show_default=False, help="Only messages that pass: data.price > 100."
        ),
    ] = None,
    limit: First = 20,
    server: ToServer,
) -> None:
    """Show the newest messages that a channel keeps, the newest first."""
    asked: Params = {"channel": channel, "filter": filter, "limit": limit}
    print_first(server, f"{_PATH}/history", asked, _MESSAGES)


@program.command("hold")
@gathered
def hold(*, channel: Channel, reason: Reason = "", until: Until = None, server: ToServer) -> None:
    """Hold back a channel, whether or not it is a topic.

    Its messages wait in the queues, and none is lost, until the given time or until you release it.
    """
    body = {"channel": channel, **hold_body(reason, until)}
    done = server.talk(lambda remote: remote.ask("PUT", _HELD, body))
    answer(done, f"{channel} is held back", as_json=server.as_json)


@program.command("release")
@gathered
def release(*, channel: Channel, server: ToServer) -> None:
    """Release a channel that you or the server holds back."""
    server.talk(lambda remote: remote.ask("DELETE", _HELD, params={"channel": channel}))
    done = {"channel": channel, "active": True}
    answer(done, f"{channel} is released", as_json=server.as_json)


@program.command("erase")
@gathered
def erase_topic(
    *,
    channel: Channel,
    force: Annotated[bool, typer.Option("--force", help="Discard what waits in queues.")] = False,
    yes: Yes = False,
    server: ToServer,
) -> None:
    """Erase a topic: its configuration, its history and the subscriptions to it.

    What waits in queues is still delivered, unless you add --force.
    """

    async def conversation(remote: Remote) -> Json:
        found = await remote.get(_PATH, {"channel": channel})
        waiting = f"{found['queued']} waiting messages are " + (
            "discarded" if force else "still delivered"
        )
        confirm(f"Erase {channel}? {found['subscribers']} subscriptions end; {waiting}.", yes=yes)
        await remote.ask("DELETE", _PATH, params={"channel": channel, "force": force})
        return {"channel": channel, "erased": True}

    done = server.talk(conversation)
    answer(done, f"{channel} was erased", as_json=server.as_json)
