"""The servers of shards that this host has claimed, where a deployment has several hosts.

The first process of the supervisor has no shard: it says which ones are to have servers here. One
server more, whose number follows the last shard, is a door to the shards of other hosts.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from holdfast.supervisor.control import Channel, Do
from holdfast.supervisor.log import log
from holdfast.supervisor.places import SERVING, Place
from holdfast.supervisor.processes import FORMER, Process, close_all
from holdfast.supervisor.system import System

# How long connections of servers that have lost their shards wait for one that takes them.
_PARTED_S = 10.0


class Starter(Protocol):
    """What a supervisor is to this room."""

    places: list[Place]
    system: System
    is_restarting: bool
    is_stopping: bool
    # How many shards all hosts have together; 0 without a list of hosts.
    shards: int

    def begin_again_at(self, place: Place) -> None:
        """Start a server in an empty place."""


class Claimed:
    """Makes places for them, and tells the first process which ones there are."""

    def __init__(self, supervisor: Starter) -> None:
        self._supervisor = supervisor
        # Whom the first process was told of last, and as which process.
        self._told: tuple[object, object] = None, None
        # From where connections come for the server that serves next, and until when it may.
        self._parted: list[tuple[Channel, float]] = []

    @property
    def places(self) -> Sequence[Place]:
        """The places of shards: without a list of hosts, all."""
        places = self._supervisor.places
        return places[1:] if self._supervisor.shards else places

    def shard_of(self, place: Place) -> int:
        """Return the shard of a place; -1 for the process that has none."""
        return place.number - 1 if self._supervisor.shards else place.number

    def text_of(self, place: Place) -> str:
        """Return whose the process of a place is, for people."""
        if place.number > self._supervisor.shards:
            return " that is a door"
        return f" of shard {self.shard_of(place)}" if place.number else " that claims shards"

    def claim(self, wanted: Sequence[Mapping[str, Any]]) -> None:
        """Have a server for each of these shards, unless it has one. It is asked for again."""
        supervisor = self._supervisor
        if supervisor.is_restarting or supervisor.is_stopping:
            return
        taken = {place.number for place in supervisor.places}
        for claim in wanted:
            number = claim["shard"] + 1
            if number not in taken:
                place = Place(number, {}, supervisor.system, claim)
                supervisor.places.append(place)
                supervisor.begin_again_at(place)

    def give(self, shard: int, host: str) -> None:
        """Have the server of a shard give it to another host.

        Its connections stay on this host, if another server here can take them.
        """
        supervisor = self._supervisor
        giving = next((each for each in self.places if self.shard_of(each) == shard), None)
        if giving is None or not giving.is_serving or supervisor.is_restarting:
            return
        ours, theirs = supervisor.system.channel_pair()
        if giving.living is not None:
            # Until it says that it goes on, or has ended.
            giving.living.told = {"say": Do.GIVE}
            giving.living.tell([ours.fileno()], do=Do.GIVE, host=host)
        others = (each for each in self.places if each is not giving and each.is_serving)
        taking = next(others, None)
        if taking is not None and taking.living is not None:
            taking.living.tell([theirs.fileno()], do=Do.ADOPT)
        ours.close()
        theirs.close()

    def _part(self, server: Process) -> None:
        """Have a server hand its connections over, to whichever serves now or next."""
        ours, theirs = self._supervisor.system.channel_pair()
        server.tell([ours.fileno()], do=Do.PART)
        ours.close()
        self._parted.append((theirs, self._supervisor.system.now() + _PARTED_S))

    def _pass_on(self) -> None:
        """Let a server that serves have the connections of servers that have lost their shards."""
        taking = next((each.living for each in self.places if each.is_serving), None)
        waiting, self._parted = self._parted, []
        for theirs, until in waiting:
            if taking is not None:
                taking.tell([theirs.fileno()], do=Do.ADOPT)
            elif self._supervisor.system.now() < until:
                self._parted.append((theirs, until))
                continue
            theirs.close()

    @property
    def is_giving(self) -> bool:
        """Whether a shard is being given to another host, which takes some seconds."""
        livings = (each.living for each in self.places)
        return any(each is not None and each.said == Do.GIVE for each in livings)

    def takes_fenced(self, place: Place, server: Process) -> bool:
        """Return whether the server of a claimed shard has lost it, which concerns no other shard.

        It only hands its connections over from now on.
        """
        if place.claim is None:
            return False
        is_given = server.said == Do.GIVE
        if is_given or (server.said in SERVING and not self._supervisor.is_restarting):
            if not is_given:
                self._part(server)
            server.title = FORMER
            self.leave(place)
        return True

    def leave(self, place: Place) -> None:
        """Have no other server for a shard that another host has, or may open more easily."""
        supervisor = self._supervisor
        supervisor.places.remove(place)
        close_all(place.kept, supervisor.system)
        if place.is_fenced:
            self.tell()
        else:
            shard = self.shard_of(place)
            if shard < supervisor.shards:
                log("error", f"shard {shard} cannot be opened here, and is left to other hosts")
            self.tell(failed=[shard])

    def tell(self, failed: Sequence[int] = ()) -> None:
        """Tell the first process which shards have servers here, which serve, and which failed."""
        if not self._supervisor.shards:
            return
        self._pass_on()
        first, places = self._supervisor.places[0], self.places
        shards = [self.shard_of(each) for each in places]
        serving = [self.shard_of(each) for each in places if each.is_serving]
        told = first.living, (shards, serving)
        # Until it serves, it waits for something else.
        if first.living is not None and first.is_serving and (told != self._told or failed):
            self._told = told
            first.living.tell(do=Do.HAVE, shards=shards, serving=serving, failed=[*failed])
