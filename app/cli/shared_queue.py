"""The commands that subjects' queues and work queues have in common: list, show and clear."""

from collections.abc import Callable
from typing import Any

from holdfast.cli.lists import First, Range, print_first, print_list
from holdfast.cli.options import ToServer, Yes, confirm
from holdfast.cli.output import Columns, age, answer
from holdfast.cli.program import Program
from holdfast.cli.remote import Params
from holdfast.cli.session import ENTRIES
from holdfast.units import counted

# The columns of lists, after the name.
WAITING = ("waiting", "bytes", age("oldest", "OLDEST"))


def add_queue_commands(
    program: Program,
    *,
    noun: str,
    wait: str,
    lists: tuple[str, Columns],
    name: Any,  # noqa: ANN401 - an annotated type
    place: Callable[[str], tuple[str, Params]],
) -> None:
    """Add the commands for queues of one kind.

    Args:
        program: The group of these commands.
        noun: What has such a queue.
        wait: The preposition: messages wait `for` a subject, and `in` a work queue.
        lists: The path of the list, and its columns.
        name: The argument that names a queue.
        place: Returns the path of a queue, and its parameters.
    """

    @program.command("list", help=f"List {noun}s {wait} which messages wait.")
    def list_queues(*, shown: Range, server: ToServer) -> None:
        path, columns = lists
        print_list(server, path, {}, columns, shown)

    @program.command("show", help=f"Show the first messages that wait {wait} a {noun}.")
    def show(*, queue: name, shown: First, server: ToServer) -> None:
        path, params = place(queue)
        print_first(server, path, params, ENTRIES, shown)

    @program.command("clear", help=f"Discard all messages that wait {wait} a {noun}.")
    def clear(*, queue: name, yes: Yes = False, server: ToServer) -> None:
        confirm(f"Discard all messages that wait {wait} {queue}?", yes=yes)
        path, params = place(queue)
        done = server.talk(lambda remote: remote.ask("DELETE", path, params=params))
        text = counted(done["discarded"], "message was discarded", "messages were discarded")
        answer(done, text, as_json=server.as_json)
