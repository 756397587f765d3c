"""The common part of the commands for queues of subjects and for work queues."""

from holdfast.cli.options import confirm
from holdfast.cli.output import age, answer
from holdfast.cli.remote import Params, Server

# The columns of lists, after the name.
WAITING = ("waiting", "bytes", age("oldest", "OLDEST"))


def clear_queue(server: Server, path: str, params: Params, question: str, *, yes: bool) -> None:
    """Discard what waits in a queue, once the question is answered."""
    confirm(question, yes=yes)
    done = server.talk(lambda remote: remote.ask("DELETE", path, params=params))
    answer(done, f"{done['discarded']} messages were discarded", as_json=server.as_json)
