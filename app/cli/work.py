"""`holdfast work`: lists, shows and clears work queues, and shows their receivers."""

from typing import Annotated

import typer

from holdfast.cli.lists import First, Range, print_first, print_list
from holdfast.cli.options import ToServer, Yes, gathered, group_of_commands
from holdfast.cli.session import ENTRIES
from holdfast.cli.shared_queue import WAITING, clear_queue

program = group_of_commands()

_PATH = "/work-queue"
_QUEUES = ("channel", *WAITING, "receivers")
_RECEIVERS = ("key", "state", "active", "connected", "waiting", "handed")
Channel = Annotated[
    str, typer.Argument(metavar="CHANNEL", help="The channel, such as /jobs/pictures.")
]


@program.command("list")
@gathered
def list_queues(*, shown: Range, server: ToServer) -> None:
    """List the work queues in which messages wait."""
    print_list(server, "/work-queues", {}, _QUEUES, shown)


@program.command("show")
@gathered
def show(*, channel: Channel, limit: First = 20, server: ToServer) -> None:
    """Show the first messages that wait in a work queue."""
    print_first(server, _PATH, {"channel": channel, "limit": limit}, ENTRIES)


@program.command("receivers")
@gathered
def receivers(*, channel: Channel, limit: First = 20, server: ToServer) -> None:
    """Show sessions that receive from a work queue, with what each has to do."""
    print_first(server, f"{_PATH}/receivers", {"channel": channel, "limit": limit}, _RECEIVERS)


@program.command("clear")
@gathered
def clear(*, channel: Channel, yes: Yes = False, server: ToServer) -> None:
    """Discard all messages that wait in a work queue."""
    question = f"Discard all messages that wait in {channel}?"
    clear_queue(server, _PATH, {"channel": channel}, question, yes=yes)
