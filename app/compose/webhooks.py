"""Sets up the webhooks."""

import logging
from collections.abc import Collection
from contextlib import AsyncExitStack

from holdfast.bayeux.state.system_events import SystemEvents
from holdfast.compose.own_places import own_places
from holdfast.settings import Settings
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.letters.search import LetterSearch
from holdfast.store.links.connection import StoreUnavailable
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.webhooks.senders import Webhooks

log = logging.getLogger(__name__)

# Which letters are announced again after a kill, and how many at most.
_LATEST_NS = 2_000_000_000
_MOST_AGAIN = 1000


async def open_webhooks(
    settings: Settings,
    endpoint: Endpoint,
    ports: Collection[int],
    stack: AsyncExitStack,
    former_letters: LetterSearch | None,
) -> Webhooks:
    """Begin to call the webhooks, and tell them what a process that was killed may not have told.

    Args:
        ports: Those at which the deployment listens.
        former_letters: The letters, if the process before this one was killed.
    """
    webhooks = Webhooks(endpoint, await own_places(settings, ports))
    await webhooks.open(stack)
    if former_letters is not None:
        state = endpoint.bayeux.state
        state.hold_events.tell_again(state.sessions)
        try:
            await _tell_letters_again(state.system_events, former_letters)
        except StoreUnavailable as error:
            log.warning("the last letters before the kill are not told again: %s", error)
    return webhooks


async def _tell_letters_again(events: SystemEvents, letters: LetterSearch) -> None:
    """Announce the latest letters: the process before may have been killed before it did."""
    found, _ = await letters.query(LetterFilter(), None, _MOST_AGAIN)
    newest = max((int(each.id) for each in found), default=0)
    latest = sorted(each.id for each in found if int(each.id) > newest - _LATEST_NS)
    for id in latest:
        for letter in await letters.whole([id]):
            if letter is not None:
                events.publish(letter.event())
