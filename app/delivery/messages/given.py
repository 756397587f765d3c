"""What a process that leaves gives to the next one: everything in memory that the store lacks.

`bayeux/leaving` makes and reads these, `store/given_slices.py` writes and loads them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message

# How many entries of messages are remembered because other queues may have them, too.
MOST_SHARED: Final = 10_000


class GivenKind(Enum):
    """What something given is about."""

    # The whole server.
    SERVER = "server"
    # A session: how far it is and, unless the store has these, its record and its messages.
    SESSION = "session"
    # A shared queue.
    QUEUE = "queue"
    # The history of a channel.
    HISTORY = "history"
    # Ids of clients whose sessions other clients have taken over.
    REPLACED = "replaced"
    # Some of the members of a channel, in the order in which they joined.
    PRESENCE = "presence"
    # Some of the members of channels whose sessions another shard has.
    FAR_MEMBERS = "far members"
    # Outstanding requests of sessions that are not stored.
    REQUESTS = "requests"


class GivenEntry(NamedTuple):
    """A message of a queue or a history, and how far it is."""

    mark: Mark
    # None if the store has the entry, and therefore its message.
    message: Message | None
    # What the mark does not say, by name.
    more: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Given:
    """Something that is given. `key` names the session, the queue or the channel."""

    kind: GivenKind
    key: str
    fields: Mapping[str, Any]
    entries: Sequence[GivenEntry] = ()
