"""Servers that give what they have to the next one, and clients that notice nothing."""

from functools import partial
from typing import Any, Self

from holdfast.bayeux.leaving.giving import given
from holdfast.bayeux.leaving.settling import settle, take_back, unsettled
from holdfast.bayeux.leaving.taking import Taking
from holdfast.bayeux.leaving.unusable import Faults
from holdfast.bayeux.state.kept_requests import rejoin, reopen_all
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.extensions.request import Request
from holdfast.store.format.given_records import Unpacking, slices
from tests.unit.bayeux.harness import Asked, Client, Installed, Server
from tests.unit.bayeux.second_lives import connect
from tests.unit.delivery.fake_keeper import FakeKeeper


class CannotGoOn(Exception):
    """A successor does not start."""


class LeavingServer(Server):
    """A server that can leave. The fake store, and what it gave, survive it."""

    def __init__(self, *extensions: Installed, **options: Any) -> None:
        acks = partial(Ack, announces_batch=False)
        super().__init__(DeliveryWire, acks, Request, *extensions, **options)
        self.extensions, self.options = extensions, options

    def settle(self) -> None:
        """Answer what is held, and finish what was begun."""
        settle(self.bayeux, self.now)
        self.turn()
        self.bayeux.tick(self.now)
        self.turn()
        assert unsettled(self.bayeux) is None

    def leave(self) -> list[bytes]:
        """Come to rest, and give everything. Nothing may be asked of this server afterwards."""
        self.settle()
        return self.give()

    def give(self) -> list[bytes]:
        return list(slices(given(self.bayeux, self.now, {})))

    def take_back(self) -> None:
        take_back(self.bayeux, self.now)
        self.turn()

    def succeeded(self, *, after_s: float = 0.3, is_strict: bool = True, **options: Any) -> Self:
        """The server that goes on."""
        return self.follower(self.leave(), after_s=after_s, is_strict=is_strict, **options)

    def follower(
        self,
        left: list[bytes],
        *,
        after_s: float = 0.3,
        is_strict: bool = True,
        is_turned: bool = True,
        **options: Any,
    ) -> Self:
        """The server that finds what this one left, perhaps still in the turn in which it did."""
        self.keeper.forget_answers()
        self.now = round(self.now + after_s, 1)
        others = {**self.options, **options, "keeper": self.keeper, "after": self}
        server = type(self)(*self.extensions, **others)
        load(server, left, is_strict=is_strict)
        if is_turned:
            server.turn()
        return server


def load(server: Server, left: list[bytes], *, is_strict: bool = True) -> None:
    """Restore what the store has and what was given, as `compose/storage.py` does."""
    life, state, now, keeper = server.bayeux.life, server.bayeux.state, server.now, server.keeper
    assert isinstance(keeper, FakeKeeper)
    faults = Faults(CannotGoOn if is_strict else None)
    life.topics.expect(dict(keeper.topics))
    reading = Unpacking(faults.note)
    for each in left:
        reading.read(each)
    taking = Taking(server.bayeux, reading.given(), now, faults)
    for record, entries in keeper.load(taking.without_session):
        taking.restore(record, entries, now)
    list(taking.rest(now))
    reopen_all(state, dict(keeper.requests), now)
    rejoin(state.requests, [*state.sessions, *state.waiting_places.queues()])
    taking.finish()
    life.topics.restore()


def at(client: Client, server: Server) -> Client:
    """The client, whose next requests go to this server."""
    client.server = server
    return client


def listen(client: Client, ack: int | None = None) -> Asked:
    """Ask for messages, without waiting."""
    return connect(client, ack)
