"""The webhooks that this process calls."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

from holdfast.bayeux.sessions import of_server
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.outgoing.allowed_addresses import AllowedAddresses, OwnPlaces
from holdfast.web.webhooks.posting import Posting
from holdfast.web.webhooks.sender import Sender

# How long a start waits until all webhooks receive messages. Without the store, they begin later.
_BEGINNING_S = 2.0


class Webhooks:
    """Posting the webhooks of the settings whose sessions belong to this process."""

    def __init__(self, endpoint: Endpoint, own_places: OwnPlaces) -> None:
        self._endpoint = endpoint
        self._own_places = own_places
        self._senders: list[Sender] = []

    def __iter__(self) -> Iterator[Sender]:
        return iter(self._senders)

    async def open(self, stack: AsyncExitStack) -> None:
        """Begin to call; `stack` ends it."""
        endpoint = self._endpoint
        ids = endpoint.bayeux.state.client_ids
        for name, settings in endpoint.options.webhooks.items():
            if not ids.owns(ids.bucket_of(of_server.subject_of(name))):
                continue
            allowed = AllowedAddresses(self._own_places, allows_private=settings.allow_private)
            posting = Posting(settings, allowed)
            await posting.open(stack)
            self._senders.append(
                Sender(
                    name,
                    settings,
                    posting,
                    bayeux=endpoint.bayeux,
                    requests=endpoint.scheduler,
                    clock=endpoint.clock,
                )
            )
        stack.push_async_callback(self.pause, 0.0)
        self.go_on()
        begun = [asyncio.ensure_future(sender.has_begun.wait()) for sender in self._senders]
        if begun:
            # What clients publish once the server is ready is posted, even the first time.
            _, late = await asyncio.wait(begun, timeout=_BEGINNING_S)
            for each in late:
                each.cancel()

    def go_on(self) -> None:
        """Call again after a pause."""
        for sender in self._senders:
            sender.start()

    async def pause(self, limit_s: float) -> None:
        """Stop calling. Posting that have begun have this time."""
        await asyncio.gather(*(sender.pause(limit_s) for sender in self._senders))
