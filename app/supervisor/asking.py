"""How a command asks the supervisor of a server for something."""

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from select import select
from typing import Any

from holdfast.supervisor.control import Channel, channel_pair, socket_for_commands
from holdfast.supervisor.packets import PeerGone


def ask(path: Path, **request: object) -> Iterator[dict[str, Any]]:
    """Send a request to the socket at this path; yields what the supervisor says about it.

    Raises `OSError` if there is no supervisor.
    """
    answers, theirs = channel_pair()
    with closing(answers):
        with closing(theirs), socket_for_commands() as commands:
            commands.connect(str(path))
            # Until the supervisor has read what others have asked.
            select([], [commands], [])
            Channel(commands).send([theirs.fileno()], **request)
        with suppress(PeerGone):
            while True:
                select([answers], [], [])
                while (parcel := answers.receive()) is not None:
                    yield parcel.fields
