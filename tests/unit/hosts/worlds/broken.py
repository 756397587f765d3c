"""Builds in which one thing of the rule is wrong: the worlds must find each of them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import inf
from unittest.mock import patch

from tests.unit.hosts.worlds.stores import Meta, Opener, Refused
from tests.unit.hosts.worlds.workers import Worker
from tests.unit.hosts.worlds.world import Rules


class OpensWithdrawnOffers(Meta):
    """An opening asks for the epoch of an offer, and not whether the offer still stands."""

    def check_offer(self, opener: Opener) -> None:
        self.check(opener.offered)


class KeepsOffers(Meta):
    """An opening leaves the offer where it is."""

    def open(self, opener: Opener) -> str:
        offer = self.offer
        epoch = super().open(opener)
        self.offer = offer
        return epoch


class TakesBackAnyEpoch(Meta):
    """The giver takes its shard back though another host has opened it."""

    def retract(self, epoch: str) -> bool:
        self.epoch = epoch
        return super().retract(epoch)


class InsistsOnOpening(Worker):
    """A worker that is refused opens what the answer names."""

    def refused(self, reply: Refused) -> None:
        opener = Opener(self.host.world.nonce(), self.host.name, str(reply))
        meta = self.host.world.stores.metas[self.shard]
        self._call(lambda: meta.open(opener), self._opened)


class SpeaksTooLong(Worker):
    """A worker speaks after its lease."""

    SPEAK_S = 6.0


class CountsFromTheAnswer(Worker):
    """A worker speaks from the time on at which it heard that its lease was raised."""

    def confirmed(self, sent_at: float) -> None:
        super().confirmed(self.machine.clock())


class SpeaksWhileItGives(Worker):
    """A giver goes on speaking until it hears that another host has the shard."""

    def fall_silent(self) -> None:
        pass


@dataclass(frozen=True)
class Broken:
    """What is wrong, and what is patched for it, by the module's and the attribute's name."""

    rules: Rules
    patches: tuple[tuple[str, object], ...] = ()
    # Whether two speak at once, which shows before all must be well again.
    is_unsafe: bool = True
    # From which seed on to look for it: it shows there, for as long as worlds stay the same.
    seed: int = 4

    @contextmanager
    def in_place(self) -> Iterator[Rules]:
        with ExitStack() as stack:
            for name, value in self.patches:
                stack.enter_context(patch(f"holdfast.{name}", value))
            yield self.rules


BROKEN = {
    "three seconds are not waited for": Broken(
        Rules(), (("store.opening.lease.LEASE_S", 1.0), ("hosts.watching.LEASE_S", 1.0))
    ),
    "an offer is opened after it was taken back": Broken(Rules(meta=OpensWithdrawnOffers)),
    "another host's epoch is taken back": Broken(Rules(meta=TakesBackAnyEpoch), seed=24),
    "a refusal is taken for what was read": Broken(Rules(worker=InsistsOnOpening)),
    "a host speaks after its lease": Broken(Rules(worker=SpeaksTooLong)),
    "a lease counts from the answer": Broken(Rules(worker=CountsFromTheAnswer)),
    "a giver speaks": Broken(Rules(worker=SpeaksWhileItGives)),
    "an offer stands after the opening": Broken(Rules(meta=KeepsOffers), is_unsafe=False),
    "the dead live": Broken(Rules(), (("hosts.watching._AWAY_S", inf),), is_unsafe=False),
}
