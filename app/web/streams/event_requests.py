"""`GET /events`: reading several channels as Server-Sent Events."""

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from holdfast.bayeux.state.waiting_readers import Live
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.streams.event_answers import EventAnswer
from holdfast.web.streams.feeds import Feeds
from holdfast.web.streams.homes_asked import Asking
from holdfast.web.streams.open_response import HEADERS, OpenStream
from holdfast.web.streams.readers_here import BEGIN, END
from holdfast.web.streams.reading_rights import Admission, channels_of, only_value
from holdfast.web.streams.sent_events import (
    DIVISION,
    PASSING,
    EventSource,
    farewell,
    missing_text,
    retry_text,
)

# How long one response lasts, unless something ends it earlier.
LASTS_S = 3600.0
_LONGEST_ID: Final = 4096
# The place at one home, in an id.
_PLACE: Final = re.compile(r"([0-9]{1,4})-([0-9A-Za-z]+_[0-9]{1,20})")
_LONG_S: Final = 30.0


class EventRequests:
    """Answers `GET /events`."""

    def __init__(self, asking: Asking, admission: Admission, feeds: Feeds) -> None:
        self._asking = asking
        self._admission = admission
        self._feeds = feeds

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Send the messages of the channels as they come."""
        try:
            return await self._answer(request)
        except RequestRefused as refused:
            return self._refusal(request, refused)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        names = channels_of(request)
        after = _places_of(request, self._asking.division)
        reader = await self._admission.reader(request, names, Live.EVENTS)
        channels = self._asking.homes_of(dict.fromkeys(each.name for each in reader.channels))
        source = EventSource(self._asking, channels)
        with self._admission.readers.one_more(reader):
            places = {home: _begin_at(home, after) for home in channels}
            answers = await self._first(source, places)
            ends = {home: answer.end for home, answer in answers.items()}
            has_all = all(answer.is_last for answer in answers.values())
            stream = OpenStream(request, self._admission, reader, ends, has_all=has_all)
            if request.method == "HEAD":
                await stream.begin()
                return stream.response
            first = _first_text(source, answers, places)
            response = await self._feeds.respond(source, stream, first, LASTS_S, farewell)
            return self._admission.closing(response)

    async def _first(
        self, source: EventSource, places: Mapping[int, str]
    ) -> Mapping[int, EventAnswer]:
        """Return what each home has. Raises `RequestRefused`."""
        asked = [source.ask(home, place, 0.0) for home, place in places.items()]
        answers = dict(zip(places, await asyncio.gather(*asked), strict=True))
        for answer in answers.values():
            if answer.error:
                raise RequestRefused(ErrorReply[answer.error], "channels")
        return answers

    def _refusal(self, request: web.Request, refused: RequestRefused) -> web.Response:
        """Return a response after which a browser connects again if that can help."""
        admission = self._admission
        if refused.error is ErrorReply.TICKET_EXPIRED:
            # The page gets another ticket, and uses it. Until then, the browser need not hurry.
            body = retry_text(_LONG_S) + farewell(refused)
        elif refused.error.code in PASSING:
            body = farewell(refused)
        else:
            return admission.refusal(request, refused, {})
        headers = admission.headers(request) | HEADERS
        return admission.closing(web.Response(body=body, headers=headers))


def _first_text(
    source: EventSource, answers: Mapping[int, EventAnswer], places: Mapping[int, str]
) -> bytes:
    """Return the first events: what is missing or lost, and what there is to read."""
    missing = sorted({each for answer in answers.values() for each in answer.missing})
    texts = [retry_text(), missing_text(missing)]
    behind = {home: answers[home].end if place == END else place for home, place in places.items()}
    for home, answer in answers.items():
        texts.append(source.written(answer, behind, home))
        behind[home] = answer.end
    return b"".join([*texts, source.id_text(behind)])


def _places_of(request: web.Request, division: str) -> dict[int, str] | str:
    """Return where the request begins: by home, or at all of them. Raises `RequestRefused`."""
    after = only_value(request, "after")
    # Some clients send an empty one before they have any; browsers send none.
    said = request.headers.get("Last-Event-ID") or after or END
    if said in (BEGIN, END):
        return said
    parts = said[:_LONGEST_ID].split("~")
    its = parts.pop(0).removeprefix(DIVISION) if parts[0].startswith(DIVISION) else ""
    found = [_PLACE.fullmatch(each) for each in parts]
    places = {int(each[1]): each[2] for each in found if each is not None}
    if len(said) > _LONGEST_ID or len(places) < len(found):
        raise RequestRefused(ErrorReply.OFFSET_INVALID)
    if its != division:
        # Channels have moved to other homes. Nothing is lost that is behind the earliest place.
        return min(places.values(), default=BEGIN)
    return places


def _begin_at(home: int, after: dict[int, str] | str) -> str:
    """Return where to begin at a home: at the begin if the reader has not been there."""
    return after if isinstance(after, str) else after.get(home, BEGIN)
