"""`POST /publish`: publishing by scripts that keep no session.

Such a request is handled like the same actions of a client: a handshake, publishes, a disconnect.
With several shards, each that handles a part of the messages has a session for them. So login,
rights, budgets, quotas and extensions are the same as any client's.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from time import thread_time
from typing import NamedTuple, Protocol

import orjson
from aiohttp import web

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.meta.validation import skeleton
from holdfast.bayeux.publish.qos import OPTION_NAMES
from holdfast.bayeux.rights import BY_POLICY
from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import Caller, Speaker, credentials_in
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.codec import Json, decode, read
from holdfast.bayeux.wire.errors import ErrorReply, Refused, RequestRefused
from holdfast.bayeux.wire.transports import ConnectionType, SpeakerKind
from holdfast.bayeux.wire.unfit import Salvage, Unfit, malformed
from holdfast.delivery.basics.channels import Channels, Kind
from holdfast.delivery.basics.json_text import to_json
from holdfast.settings import Settings
from holdfast.web.admin.paths import LINES
from holdfast.web.answering.bodies import read_body
from holdfast.web.answering.endpoint import FIXED_HEADERS, JSON_TYPE, Endpoint, retry_headers
from holdfast.web.answering.long_polling import Waiting, exchange_over_http, refusal
from holdfast.web.http.origins import speaker_kind_of
from holdfast.web.scheduling.intake import SMALL

_LONG_POLLING = ConnectionType.LONG_POLLING
_HANDSHAKE = "/meta/handshake"
_CODE = re.compile("[45][0-9][0-9](?=:)")
# How many messages of a request may wait for the store: as many as a session may have there.
_MOST_UNANSWERED = 256
# What an error says besides of a message that may be stored.
_UNKNOWN = ",unknown:"


class Part(NamedTuple):
    """Messages of a request that one shard handles, in one session."""

    speaker: Speaker
    # Their places in the request.
    places: Sequence[int]


class Divider(Protocol):
    """Divides requests into parts."""

    def divide(
        self, handshake: Json, caller: Caller, kind: SpeakerKind, messages: Sequence[Json]
    ) -> list[Part]:
        """Return the parts of a request; at least one, which is empty if the request is."""
        ...


class OneShard(Divider):
    """Divides nothing: this process handles everything."""

    def __init__(self, client_ids: ClientIds) -> None:
        self._client_ids = client_ids

    def divide(
        self, handshake: Json, caller: Caller, kind: SpeakerKind, messages: Sequence[Json]
    ) -> list[Part]:
        # A new identity, whatever cookies the request has: the session is not shared.
        speaker = Speaker(caller, (self._client_ids.new(),), kind=kind)
        return [Part(speaker, range(len(messages)))]


class PublishRequests:
    """Answers `POST /publish`."""

    def __init__(self, endpoint: Endpoint, divider: Divider) -> None:
        self._endpoint = endpoint
        self._divider = divider
        state = endpoint.bayeux.state
        self._channels, self._errors = state.channels, state.counters.errors
        self._limits = state.request_limits
        # Large bodies are decoded one after the other.
        self._decoding = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.Response:
        """Publish the messages of the body; the response has a result for each."""
        endpoint = self._endpoint
        try:
            kind = speaker_kind_of(endpoint.check_origin(request.headers))
            if _LONG_POLLING not in endpoint.options.transports:
                raise RequestRefused(ErrorReply.TRANSPORT_UNKNOWN)
            caller = endpoint.caller(request)
            body, count = await _body_of(request, endpoint, caller)
            results = await self._publish(request, caller, kind, body, count)
        except RequestRefused as refused:
            return refusal(request, refused, endpoint)
        return self._response(request, results)

    async def _messages(self, caller: Caller, body: bytes, count: int | None) -> list[Json]:
        """Decode the body. Raises `RequestRefused`."""
        if len(body) <= SMALL:
            messages = decode(body, self._limits)
        else:
            self._endpoint.intake.take(len(body), caller.network)
            try:
                async with self._decoding:
                    messages = await self._decode_large(body)
            finally:
                self._endpoint.intake.give_back(len(body), caller.network)
        if count is not None and len(messages) != count:
            raise malformed("a line that is not one message")
        return messages

    async def _decode_large(self, body: bytes) -> list[Json]:
        """Decode in steps. After each, other requests get as much time."""
        async with self._rest_after_step():
            found = read(body, self._limits)
        if not isinstance(found, Salvage):
            return found
        is_over = False
        while not is_over:
            async with self._rest_after_step():
                is_over = found.go_on()
        return found.messages

    @asynccontextmanager
    async def _rest_after_step(self) -> AsyncIterator[None]:
        began_s = thread_time()
        try:
            yield
        finally:
            await asyncio.sleep(thread_time() - began_s)

    async def _publish(
        self,
        request: web.Request,
        caller: Caller,
        kind: SpeakerKind,
        body: bytes,
        count: int | None,
    ) -> list[Json]:
        """Publish in sessions for this request only. Returns the results in order."""
        gate = self._endpoint.gate
        gate.under_way += 1
        try:
            messages = await self._messages(caller, body, count)
            if self._endpoint.options.otlp is not None:
                _give_context(messages, request.headers)
            handshake = _handshake(request)
            parts = self._divider.divide(handshake, caller, kind, messages)
            found = await self._publish_parts(request, to_json(handshake), parts, messages)
        finally:
            gate.under_way -= 1
        results = [result for part in found for result in part]
        places = [place for part in parts for place in part.places]
        return [results[at] for at in sorted(range(len(places)), key=places.__getitem__)]

    async def _publish_parts(
        self, request: web.Request, handshake: bytes, parts: list[Part], messages: list[Json]
    ) -> list[list[Json]]:
        """Publish all parts at the same time. Returns the results of each."""
        jobs = [
            self._publish_part(
                request, part.speaker, handshake, [messages[place] for place in part.places]
            )
            for part in parts
        ]
        if len(jobs) == 1:
            return [await jobs[0]]
        found = await asyncio.gather(*jobs, return_exceptions=True)
        refused = [each for each in found if isinstance(each, BaseException)]
        for each in refused:
            if len(refused) == len(found) or not isinstance(each, RequestRefused):
                raise each
        options = self._endpoint.bayeux.state.options
        return [
            _refused(outcome, part, messages, options)
            if isinstance(outcome, BaseException)
            else outcome
            for part, outcome in zip(parts, found, strict=True)
        ]

    async def _publish_part(
        self, request: web.Request, speaker: Speaker, handshake: bytes, messages: list[Json]
    ) -> list[Json]:
        """Publish in one session. Raises `RequestRefused`, with nothing published."""
        answered = await exchange_over_http(
            request, self._endpoint, speaker, _LONG_POLLING, handshake
        )
        # The session may be in another process.
        replies = orjson.loads(answered.body)
        reply = next(each for each in replies if each.get("channel") == _HANDSHAKE)
        if not reply["successful"]:
            fault = {name: reply[name] for name in ("successful", "error", "advice")}
            return [skeleton(message) | fault for message in messages]
        client_id = reply["clientId"]
        try:
            return await self._publish_all(request, speaker, client_id, messages)
        finally:
            self._disconnect(request, speaker, client_id)

    async def _publish_all(
        self, request: web.Request, speaker: Speaker, client_id: str, messages: list[Json]
    ) -> list[Json]:
        """Publish one slice after the other. What follows a 503 is refused alike, untried."""
        clock = asyncio.get_running_loop().time
        ends_at = clock() + self._endpoint.options.publish_timeout / 1000
        size, fault = _MOST_UNANSWERED, None
        results = await self._publish_as(request, speaker, client_id, messages[:size])
        for start in range(size, len(messages), size):
            fault = fault or _passing_fault(results[-size:]) or self._why_no_more(clock() > ends_at)
            some = messages[start : start + size]
            if fault is None:
                try:
                    results += await self._publish_as(request, speaker, client_id, some)
                except RequestRefused as refused:
                    fault = _fault_of(refused, self._endpoint.bayeux.state.options)
            if fault is not None:
                results += [skeleton(message) | fault for message in some]
        return results

    def _why_no_more(self, is_late: bool) -> Json | None:
        """Return the error of messages that are not tried because the server ends, or is late."""
        endpoint = self._endpoint
        if is_late:
            return {"successful": False, "error": ErrorReply.SERVER_BUSY.wire("publish_timeout")}
        if endpoint.bayeux.state.is_stopping or not endpoint.gate.lets_begin:
            return {"successful": False, "error": ErrorReply.SERVER_BUSY.wire()}
        return None

    async def _publish_as(
        self, request: web.Request, speaker: Speaker, client_id: str, messages: list[Json]
    ) -> list[Json]:
        refusals = [self._refusal(message) for message in messages]
        publishes = [
            {**message, "clientId": client_id}
            for message, refused in zip(messages, refusals, strict=True)
            if refused is None
        ]
        answer = b"[]"
        if publishes:
            answered = await exchange_over_http(
                request, self._endpoint, speaker, _LONG_POLLING, to_json(publishes)
            )
            answer = answered.body
        # Events to the session, such as a service's, have no such field.
        replies = (each for each in orjson.loads(answer) if "successful" in each)
        return [refused or next(replies) for refused in refusals]

    def _refusal(self, message: Json) -> Json | None:
        """Return the result of a message that is not a publish and would change the session."""
        if isinstance(message, Unfit):
            refused = Refused(message.fault)
        elif _is_meta(self._channels, message.get("channel")):
            refused = Refused(ErrorReply.PUBLISH_DENIED, BY_POLICY)
        elif names := OPTION_NAMES.intersection(message):
            fault = f"{min(names)} belongs into ext.delivery"
            refused = Refused(ErrorReply.DELIVERY_INVALID, "user.publish", fault)
        else:
            return None
        result = skeleton(message)
        refused.fill(result, self._errors)
        return result

    def _disconnect(self, request: web.Request, speaker: Speaker, client_id: str) -> None:
        """End the session without waiting for the reply."""
        message = {"channel": "/meta/disconnect", "clientId": client_id}
        exchange = Exchange(Waiting(request, _LONG_POLLING), speaker)
        self._endpoint.requests.receive(to_json(message), exchange)

    def _response(self, request: web.Request, results: list[Json]) -> web.Response:
        """Answer in the form of the request."""
        is_lines = request.content_type == LINES
        body = b"".join(to_json(each) + b"\n" for each in results) if is_lines else to_json(results)
        headers = {
            "Content-Type": LINES if is_lines else JSON_TYPE,
            **FIXED_HEADERS,
            **self._endpoint.cors(request.headers),
        }
        status = 200
        if not any(result["successful"] for result in results):
            # For `curl --fail`: a retry then repeats only what was not published.
            status = _status(results[0])
            headers |= retry_headers(results[0].get("advice", {}).get("interval", 0) / 1000)
        response = web.Response(status=status, body=body, headers=headers)
        if self._endpoint.bayeux.state.is_stopping:
            # The client's next request must reach another server.
            response.force_close()
        return response


async def _body_of(
    request: web.Request, endpoint: Endpoint, caller: Caller
) -> tuple[bytes, int | None]:
    """Return the body as JSON and, if it came in lines, their number. Raises `RequestRefused`."""
    # Not as a form, because curl labels any data as one.
    body = await read_body(request, endpoint, caller.network)
    if request.content_type != LINES:
        return body, None
    lines = [line for line in map(bytes.strip, body.split(b"\n")) if line]
    # With its line end, which no string may contain.
    return b"[" + b"\n,".join(lines) + b"]", len(lines)


def _give_context(messages: list[Json], headers: Mapping[str, str]) -> None:
    """Put messages into the trace of the request, if it has one and they have none."""
    from holdfast.web.http.trace_context import TRACEPARENT, is_traceparent

    said = headers.get(TRACEPARENT)
    if not is_traceparent(said):
        return
    for message in messages:
        ext = message.setdefault("ext", {})
        if isinstance(ext, dict):
            ext.setdefault(TRACEPARENT, said)


def _handshake(request: web.Request) -> Json:
    """Return the handshake of a session that takes none of its subject's messages."""
    ext: Json = {"delivery": {"ptp": False}}
    token = credentials_in(request.headers.get("Authorization", ""), "bearer")
    if token is not None:
        # Where clients send it: without a login, a wrong one is detected only here. JSON cannot
        # contain everything that a header can.
        ext["authentication"] = {"token": token.encode(errors="replace").decode()}
    return {
        "channel": _HANDSHAKE,
        "version": "1.0",
        "supportedConnectionTypes": [_LONG_POLLING.value],
        "ext": ext,
    }


def _refused(
    error: BaseException, part: Part, messages: list[Json], options: Settings
) -> list[Json]:
    """Return the results of a part that its shard has refused as a whole."""
    fault = _fault_of(error, options)
    return [skeleton(messages[place]) | fault for place in part.places]


def _fault_of(error: BaseException, options: Settings) -> Json:
    """Return what the results say of messages that were refused together."""
    fault: Json = {"successful": False, "error": str(error)}
    if isinstance(error, RequestRefused) and error.wait_s > 0.0:
        fault["advice"] = reconnect_advice(options, "retry", error.wait_s)
    return fault


def _passing_fault(results: Sequence[Json]) -> Json | None:
    """Return the first refusal that will pass, as it applies to messages that were not tried."""
    for result in results:
        if not result["successful"] and _status(result) == ErrorReply.SERVER_BUSY.code:
            error = str(result["error"]).replace(_UNKNOWN, ":")
            advice = {"advice": result["advice"]} if "advice" in result else {}
            return {"successful": False, "error": error, **advice}
    return None


def _is_meta(channels: Channels, name: object) -> bool:
    channel = channels.get(name) if isinstance(name, str) else None
    return channel is not None and channel.kind is Kind.META


def _status(result: Json) -> int:
    """Return the HTTP status for an error; extensions may have written another error."""
    found = _CODE.match(str(result.get("error")))
    return ErrorReply.SERVER_FAULT.code if found is None else int(found[0])
