"""`holdfast work`: lists, shows and clears work queues, and shows their receivers."""

from typing import Annotated

import typer

from holdfast.cli.lists import First, print_first
from holdfast.cli.options import ToServer
from holdfast.cli.program import group_of_commands
from holdfast.cli.remote import Params
from holdfast.cli.shared_queue import WAITING, add_queue_commands

program = group_of_commands()

_PATH = "/work-queue"
_RECEIVERS = ("key", "state", "active", "has_connection", "waiting", "in_flight")
Channel = Annotated[
    str, typer.Argument(metavar="CHANNEL", help="The channel, such as /jobs/pictures.")
]


def _place(channel: str) -> tuple[str, Params]:
    return _PATH, {"channel": channel}


add_queue_commands(
    program,
    noun="work queue",
    wait="in",
    lists=("/work-queues", ("channel", *WAITING, "receivers")),
    name=Channel,
    place=_place,
)


@program.command("receivers")
def receivers(*, channel: Channel, shown: First, server: ToServer) -> None:
    """Show the receivers of a work queue, with their entries waiting and in flight."""
    print_first(server, f"{_PATH}/receivers", {"channel": channel}, _RECEIVERS, shown)
