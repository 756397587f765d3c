"""`GET /streams/CHANNEL`: reading the history of a channel without a session."""

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from aiohttp import web

from holdfast.bayeux.state.waiting_readers import Live, WaitingReader
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.streams.feeds import Feeds
from holdfast.web.streams.history_answers import Answer, Question
from holdfast.web.streams.homes_asked import Asking
from holdfast.web.streams.intervals import interval
from holdfast.web.streams.open_response import OpenStream
from holdfast.web.streams.readers_here import BEGIN, END
from holdfast.web.streams.reading_rights import Admission, only_value
from holdfast.web.streams.sent_events import HistorySource, history_text

if TYPE_CHECKING:
    from holdfast.bayeux.wire.codec import Json

_LONGEST_OFFSET: Final = 256
# Without a charset: some clients compare the whole value, which is UTF-8 anyway.
_TYPE: Final = "application/json"
# How long a body that cannot change may be reused, in seconds.
_REUSED_S: Final = 60
# For a path that looks like a folder of channels.
_OF_ONE: Final = "one channel, without a slash at its end; several are read by /events"
# How long one response of events lasts.
LASTS_S = 60.0


class StreamRequests:
    """Answers `GET /streams/CHANNEL`."""

    def __init__(
        self, asking: Asking, admission: Admission, feeds: Feeds, timeout_s: float
    ) -> None:
        self._asking = asking
        self._admission = admission
        self._feeds = feeds
        self._timeout_s = timeout_s

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Return the messages after the offset, now or when there are any."""
        admission = self._admission
        try:
            question, live = self._question_of(request)
            reader = await admission.reader(request, [question.channel], live)
            [channel] = reader.channels
            # A channel has several legal names, but only one of them decides about its home.
            question = replace(question, channel=channel.name)
            [home] = self._asking.homes_of([channel.name])
            if live is Live.SSE:
                with admission.readers.one_more(reader):
                    return await self._stream(request, reader, question, home)
            answer = await self._read(reader, question, home)
            if answer.error:
                return self._refused(request, answer)
            return admission.closing(self._response(request, question, answer))
        except RequestRefused as refused:
            return admission.refusal(request, refused, {})

    async def _stream(
        self, request: web.Request, reader: WaitingReader, question: Question, home: int
    ) -> web.StreamResponse:
        question = replace(question, wait_s=0.0)
        answer = await self._asking.history(home, question)
        if answer.error:
            return self._refused(request, answer)
        ends, has_all = {home: answer.end}, answer.is_last
        stream = OpenStream(request, self._admission, reader, ends, has_all=has_all)
        first = history_text(answer, request.query.get("cursor", ""))
        source = HistorySource(self._asking, question)
        return self._admission.closing(await self._feeds.respond(source, stream, first, LASTS_S))

    async def _read(self, reader: WaitingReader, question: Question, home: int) -> Answer:
        """Read what is asked for. Raises `RequestRefused`."""
        answer = Answer(end=question.offset or BEGIN)
        if question.wait_s:
            with self._admission.readers.one_more(reader), suppress(TimeoutError):
                async with asyncio.timeout(None) as limit:
                    reader.end = partial(limit.reschedule, 0.0)
                    answer = await self._asking.history(home, question)
        else:
            answer = await self._asking.history(home, question)
        # Meanwhile the login may have ended, or the rules may have changed.
        self._admission.check(reader)
        self._admission.spend(reader, len(answer.body))
        return answer

    def _question_of(self, request: web.Request) -> tuple[Question, Live]:
        offset, live = only_value(request, "offset"), only_value(request, "live")
        if offset is not None and not 0 < len(offset) <= _LONGEST_OFFSET:
            raise RequestRefused(ErrorReply.OFFSET_INVALID)
        if live not in (None, Live.LONG_POLL, Live.SSE):
            raise RequestRefused(ErrorReply.REQUEST_MALFORMED, "live is not long-poll or sse")
        if live is not None and offset is None:
            raise RequestRefused(ErrorReply.OFFSET_INVALID, "live needs an offset")
        is_head = request.method == "HEAD"
        question = Question(
            "/" + request.match_info["channel"],
            offset,
            self._timeout_s if live is not None and not is_head else 0.0,
            has_envelope=only_value(request, "envelope") == "1",
            is_head=is_head,
        )
        return question, Live.NO if live is None or is_head else Live(live)

    def _response(self, request: web.Request, question: Question, answer: Answer) -> web.Response:
        headers = self._admission.headers(request) | {
            "Stream-Next-Offset": answer.end,
            "Cache-Control": self._caching(question, answer),
        }
        if answer.is_last:
            headers["Stream-Up-To-Date"] = "true"
        if question.wait_s:
            headers["Stream-Cursor"] = interval(request.query.get("cursor", ""))
            if not answer.count:
                return web.Response(status=204, headers=headers)
        if not (question.is_head or question.offset == END):
            headers["ETag"] = tag = _tag(question, answer)
            if {tag, "*"} & _known_tags(request):
                return web.Response(status=304, headers=headers)
        headers["Content-Type"] = _TYPE
        return web.Response(body=answer.body.encode(), headers=headers)

    def _caching(self, question: Question, answer: Answer) -> str:
        if question.is_head or question.wait_s or question.offset == END:
            return "no-store"
        scope = "public" if self._admission.is_open else "private"
        left_s = _REUSED_S
        if answer.ends_ms:
            left_s = min(left_s, max(0, answer.ends_ms - time.time_ns() // 1_000_000) // 1000)
        if answer.is_last or not left_s:
            # More may follow at any time.
            return f"{scope}, no-cache"
        return f"{scope}, max-age={left_s}"

    def _refused(self, request: web.Request, answer: Answer) -> web.Response:
        """Return why nothing was read. After a loss, it says where to go on."""
        error = ErrorReply[answer.error]
        if error is ErrorReply.HISTORY_MISSING and request.path.endswith("/"):
            refused = RequestRefused(error, _OF_ONE)
        else:
            refused = RequestRefused(error)
        if answer.error != ErrorReply.HISTORY_LOST.name:
            return self._admission.refusal(request, refused, {})
        said: Json = {"next": answer.end}
        if answer.lost:
            said["lost"] = {"from": answer.lost[0], "to": answer.lost[1]}
        return self._admission.refusal(request, refused, said)


def _known_tags(request: web.Request) -> set[str]:
    """Return the tags of what the client has. A cache may have made them weak."""
    said = ",".join(request.headers.getall("If-None-Match", ()))
    return {each.strip().removeprefix("W/") for each in said.split(",")}


def _tag(question: Question, answer: Answer) -> str:
    """Return what differs whenever the body does.

    A message never changes, and none comes between two others: a history only loses messages.
    """
    form = "e" if question.has_envelope else "d"
    return f'"{answer.begin}.{answer.end}.{answer.count}.{form}{int(answer.is_last)}"'
