"""Notes what servers do that no client and no store sees, without a change of their code."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from holdfast.bayeux.far_work.borrowing import Borrows
from holdfast.bayeux.publish.made_topics import MadeTopics
from holdfast.bayeux.services.far_topics import FarTopics
from holdfast.bayeux.state.system_events import SystemEvents
from holdfast.compose.storage import Storage
from holdfast.delivery.shared_queues.lent_work import LentWork
from holdfast.sharding.member import Member
from holdfast.store.opening.lease import Lease
from holdfast.store.opening.write_right import WriteRight
from holdfast.web.doors.adopted_lane import AdoptedLane
from holdfast.web.forwarding import far_shard
from holdfast.web.forwarding.far_socket import FarSocket
from holdfast.web.forwarding.passages import PassageOut
from holdfast.web.forwarding.request_door import Door
from holdfast.web.giving import under_way
from holdfast.web.giving.giver import Giver
from holdfast.web.websockets.open_socket import Socket
from tests.simulation.environment import running_process
from tests.simulation.process import Process

# Where something happens, and what.
_WATCHED: tuple[tuple[object, str, str], ...] = (
    (Lease, "_fall_silent", "a server fell silent"),
    (Lease, "_speak_again", "a server spoke again"),
    (WriteRight, "_open_claimed", "a host has claimed a shard"),
    (Storage, "offer_to", "a shard was offered to another host"),
    (Member, "miss", "a gap in a log was noted"),
    (far_shard, "refuse", "a request was given up with its link"),
    (LentWork, "finish", "another shard has done work"),
    (LentWork, "begin_again", "another shard had work before its home started"),
    (LentWork, "return_refused", "another shard gave work back"),
    (LentWork, "return_lost", "another shard has lost work"),
    (FarTopics, "erase", "a home has erased a topic"),
    (FarTopics, "_tell_erased", "another shard has erased a topic"),
    (FarTopics, "_heard_used", "a home has asked whether a topic may end"),
    (MadeTopics, "_go_on", "a publish has waited until all knew a topic"),
    (PassageOut, "_prune", "a shard has left out a channel"),
    (PassageOut, "_graft", "a shard has left out a channel no more"),
    (FarSocket, "push", "events went to a socket at another shard"),
    (FarSocket, "leave", "another shard has lost a socket"),
    (Socket, "restart", "a socket was closed when another shard was lost"),
    (Door, "_leave_to", "a socket has got a session of another shard"),
    (under_way, "part", "a connection was given to another shard"),
    (Giver, "_take_back", "a connection was taken back"),
    (AdoptedLane, "connection_made", "a socket was given to another shard"),
    (Borrows, "_withdraw", "another shard had work for too long"),
)


@contextmanager
def watched() -> Iterator[None]:
    """Mark what servers do meanwhile."""
    with ExitStack() as stack:
        for owner, name, mark in _WATCHED:
            stack.enter_context(patch.object(owner, name, _noted(getattr(owner, name), mark)))
        stack.enter_context(patch.object(SystemEvents, "publish", _counted(SystemEvents.publish)))
        yield


def _noted(real: Callable[..., Any], mark: str) -> Callable[..., Any]:
    def note(*args: Any, **options: Any) -> Any:
        process = running_process()
        if isinstance(process, Process):
            process.world.coverage.mark(mark)
        return real(*args, **options)

    return note


def _counted(real: Callable[..., None]) -> Callable[..., None]:
    """Count the messages that servers publish by themselves: only those that somebody may hear."""

    def count(events: SystemEvents, event: Any, *args: Any, **options: Any) -> None:
        process = running_process()
        channel = events._channels.named(event["channel"])
        if isinstance(process, Process) and events.has_listeners(channel):
            process.world.coverage.own_messages += 1
        real(events, event, *args, **options)

    return count
