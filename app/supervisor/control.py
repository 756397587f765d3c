"""Parcels between the supervisor, its importer and its servers, and what they may say.

Each parcel is a packet: one JSON object, with the file descriptors that it gives away.
"""

import json
import os
import socket
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from holdfast.supervisor.packets import PACKETS, PacketRefused, PacketSocket, close_all

# Names the descriptor of the channel to the supervisor, in the environment of what it starts.
VARIABLE = "HOLDFAST_CONTROL"
# Has what a supervisor leaves to the new program that it becomes.
STATE_VARIABLE = "HOLDFAST_SUPERVISOR_STATE"
# Of the form of that. An importer says which one the code that it has imported can go on with.
STATE_VERSION = 1
# Of kept descriptors: the lock of the data directory, the sockets at which other shards of this
# machine and of other machines connect, and the socket for commands.
LOCK = "lock"
LINK = "link"
FAR_LINK = "link.tcp"
CONTROL = "control"
# Where commands find that socket, in the data directory.
CONTROL_FILE = "control.sock"
# Before the numbers of sockets at the address that one shard has for itself.
OWN = "own"
# In bytes. Every parcel of either side fits in.
LARGEST_PARCEL = 16 * 1024
# In characters, each of which takes at most twelve bytes.
_LONGEST_REASON = 1000
# The system passes at most 253 in one parcel.
MOST_DESCRIPTORS = 64


def is_own(name: str) -> bool:
    """Return whether each shard has its own descriptor of this name. Others are all shards'."""
    return name in (LOCK, LINK, FAR_LINK) or name.startswith(f"{OWN}.")


class Say(StrEnum):
    """What a server or an importer says to the supervisor, as `{"say": ...}`."""

    # Of the first of several: how many they are, and what all of them inherit.
    LISTENING = "listening"
    # Of a standby: another server has the store. With what the next server inherits.
    WAITING = "waiting"
    # Of a server whose store another one has taken, or has all the time.
    FENCED = "fenced"
    # Of the first process on a host of several: the shards that are to have servers here.
    CLAIM = "claim"
    # Of the same: a shard that is to be given to another host.
    GIVE = "give"
    PREPARED = "prepared"
    # Of each of several, which serves when it is told so: then all have opened their stores.
    OPENED = "opened"
    READY = "ready"
    # Of each of several, which is to leave or to end: nothing that it has begun needs the others.
    SETTLED = "settled"
    LEFT = "left"
    BACK = "back"
    FAILED = "failed"
    ALIVE = "alive"
    # Of an importer; the last two over the channel of the server that it has forked.
    IMPORTED = "imported"
    FORKED = "forked"
    ENDED = "ended"


class Do(StrEnum):
    """What one process asks of another, as `{"do": ...}`: mostly the supervisor of a server."""

    START = "start"
    LEAVE = "leave"
    OPEN = "open"
    # Of a server whose shard another host has: to hand its connections over, and end.
    PART = "part"
    SERVE = "serve"
    # Of the first of several servers: now all serve.
    WELCOME = "welcome"
    # Of each of several: how often the servers of each shard have ended, and how.
    KNOW = "know"
    # Of the first process on a host of several: which shards have servers here.
    HAVE = "have"
    # Of a server: give its shard to another host; and take the connections of one that does.
    GIVE = "give"
    ADOPT = "adopt"
    # Of each of several that have settled: all have, so none needs it any more.
    REST = "rest"
    TAKE_BACK = "take back"
    GO = "go"
    # Of an importer.
    FORK = "fork"
    # Of the supervisor itself, by `holdfast restart`.
    RESTART = "restart"


class Ends(NamedTuple):
    """The ends of the servers of one shard, each of which the supervisor has replaced."""

    times: int = 0
    # How the last one ended, in words.
    last: str = ""


class Parcel(NamedTuple):
    """What was received; the descriptors belong to the receiver, who must close them."""

    fields: dict[str, Any]
    descriptors: list[int]

    def close(self) -> None:
        """Close its descriptors."""
        close_all(self.descriptors)


class Channel:
    """One end of a pair of sockets that keeps parcels apart; it never waits.

    Where it is readable (`fileno`, for a selector or `loop.add_reader`), call `receive` until it
    returns None.
    """

    def __init__(self, end: socket.socket) -> None:
        self._packets = PacketSocket(end, LARGEST_PARCEL, MOST_DESCRIPTORS)

    @classmethod
    def of_descriptor(cls, descriptor: int) -> "Channel":
        """Return the channel of an inherited or received descriptor, which it then owns."""
        os.set_inheritable(descriptor, False)
        return cls(socket.socket(fileno=descriptor))

    def fileno(self) -> int:
        return self._packets.fileno()

    def send(self, descriptors: Sequence[int] = (), /, **fields: object) -> None:
        """Send a parcel with duplicates of the descriptors; the sender still owns its own."""
        data = json.dumps(fields).encode()
        if len(data) > LARGEST_PARCEL or len(descriptors) > MOST_DESCRIPTORS:
            raise PacketRefused(
                f"a parcel of {len(data)} bytes with {len(descriptors)} descriptors: "
                f"at most {LARGEST_PARCEL} bytes with {MOST_DESCRIPTORS} can be sent"
            )
        self._packets.send(data, descriptors)

    def receive(self) -> Parcel | None:
        """Return the next parcel, or None if there is none yet; raises PeerGone at the end."""
        packet = self._packets.receive()
        if packet is None:
            return None
        try:
            if packet.lacks_some:
                raise PacketRefused("a parcel has lost descriptors: this process has too many")
            fields = json.loads(packet.data)
            if not isinstance(fields, dict):
                raise PacketRefused("a parcel is not a JSON object")
        except (ValueError, RecursionError) as error:
            packet.close()
            raise PacketRefused(str(error)) from None
        return Parcel(fields, packet.descriptors)

    def close(self) -> None:
        self._packets.close()


def channel_pair() -> tuple[Channel, Channel]:
    """Return both ends of a new channel."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, PACKETS)
    for each in (ours, theirs) if sys.platform != "linux" else ():
        # macOS refuses datagrams of more than 2 KiB otherwise.
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * LARGEST_PARCEL)
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * LARGEST_PARCEL)
    return Channel(ours), Channel(theirs)


def socket_for_commands() -> socket.socket:
    """Return a new socket. What it receives are parcels, each with a channel for the answers."""
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


def reason(text: str) -> str:
    """Return why something failed in a form that fits into a parcel; the log has all of it."""
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


def given_channel() -> Channel | None:
    """Return the channel to the supervisor that started this process, once; None if none did."""
    number = os.environ.pop(VARIABLE, None)
    return Channel.of_descriptor(int(number)) if number else None
