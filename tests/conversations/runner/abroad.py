"""A process as `served`, but connections are in one server, and their sessions in another.

Both are servers alone but for the links between them, so that the stories are the same.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from unittest.mock import Mock, patch

from holdfast import compose
from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.codec import Json
from holdfast.cluster.shards import BUCKETS, ShardMap
from holdfast.compose import forwarding, running, sharding
from holdfast.compose.placement import Placement
from holdfast.compose.running_server import RunningServer
from holdfast.compose.storage import Storage
from holdfast.compose.succession import Succession
from holdfast.settings import Settings
from holdfast.store.format.deployment import Deployment
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.forwarding import request_door
from tests.conversations.runner.served import Servers, main
from tests.store.store_process import until

DOOR, HOME = 0, 1
# Which of two servers is being made.
_place: ContextVar[Placement] = ContextVar("place")


class Door(request_door.Door):
    """A door without sessions, not even those of clients without a name or a cookie."""

    def _home_of_newcomer(self, handshake: Json, exchange: Exchange) -> int | None:
        return HOME


class Forwarding(forwarding.Forwarding):
    """A door without sessions makes identities for sockets, too."""

    @property
    def buckets(self) -> list[int]:
        return [*range(BUCKETS)]

    async def open(self, endpoint: Endpoint, stack: AsyncExitStack) -> None:
        self.listen(Succession())
        await super().open(endpoint, stack)

    async def share(self, *_: object) -> None:
        """Keep connections here, although their sessions are elsewhere."""


def _forwarding(
    _: Settings, __: Placement, storage: Storage, clock: Callable[[], float], ___: AsyncExitStack
) -> forwarding.Forwarding | None:
    shards = ShardMap((HOME,) * BUCKETS)
    return Forwarding(_place.get(), shards, storage.store.deployment.name, clock)


class Abroad(Servers):
    """Homes by the URLs of their doors."""

    async def _serve(self, settings: Settings, stack: AsyncExitStack) -> str:
        data = self._directory()
        place = Placement(data, data / "links", HOME, 2)
        await stack.enter_async_context(_running(settings, place))
        door = settings.model_copy(update={"data": data})
        return (await stack.enter_async_context(_running(door, replace(place, number=DOOR)))).url


@asynccontextmanager
async def _running(settings: Settings, place: Placement) -> AsyncIterator[RunningServer]:
    _place.set(place)
    async with running(settings, Succession()) as server:
        links = server.forwarding
        assert links is not None
        await until(lambda: links.is_linked or place.number == HOME)
        yield server


if __name__ == "__main__":
    with (
        patch.object(compose, "forwarding_of", _forwarding),
        patch.object(forwarding, "Door", Door),
        patch.object(sharding, "ShardParts", lambda *_, **__: Mock(neighbours=None)),
        patch.object(sharding, "Sharding", lambda *_, **__: None),
        patch.object(Deployment, "proposed", lambda name: Deployment(name or "abroad", bytes(32))),
    ):
        main(Abroad)
