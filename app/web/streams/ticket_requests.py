"""`POST /streams/tickets`: makes tickets, with which URLs read channels for some minutes."""

from typing import Any

from aiohttp import web

from holdfast.bayeux.state.waiting_readers import Live
from holdfast.bayeux.wire.errors import ErrorReply, Refused, RequestRefused
from holdfast.delivery.basics.json_text import to_json
from holdfast.web.answering.endpoint import JSON_TYPE
from holdfast.web.streams.reading_rights import (
    Admission,
    ReaderLogins,
    channels_of,
    of_request,
)


class TicketRequests:
    """Answers `POST /streams/tickets`.

    Args:
        logins: None if everybody may read everything.
    """

    def __init__(self, admission: Admission, logins: ReaderLogins[Any] | None) -> None:
        self._admission, self._logins = admission, logins

    async def answer(self, request: web.Request) -> web.Response:
        """Return a ticket for the channels, if the request may read them."""
        try:
            return await self._answer(request)
        except RequestRefused as refused:
            return self._admission.refusal(request, refused, {})

    async def _answer(self, request: web.Request) -> web.Response:
        if "ticket" in request.query:
            # It would never end.
            raise RequestRefused(ErrorReply.CREDENTIALS_IN_URL)
        reader = await self._admission.reader(request, channels_of(request), Live.EVENTS)
        if self._logins is None:
            raise RequestRefused(ErrorReply.NOT_SUPPORTED, "no login is required")
        names = [each.name for each in reader.channels]
        try:
            ticket, ends_s = self._logins.ticket_of(reader.grants, names)
        except Refused as refused:
            raise of_request(refused) from None
        said = {"ticket": ticket, "channels": names, "expires": round(ends_s * 1000)}
        headers = self._admission.headers(request) | {"Content-Type": JSON_TYPE}
        return self._admission.closing(web.Response(body=to_json(said), headers=headers))
