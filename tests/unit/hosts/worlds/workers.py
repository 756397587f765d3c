"""A process that has one shard, or is about to: it opens, raises its lease, speaks, and gives."""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum, auto
from math import inf
from typing import TYPE_CHECKING

from tests.unit.hosts.worlds.events import Process
from tests.unit.hosts.worlds.stores import Opener, Refused

if TYPE_CHECKING:
    from tests.unit.hosts.worlds.hosts import Host

_RAISE_S = 0.5
# The giver takes its shard back when nobody has opened it for so long.
_OFFER_S = 5.0
_TRIES = 2


class State(Enum):
    OPENING = auto()
    SERVING = auto()
    LEAVING = auto()


class Worker(Process):
    """One process of a host."""

    # How long it speaks after it has sent the last raise that was confirmed.
    SPEAK_S = 2.5

    def __init__(self, host: "Host", shard: int, opener: Opener) -> None:
        super().__init__(host.machine)
        self.host, self.shard = host, shard
        self.opener = opener
        self.epoch = ""
        self.state = State.OPENING
        self._tries = 0
        self._silent_since = inf
        self._left_at = 0.0
        self._given_to = ""

    def _call(self, script: Callable[[], object], then: Callable[[object], None]) -> None:
        stores = self.host.world.stores
        stores.call((self, self.host.name), self.shard, script, then)

    def open(self) -> None:
        if self.shard and not self.host.world.stores.metas[0].openings:
            # It learns from the first shard which deployment this is.
            self.after(0.05, self.open)
            return
        self._tries += 1
        if self.shard in self.host.cannot_open:
            self.after(0.5, lambda: self._opened(None))
            return
        meta, opener = self.host.world.stores.metas[self.shard], self.opener
        self._call(lambda: meta.open(opener), self._opened)

    def _opened(self, reply: object) -> None:
        if reply is None and self._tries < _TRIES:
            self.open()
        elif reply is None:
            self.host.ended(self, has_failed=True)
        elif isinstance(reply, Refused):
            self.refused(reply)
        else:
            self.epoch = str(reply)
            self.keep_raising()
            self.after(self.host.world.random.uniform(0.0, 0.3), self._serve)

    def refused(self, reply: Refused) -> None:
        """Leave the shard to another."""
        self.host.ended(self)

    def _serve(self) -> None:
        """Have everything loaded, and speak as soon as a raise is confirmed."""
        self.state = State.SERVING
        self._silent_since = self.machine.clock()
        self.raise_()

    def keep_raising(self) -> None:
        self.raise_()
        self.after(_RAISE_S, self.keep_raising)

    def raise_(self) -> None:
        sent_at, epoch = self.machine.clock(), self.epoch
        meta = self.host.world.stores.metas[self.shard]
        self._call(lambda: meta.raise_(epoch), lambda reply: self._raised(reply, sent_at))

    def _raised(self, reply: object, sent_at: float) -> None:
        if isinstance(reply, Refused):
            self.host.ended(self)
        elif reply and self.state is State.SERVING and sent_at >= self._silent_since:
            self.confirmed(sent_at)

    def confirmed(self, sent_at: float) -> None:
        """Speak for some time: nobody else has opened the shard."""
        until = self.machine.true_time(sent_at + self.SPEAK_S)
        self.host.world.oracle.speaks(self.shard, self, until)

    def give(self, host: str) -> None:
        """Offer the shard to another host, and speak no more."""
        if self.state is not State.SERVING:
            return
        self.state = State.LEAVING
        self._left_at, self._given_to = self.machine.clock(), host
        self.fall_silent()
        self.after(self.host.world.random.uniform(0.02, 0.5), self._offer)

    def fall_silent(self) -> None:
        self.host.world.oracle.ends(self.shard, self)

    def _offer(self) -> None:
        meta, epoch, host = self.host.world.stores.metas[self.shard], self.epoch, self._given_to
        self._call(lambda: meta.offer_to(epoch, host), self._offered)

    def _offered(self, reply: object) -> None:
        if isinstance(reply, Refused):
            self.host.ended(self)
        else:
            waits_s = self._left_at + _OFFER_S - self.machine.clock()
            self.after(max(waits_s, 0.0), self._retract)

    def _retract(self) -> None:
        meta, epoch = self.host.world.stores.metas[self.shard], self.epoch
        self._call(lambda: meta.retract(epoch), self._retracted)

    def _retracted(self, reply: object) -> None:
        if isinstance(reply, Refused):
            self.host.ended(self)
        elif reply is None:
            self.after(0.2, self._retract)
        else:
            self._serve()
            self.host.not_given(self.shard, self._given_to)

    def release(self) -> None:
        """End in an orderly way."""
        self.fall_silent()
        meta, epoch = self.host.world.stores.metas[self.shard], self.epoch
        self._call(lambda: meta.release(epoch), lambda _: self.host.ended(self))

    def successor(self) -> "Worker":
        """Return a process that opens the shard instead of this one, which has ended."""
        opener = replace(self.opener, nonce=self.host.world.nonce(), ended=self.epoch)
        return type(self)(self.host, self.shard, opener)
