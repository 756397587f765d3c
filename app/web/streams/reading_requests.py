"""`GET /streams/CHANNEL`: reading the history of a channel without a session."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import web

from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.errors import ErrorReply, Refused, RequestRefused
from holdfast.bayeux.wire.identity import Grants
from holdfast.delivery.basics.channels import Channel, Kind
from holdfast.delivery.basics.json_text import to_json
from holdfast.web.answering.endpoint import (
    FIXED_HEADERS,
    JSON_TYPE,
    STREAMS_PATH,
    Endpoint,
    retry_headers,
)
from holdfast.web.http.origins import OriginTrust
from holdfast.web.scheduling.speaking import until_speaking
from holdfast.web.streams.history_answers import END, Answer, Question
from holdfast.web.streams.reader_limits import ReaderLimits
from holdfast.web.streams.sent_events import BEAT_S, LASTS_S, send_events

if TYPE_CHECKING:
    from holdfast.bayeux.wire.codec import Json

# Answers a question about any channel.
AskHistory = Callable[[Question], Awaitable[Answer]]
# Returns the rights of a request that proves a login. Raises `Refused`.
Prove = Callable[[Caller, float], Awaitable[Grants]]

# Names under which clients of other servers send a token in a URL.
_TOKENS: Final = ("access_token", "token", "authorization")
_LONGEST_OFFSET: Final = 256
# Without a charset: some clients compare the whole value, which is UTF-8 anyway.
_TYPE: Final = "application/json"
# How long a body that cannot change may be reused, in seconds.
_REUSED_S: Final = 60
# Proxies may answer many readers with one response within such an interval.
_INTERVAL_S: Final = 20
_FIRST_INTERVAL_S: Final = 1_728_432_000  # 2024-10-09
_SHOWN: Final = "Stream-Next-Offset, Stream-Up-To-Date, Stream-Cursor, ETag, Retry-After"
_VARY: Final = "Origin, Authorization, Cookie, Accept-Encoding"


class Live(StrEnum):
    """How a reader waits for messages."""

    LONG_POLL = "long-poll"
    SSE = "sse"


class _Reader(NamedTuple):
    """Who wants to read what."""

    caller: Caller
    grants: Grants | None
    channel: Channel
    question: Question
    live: Live | None


class StreamRequests:
    """Answers `GET /streams/CHANNEL`.

    Args:
        ask: Reads the history, wherever it is.
        prove: Proves the login of a request; None if none is required.
    """

    def __init__(self, endpoint: Endpoint, ask: AskHistory, prove: Prove | None) -> None:
        self._endpoint = endpoint
        self._ask = ask
        self._prove = prove
        self._channels = endpoint.bayeux.state.channels
        options = endpoint.options
        self._limits = ReaderLimits(options.max_readers, options.quota_readers)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Return the messages after the offset, now or when there are any."""
        try:
            reader = await self._reader(request)
            is_stream = reader.live is Live.SSE
            first = replace(reader.question, wait_s=0.0) if is_stream else reader.question
            answer = await self._read(reader, first)
            if not is_stream or answer.error:
                return self._answered(request, first, answer)
            with self._limits.one_more(reader.caller.network):
                return await self._stream(request, reader, answer)
        except RequestRefused as refused:
            return self._refusal(request, refused, {})

    def _answered(self, request: web.Request, question: Question, answer: Answer) -> web.Response:
        if answer.error:
            return self._refused(request, answer)
        response = self._response(request, question, answer)
        if self._endpoint.bayeux.state.is_stopping:
            # The client's next request must reach another server.
            response.force_close()
        return response

    async def _stream(
        self, request: web.Request, reader: _Reader, first: Answer
    ) -> web.StreamResponse:
        known = request.query.get("cursor", "")
        response = await send_events(
            request,
            self._headers(request),
            self._follow(reader, first),
            partial(_interval, known),
            partial(until_speaking, self._endpoint.right),
        )
        if self._endpoint.bayeux.state.is_stopping:
            response.force_close()
        return response

    async def _follow(self, reader: _Reader, answer: Answer) -> AsyncIterator[Answer]:
        """Yield what there is to read, until a reader should ask again.

        That is after some time, when this process ends or leaves, and when nothing may be read:
        the next response says why.
        """
        clock, streams = asyncio.get_running_loop().time, self._endpoint.bayeux.streams
        ends_at = clock() + LASTS_S
        yield answer
        while streams.may_wait and clock() < ends_at:
            question = replace(reader.question, offset=answer.end, wait_s=BEAT_S)
            try:
                answer = await self._read(reader, question)
            except RequestRefused:
                return
            if answer.error or not (answer.count or streams.may_wait):
                return
            yield answer

    def preflight(self, request: web.Request) -> web.Response:
        """Answer a browser that asks whether a page may read."""
        origin, host = request.headers.get("Origin"), request.headers.get("Host")
        allowed = self._endpoint.origins.preflight_headers(origin, host)
        if allowed:
            allowed["Access-Control-Allow-Methods"] = "GET, HEAD, OPTIONS"
            allowed["Access-Control-Allow-Headers"] = "Authorization, If-None-Match"
        return web.Response(headers=FIXED_HEADERS | allowed)

    async def _reader(self, request: web.Request) -> _Reader:
        """Return who wants to read what, if it may. Raises `RequestRefused`."""
        endpoint = self._endpoint
        endpoint.check_origin(request.headers)
        caller = endpoint.caller(request)
        question, live = self._question_of(request)
        grants = await self._grants(caller)
        channel = self._channel(question.channel)
        # A channel has several legal names, but only one of them decides about its home.
        question = replace(question, channel=channel.name)
        self._check(grants, channel)
        return _Reader(caller, grants, channel, question, live)

    async def _read(self, reader: _Reader, question: Question) -> Answer:
        """Read what is asked for. Raises `RequestRefused`."""
        network = reader.caller.network
        is_poll = question.wait_s > 0.0 and reader.live is Live.LONG_POLL
        with self._limits.one_more(network) if is_poll else nullcontext():
            answer = await self._ask(question)
        # Meanwhile the login may have ended, or the rules may have changed.
        self._check(reader.grants, reader.channel)
        if network:
            self._endpoint.budgets.admit_bytes(
                reader.caller, len(answer.body), self._endpoint.clock()
            )
        return answer

    def _question_of(self, request: web.Request) -> tuple[Question, Live | None]:
        query = request.query
        if any(name in query for name in _TOKENS):
            raise RequestRefused(ErrorReply.CREDENTIALS_IN_URL)
        offset, live = _only(query.getall("offset", [])), _only(query.getall("live", []))
        if offset is not None and not 0 < len(offset) <= _LONGEST_OFFSET:
            raise RequestRefused(ErrorReply.OFFSET_INVALID)
        if live not in (None, *Live):
            raise RequestRefused(ErrorReply.REQUEST_MALFORMED, "live is not long-poll or sse")
        if live is not None and offset is None:
            raise RequestRefused(ErrorReply.OFFSET_INVALID, "live needs an offset")
        is_head = request.method == "HEAD"
        question = Question(
            "/" + request.match_info["channel"],
            offset,
            self._endpoint.options.timeout_s if live is not None and not is_head else 0.0,
            has_envelope=_only(query.getall("envelope", [])) == "1",
            is_head=is_head,
        )
        return question, None if live is None or is_head else Live(live)

    def _channel(self, name: str) -> Channel:
        channel = self._channels.get(name)
        is_ordinary = (
            channel is not None
            and channel.kind is Kind.BROADCAST
            and not (channel.is_wild or channel.is_system)
        )
        if channel is None or not is_ordinary:
            raise RequestRefused(ErrorReply.HISTORY_MISSING)
        return channel

    async def _grants(self, caller: Caller) -> Grants | None:
        if self._prove is None:
            return None
        try:
            return await self._prove(caller, self._endpoint.clock())
        except Refused as refused:
            raise _of_request(refused) from None

    def _check(self, grants: Grants | None, channel: Channel) -> None:
        try:
            self._endpoint.bayeux.state.rights.check_reader(grants, channel)
        except Refused as refused:
            raise _of_request(refused) from None

    def _response(self, request: web.Request, question: Question, answer: Answer) -> web.Response:
        headers = self._headers(request) | {
            "Stream-Next-Offset": answer.end,
            "Cache-Control": self._caching(question, answer),
        }
        if answer.is_last:
            headers["Stream-Up-To-Date"] = "true"
        if question.wait_s:
            headers["Stream-Cursor"] = _interval(request.query.get("cursor", ""))
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
        scope = "public" if self._prove is None else "private"
        left_s = _REUSED_S
        if answer.ends_ms:
            left_s = min(left_s, max(0, answer.ends_ms - time.time_ns() // 1_000_000) // 1000)
        if answer.is_last or not left_s:
            # More may follow at any time.
            return f"{scope}, no-cache"
        return f"{scope}, max-age={left_s}"

    def _headers(self, request: web.Request) -> dict[str, str]:
        headers = {**FIXED_HEADERS, "Vary": _VARY, "Cross-Origin-Resource-Policy": "same-origin"}
        cors = self._endpoint.cors(request.headers)
        if cors:
            headers |= cors | {"Access-Control-Expose-Headers": _SHOWN}
        if self._endpoint.origins.trust_of(request.headers) is OriginTrust.ALLOWED:
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return headers

    def _refused(self, request: web.Request, answer: Answer) -> web.Response:
        """Return why nothing was read. After a loss, it says where to go on."""
        refused = RequestRefused(ErrorReply[answer.error])
        if answer.error != ErrorReply.HISTORY_LOST.name:
            return self._refusal(request, refused, {})
        said: Json = {"next": answer.end}
        if answer.lost:
            said["lost"] = {"from": answer.lost[0], "to": answer.lost[1]}
        return self._refusal(request, refused, said)

    def _refusal(
        self, request: web.Request, refused: RequestRefused, said: Mapping[str, object]
    ) -> web.Response:
        body = to_json([{"successful": False, "error": str(refused), **said}])
        headers = self._headers(request) | retry_headers(refused.wait_s)
        if "next" in said:
            headers["Stream-Next-Offset"] = str(said["next"])
        headers["Content-Type"] = JSON_TYPE
        return web.Response(status=refused.error.code, body=body, headers=headers)


def add_streams(application: web.Application, streams: StreamRequests) -> None:
    """Add the route."""

    async def preflight(request: web.Request) -> web.Response:
        return streams.preflight(request)

    path = STREAMS_PATH + "/{channel:.+}"
    application.router.add_get(path, streams.answer)
    application.router.add_options(path, preflight)


def _only(values: list[str]) -> str | None:
    """Return the value of a parameter, or None. Raises `RequestRefused` if it is repeated."""
    if len(values) > 1:
        raise RequestRefused(ErrorReply.OFFSET_INVALID, "a parameter is given twice")
    return values[0] if values else None


def _of_request(refused: Refused) -> RequestRefused:
    wait_s = (refused.advice or {}).get("interval", 0) / 1000
    return RequestRefused(refused.error, *refused.arguments, wait_s=wait_s)


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


def _interval(known: str) -> str:
    """Return the number of the present interval; always another one than the client knows."""
    now = int(time.time() - _FIRST_INTERVAL_S) // _INTERVAL_S
    if known.isascii() and known.isdecimal() and len(known) <= len(str(now)):
        now = max(now, int(known) + 1)
    return str(now)
