"""The routes by which histories are read without a session."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiohttp import web

from holdfast.web.answering.endpoint import EVENTS_PATH, STREAMS_PATH, Endpoint
from holdfast.web.scheduling.speaking import until_speaking

if TYPE_CHECKING:
    from holdfast.web.streams.event_requests import EventRequests
    from holdfast.web.streams.homes_asked import Asking
    from holdfast.web.streams.reading_requests import StreamRequests
    from holdfast.web.streams.reading_rights import Admission, ReaderLogins

# What the first request imports. To import all of it at once would make other clients wait.
_STEPS: Final = (
    *("history_answers", "event_answers", "homes_asked", "reading_rights", "feeds"),
    *("sent_events", "reading_requests", "event_requests", "ticket_requests"),
)


class Made(NamedTuple):
    """What answers requests."""

    admission: "Admission"
    tickets: "_Answer"
    streams: "StreamRequests"
    events: "EventRequests"


class Reading:
    """Reads histories for requests without a session. The first request makes what answers.

    Args:
        ask: Returns what reads histories, wherever they are.
        logins: Prove logins of requests; None if none is required.
    """

    def __init__(
        self, endpoint: Endpoint, ask: "Callable[[], Asking]", logins: "ReaderLogins[Any] | None"
    ) -> None:
        self._endpoint = endpoint
        self._ask, self._logins = ask, logins
        self._making = asyncio.Lock()
        self._made: Made | None = None

    def add_to(self, application: web.Application) -> None:
        """Add the routes."""
        answers: dict[str, Callable[[Made], _Answer]] = {
            STREAMS_PATH + "/{channel:.*}": lambda made: made.streams.answer,
            EVENTS_PATH: lambda made: made.events.answer,
        }
        tickets = STREAMS_PATH + "/tickets"
        application.router.add_post(tickets, partial(self._answer, lambda made: made.tickets))
        application.router.add_options(tickets, partial(self._answer, _preflight))
        for path, chosen in answers.items():
            application.router.add_get(path, partial(self._answer, chosen))
            application.router.add_options(path, partial(self._answer, _preflight))

    async def _answer(
        self, chosen: "Callable[[Made], _Answer]", request: web.Request
    ) -> web.StreamResponse:
        async with self._making:
            if self._made is None:
                self._made = await self._make()
        return await chosen(self._made)(request)

    async def _make(self) -> Made:
        for each in _STEPS:
            import_module(f"holdfast.web.streams.{each}")
            await asyncio.sleep(0)
        from holdfast.web.streams.event_requests import EventRequests
        from holdfast.web.streams.feeds import Feeds
        from holdfast.web.streams.reading_requests import StreamRequests
        from holdfast.web.streams.reading_rights import Admission
        from holdfast.web.streams.ticket_requests import TicketRequests

        endpoint, asking = self._endpoint, self._ask()
        admission = Admission(endpoint, self._logins)
        feeds = Feeds(endpoint.bayeux.streams, partial(until_speaking, endpoint.right))
        return Made(
            admission,
            TicketRequests(admission, self._logins).answer,
            StreamRequests(asking, admission, feeds, endpoint.options.timeout_s),
            EventRequests(asking, admission, feeds),
        )


_Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _preflight(made: Made) -> _Answer:
    return made.admission.preflight
