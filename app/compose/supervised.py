"""The supervisor, as its server sees it: what it stores, and what it asks for."""

import asyncio
import logging
import os
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.succession import CannotGoOn, CannotLeave, Succession
from holdfast.delivery.basics.ignoring import ignore
from holdfast.supervisor.control import (
    LOCK,
    MOST_DESCRIPTORS,
    Channel,
    Do,
    Ends,
    Parcel,
    Say,
    reason,
)
from holdfast.supervisor.packets import PeerBehind, PeerGone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holdfast.compose.running_server import RunningServer
    from holdfast.compose.shardless_door import RunningDoor

log = logging.getLogger(__name__)

# Settings that the supervisor goes by.
LIMITS = ("restart_timeout", "frozen_timeout", "silent_timeout")
# How often the supervisor hears that this process lives.
_BEAT_S = 2.0
# How long a server that has settled waits for others that leave or end together with it.
_RESTING_S = 1.0
# How long a server that has lost its shard waits until it is told to part.
_PARTING_S = 2.0
_NO_SUPERVISOR = "the supervisor has ended"
_ABANDONED = f"{_NO_SUPERVISOR}: the server stops"


class Supervised(Succession):
    """What a supervisor stores for its server, and the order in which they speak."""

    is_supervised = True

    def __init__(self, channel: Channel, stopped: asyncio.Event | None = None) -> None:
        super().__init__(stopped)
        self._channel = channel
        self._is_abandoned = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        # None stands for the end of the supervisor.
        self._heard: asyncio.Queue[Parcel | None] = asyncio.Queue()
        # Whether the supervisor knows that a standby waits.
        self._may_wait = False
        # Whether this process only refuses requests, because servers end again and again.
        self.is_stand_in = False
        # Whether no server of this supervisor has served before.
        self.is_first = True
        # What the servers after this one inherit, by name; copies until the supervisor has them.
        self._kept: dict[str, int] = {}
        # Why this host may have the shard, as the process says that claims shards; of one that is
        # started again, nothing.
        self.claim: Mapping[str, Any] = {}
        # The number of this server among several, how many they are, and the directory of their
        # links. The number is None with a supervisor of an earlier release, which has one server.
        self.shard: int | None = None
        self.shards = 1
        self.links = ""
        # Tells people that all of them serve.
        self.welcome: Callable[[], None] = ignore
        self._beat: asyncio.TimerHandle | None = None
        # Whether this server serves; and what ends one that has lost its shard.
        self._serves = False
        self._ending: asyncio.TimerHandle | None = None
        # Set when this one, which leaves or ends, need not follow other shards any more.
        self._may_rest = asyncio.Event()
        # Ends a start that is under way.
        self._abandon: Callable[[], object] = ignore

    async def begin(self) -> None:
        """Learn what this server inherits. Raises `CannotStart`."""
        self._loop.add_reader(self._channel.fileno(), self._read)
        try:
            given = await self.next()
        except PeerGone as error:
            raise CannotStart(str(error)) from error
        inherited = dict(zip(given.fields["names"], given.descriptors, strict=True))
        self.door = inherited.pop("door", None)
        self.descriptors = inherited
        self.is_successor, self.is_first = given.fields["successor"], given.fields["first"]
        self.is_stand_in = given.fields["stand_in"]
        self.shard, self.shards = given.fields.get("shard"), given.fields.get("shards", 1)
        self.links = given.fields.get("links", "")
        self.claim = given.fields.get("claim") or {}
        # A supervisor of an earlier release does not say it.
        self._learn(given.fields.get("ends", {}))
        self._may_wait = "waits" in given.fields
        self.must_wait = given.fields.get("waits", False)
        self._say_alive()

    def end(self) -> None:
        """Speak with the supervisor no longer."""
        if self._beat is not None:
            self._beat.cancel()
        self._loop.remove_reader(self._channel.fileno())

    async def next(self) -> Parcel:
        """Return the next thing that the supervisor asks for. Raises `PeerGone`."""
        parcel = await self._heard.get()
        if parcel is None:
            self._heard.put_nowait(None)
            raise PeerGone(_NO_SUPERVISOR)
        return parcel

    @contextmanager
    def starting(self) -> "Iterator[None]":
        """End what starts with the supervisor: it may wait for a store that is not started again.

        Raises `CannotStart`.
        """
        task = cast("asyncio.Task[object]", asyncio.current_task())
        if self._is_abandoned.is_set():
            raise CannotStart(_NO_SUPERVISOR)
        self._abandon = task.cancel
        try:
            yield
        except asyncio.CancelledError:
            if not self._is_abandoned.is_set():
                raise
            task.uncancel()
            raise CannotStart(_NO_SUPERVISOR) from None
        finally:
            self._abandon = ignore

    async def ended(self) -> None:
        """Wait for the end of the supervisor."""
        with suppress(PeerGone):
            while True:
                await self.next()

    def say(self, what: Say, *descriptors: int, **fields: object) -> None:
        """Tell the supervisor. If it has ended, `next` says so."""
        try:
            self._channel.send(descriptors, say=what, **fields)
        except PeerBehind:
            log.warning("the supervisor does not read what its server says")
        except PeerGone:
            self._heard.put_nowait(None)

    def ready(self, *, url: str, limits: "Mapping[str, float]") -> None:
        """Tell the supervisor that this server serves, and what it keeps for later ones.

        Raises `CannotStart`.
        """
        self._serves = True
        self._say_kept(Say.READY, url=url, **limits)
        self.close_kept()

    def _say_kept(self, what: Say, **about: object) -> None:
        """Tell the supervisor, with what later servers inherit. Raises `CannotStart`."""
        if len(self._kept) >= MOST_DESCRIPTORS:
            # A successor gets one more.
            raise CannotStart(f"host: {len(self._kept)} sockets are more than can be handed over")
        self.say(what, *self._kept.values(), names=[*self._kept], **about)

    def close_kept(self) -> None:
        while self._kept:
            os.close(self._kept.popitem()[1])

    # The succession

    def keep(self, name: str, descriptor: int) -> None:
        if name in self._kept:
            os.close(self._kept[name])
        self._kept[name] = os.dup(descriptor)

    def close_rest(self) -> None:
        for name, descriptor in self.descriptors.items():
            if name != LOCK:
                os.close(descriptor)
        self.descriptors = {}

    def listening(self, workers: int, links: str, shards: int = 0) -> None:
        self._say_kept(Say.LISTENING, workers=workers, links=links, shards=shards)

    async def waiting(self, workers: int, links: str) -> None:
        if not self._may_wait:
            return
        self._say_kept(Say.WAITING, workers=workers, links=links)
        await self._answered()

    async def dismissed(self) -> None:
        # It says by itself that it was abandoned.
        self._abandon, abandon = ignore, self._abandon
        ends = [asyncio.create_task(each.wait()) for each in (self._stopped, self._is_abandoned)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._abandon = abandon
            for each in ends:
                each.cancel()
        if self._is_abandoned.is_set():
            log.error(_ABANDONED)

    def fenced(self) -> None:
        self.say(Say.FENCED)

    def lost(self) -> bool:
        self.fenced()
        if self.claimed is None or not self._serves:
            return False
        self._ending = self._loop.call_later(_PARTING_S, self._stopped.set)
        return True

    def parts(self) -> None:
        """Take note that this process is to hand its connections over, and then ends."""
        if self._ending is not None:
            self._ending.cancel()

    async def prepared(self) -> None:
        await self._answer_to(Say.PREPARED)

    async def opened(self) -> None:
        await self._answer_to(Say.OPENED)

    async def settled(self) -> None:
        if self.leaves_alone:
            return
        self._may_rest.clear()
        self.say(Say.SETTLED)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._may_rest.wait(), _RESTING_S)

    async def _answer_to(self, what: Say) -> None:
        self.say(what)
        await self._answered()

    async def _answered(self) -> None:
        try:
            await self.next()
        except PeerGone as error:
            raise CannotStart(str(error)) from error

    def _learn(self, ends: dict[str, tuple[int, str]]) -> None:
        self.ends = {int(shard): Ends(count, last) for shard, (count, last) in ends.items()}

    def _read(self) -> None:
        try:
            while (parcel := self._channel.receive()) is not None:
                match parcel.fields.get("do"):
                    case Do.WELCOME:
                        self.welcome()
                    case Do.KNOW:
                        self._learn(parcel.fields["ends"])
                    case Do.REST:
                        self._may_rest.set()
                    case _:
                        # If it is to take back, all others are, too.
                        self._may_rest.set()
                        self._heard.put_nowait(parcel)
        except PeerGone:
            self._may_rest.set()
            self._loop.remove_reader(self._channel.fileno())
            self._is_abandoned.set()
            self._heard.put_nowait(None)
            self._abandon()

    def _say_alive(self) -> None:
        self._beat = self._loop.call_later(_BEAT_S, self._say_alive)
        with suppress(ConnectionError):
            self._channel.send(say=Say.ALIVE)


async def do_as_asked(supervisor: Supervised, server: "RunningServer | RunningDoor") -> bool:
    """Do what the supervisor asks for. Returns whether another process serves now.

    If not, the server must end: its supervisor has, or it can neither leave nor go on.
    """
    orders = _Orders(supervisor, server)
    while True:
        try:
            asked = await supervisor.next()
        except PeerGone:
            log.error(_ABANDONED)
            return False
        what = asked.fields["do"]
        try:
            if await orders.obey(what, asked):
                return True
        except CannotGoOn as error:
            log.error("%s", error)
            supervisor.say(Say.FAILED, why=reason(str(error)), ends=True)
            return False
        except Exception as error:
            if what == Do.PART:
                log.exception("connections were not handed over, and end")
                return False
            if what == Do.LEAVE:
                orders.close_door()
            supervisor.say(Say.FAILED, why=_why(error, what))
            if what == Do.GIVE:
                supervisor.say(Say.BACK)


class _Orders:
    """What a server does as its supervisor asks."""

    def __init__(self, supervisor: Supervised, server: "RunningServer | RunningDoor") -> None:
        self._supervisor, self._server = supervisor, server
        # By which the connections are handed over, once this server is about to leave.
        self._door = -1

    async def obey(self, what: str, asked: Parcel) -> bool:
        """Do it. Returns whether another process serves now."""
        match what:
            case Do.LEAVE:
                self._door = asked.descriptors[0]
                await self._server.leave()
                self._supervisor.say(Say.LEFT)
            case Do.TAKE_BACK:
                if self._door >= 0:
                    await self._server.take_back()
                    self.close_door()
                self._supervisor.say(Say.BACK)
            case Do.GO:
                await self._server.hand_over(self._door)
                return True
            case Do.GIVE:
                return await _give(self._supervisor, self._server, asked)
            case Do.PART:
                self._supervisor.parts()
                await self._server.part(asked.descriptors[0])
                return True
            case Do.ADOPT:
                self._server.adopt(socket.socket(fileno=asked.descriptors[0]))
            case _:
                pass
        return False

    def close_door(self) -> None:
        """Hand nothing over."""
        os.close(self._door)
        self._door = -1


async def _give(
    supervisor: Supervised, server: "RunningServer | RunningDoor", asked: Parcel
) -> bool:
    """Give this shard to another host, and the connections to another server of this one.

    Returns whether the other host has it.
    """
    host, door = asked.fields["host"], asked.descriptors[0]
    supervisor.leaves_alone = True
    try:
        is_given = await server.give_to(host)
    except BaseException:
        os.close(door)
        raise
    finally:
        supervisor.leaves_alone = False
    if not is_given:
        os.close(door)
        supervisor.say(Say.BACK)
        return False
    supervisor.fenced()
    await server.hand_over(door)
    return True


def _why(error: Exception, asked: str) -> str:
    """Return why the server cannot do what it was asked for; what is unexpected is logged, too."""
    if isinstance(error, CannotLeave):
        return reason(str(error))
    log.exception("the supervisor asked to %s", asked)
    return reason(f"{type(error).__name__}: {error}")
