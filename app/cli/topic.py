"""`holdfast topic`: lists, shows and erases topics."""

from typing import Annotated

import typer

from holdfast.cli.lists import Range, print_list
from holdfast.cli.options import (
    Channel,
    Prefix,
    ToServer,
    Yes,
    confirm,
)
from holdfast.cli.output import Json, answer, print_facts
from holdfast.cli.program import group_of_commands
from holdfast.cli.remote import Remote
from holdfast.units import counted

program = group_of_commands()

_TOPICS = ("channel", "state", "kept", "queued", "subscribers")
_PATH = "/topic"


@program.command("list")
def list_topics(*, prefix: Prefix = "", shown: Range, server: ToServer) -> None:
    """List topics by name, with what refers to them."""
    print_list(server, "/topics", {"prefix": prefix}, _TOPICS, shown)


@program.command("show")
def show_topic(*, channel: Channel, server: ToServer) -> None:
    """Show one topic: its state, its configuration, and what refers to it."""
    print_facts(server.get(_PATH, {"channel": channel}), as_json=server.as_json)


@program.command("erase")
def erase_topic(
    *,
    channel: Channel,
    force: Annotated[bool, typer.Option(help="Discard messages that wait in queues.")] = False,
    yes: Yes = False,
    server: ToServer,
) -> None:
    """Erase a topic: its configuration, its history and the subscriptions to it.

    Messages that wait in queues are still delivered, unless you add --force.
    """

    async def conversation(remote: Remote) -> Json:
        found = await remote.get(_PATH, {"channel": channel})
        end = counted(found["subscribers"], "subscription ends", "subscriptions end")
        waiting = counted(found["queued"], "waiting message is", "waiting messages are")
        what = "discarded" if force else "still delivered"
        confirm(f"Erase {channel}? {end}; {waiting} {what}.", yes=yes)
        await remote.ask("DELETE", _PATH, params={"channel": channel, "force": force})
        return {"channel": channel, "erased": True}

    done = server.talk(conversation)
    answer(done, f"{channel} was erased", as_json=server.as_json)
