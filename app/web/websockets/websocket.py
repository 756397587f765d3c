"""The WebSocket transport: opens sockets, reads from them, and closes those that are silent."""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Mapping
from functools import partial

from aiohttp import HttpVersion11, WSCloseCode, WSMsgType, web

from holdfast.bayeux.wire.caller import Speaker
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.units import counted
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.answering.long_polling import refusal
from holdfast.web.front.arrival import Arrival, OpenSocket
from holdfast.web.http.origins import speaker_kind_of
from holdfast.web.websockets.open_socket import Socket
from holdfast.web.websockets.relayed_socket import RelayedSocket
from holdfast.web.websockets.socket_response import SocketResponse, close, dismiss, end, refuse

log = logging.getLogger(__name__)

# The only version (RFC 6455).
_VERSION = "13"
# A relayed socket is closed after its next reply, or after this time; so many in a second.
_RELAYED_S = 5.0
_RELAYED_PER_S = 100
# A proxy may speak an earlier version to servers, as nginx does unless it is told otherwise.
_OLD_HTTP = "WebSocket needs HTTP/1.1"


def is_upgrade(request: web.Request) -> bool:
    """Return whether a request asks for a WebSocket."""
    return request.method == "GET" and request.headers.get("Upgrade", "").lower() == "websocket"


class WebSocketFrontEnd:
    """Opens sockets and reads from them; tracks them so that they can be closed at the end."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._open: dict[SocketResponse, Socket] = {}
        self._responses: dict[object, SocketResponse] = {}
        self._watch: asyncio.Task[None] | None = None
        # Sockets that are being closed.
        self._goodbyes: set[asyncio.Task[None]] = set()
        # How many sockets a predecessor relays or has relayed.
        self._relayed = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Handle an upgrade request, and then its socket until it closes."""
        arrival: Arrival | None = getattr(request.protocol, "arrival", None)
        if arrival is not None and arrival.socket is not None:
            return await self._go_on(request, arrival.socket, is_relayed=bool(arrival.relayed))
        try:
            kind = speaker_kind_of(self._endpoint.check_origin(request.headers))
            caller = self._endpoint.caller(request)
        except RequestRefused as refused:
            return refusal(request, refused, self._endpoint)
        if request.version < HttpVersion11:
            old = RequestRefused(ErrorReply.TRANSPORT_UNKNOWN, _OLD_HTTP)
            return refusal(request, old, self._endpoint)
        if not self._speaks_our_protocol(request):
            return refusal(request, RequestRefused(ErrorReply.TRANSPORT_UNKNOWN), self._endpoint)
        if request.headers.get("Sec-WebSocket-Version", "").strip() != _VERSION:
            return _refused_version(request, self._endpoint)
        response = SocketResponse(self._endpoint)
        speaker = self._endpoint.speaker(request.headers, caller, kind)
        try:
            is_known = self._endpoint.bayeux.identities.has_browser(speaker, self._endpoint.clock())
        except RequestRefused as refused:
            return refusal(request, refused, self._endpoint)
        if not is_known:
            browser = self._welcome(request, speaker)
            speaker = speaker.with_browsers((browser,))
            response.headers["Set-Cookie"] = self._endpoint.cookie.header(browser)
        host_cookie = self._endpoint.host_cookie
        if host_cookie is not None and (line := host_cookie.of_socket(speaker)) is not None:
            response.headers.add("Set-Cookie", line)
        socket = await self._open_socket(request, response, speaker)
        return await self._converse(request.protocol, response, socket)

    async def _go_on(
        self, request: web.Request, former: OpenSocket, *, is_relayed: bool
    ) -> web.StreamResponse:
        """Serve a socket that another process has opened by the same request."""
        endpoint = self._endpoint
        try:
            trust = endpoint.check_origin(request.headers)
        except RequestRefused as refused:
            return refusal(request, refused, endpoint)
        caller = endpoint.peers.caller(request.headers, request.transport)
        speaker = endpoint.speaker(request.headers, caller, speaker_kind_of(trust))
        speaker = speaker.with_browsers(former.browsers)
        response = SocketResponse(endpoint, is_open=True)
        kind = RelayedSocket if is_relayed else Socket
        socket = await self._open_socket(request, response, speaker, kind)
        if isinstance(socket, RelayedSocket):
            self._relayed += 1
            socket.part = partial(self._end_relayed, response)
            wait_s = _RELAYED_S + self._relayed / _RELAYED_PER_S
            asyncio.get_running_loop().call_later(wait_s, socket.part, socket)
        session = endpoint.bayeux.state.sessions.of_client(former.client_id)
        if session is not None and session.pipe is None and not session.is_gone:
            life = endpoint.bayeux.life
            take_up = life.attach if former.is_attached else life.bind
            take_up(socket, session, endpoint.clock())
        return await self._converse(request.protocol, response, socket)

    def _end_relayed(self, response: SocketResponse, socket: Socket) -> None:
        """Close a relayed socket between two messages: its client returns without the relay."""
        if response in self._open and not socket.is_busy():
            self._begin(close(response, socket, WSCloseCode.SERVICE_RESTART, "the server restarts"))

    async def _open_socket(
        self,
        request: web.Request,
        response: SocketResponse,
        speaker: Speaker,
        kind: type[Socket] = Socket,
    ) -> Socket:
        writer = await response.prepare(request)
        socket = kind(
            request,
            self._endpoint,
            speaker,
            flush=writer.drain,
            hang_up=partial(close, response),
        )
        response.socket = socket
        self._open[response] = socket
        self._responses[request.protocol] = response
        self._expect_session(response, socket)
        if self._watch is None and self._endpoint.options.ws_idle_timeout > 0:
            self._watch = asyncio.get_running_loop().create_task(self._watch_idle())
        return socket

    async def _converse(
        self, connection: object, response: SocketResponse, socket: Socket
    ) -> web.StreamResponse:
        try:
            await self._read(response, socket)
        finally:
            del self._open[response], self._responses[connection]
            socket.leave()
            self._endpoint.requests.detach(socket)
        return response

    def _welcome(self, request: web.Request, speaker: Speaker) -> str:
        """Create an identity for a browser that has none of this deployment."""
        browser = self._endpoint.bayeux.state.client_ids.new()
        if speaker.browsers:
            return browser
        # Requests have no order within a turn of the loop, but connections have.
        opened_at = getattr(request.protocol, "unused_since", None) or self._endpoint.clock()
        self._endpoint.bayeux.identities.welcome(browser, opened_at)
        return browser

    def _expect_session(self, response: SocketResponse, socket: Socket) -> None:
        """Close a socket that does not name a session in time."""
        limit_s = self._endpoint.options.ws_session_timeout / 1000
        end = self._end_without_session
        socket.expecting = asyncio.get_running_loop().call_later(
            limit_s, self._endpoint.endings.add, partial(end, response, socket)
        )

    def _end_without_session(self, response: SocketResponse, socket: Socket) -> None:
        if socket.has_session or response not in self._open:
            return
        if socket.is_busy():
            # A message that names one may wait for this server.
            self._expect_session(response, socket)
        else:
            self._begin(refuse(response, socket, RequestRefused(ErrorReply.REQUEST_TIMEOUT)))

    def _end_idle(self, response: SocketResponse, socket: Socket, latest: float) -> None:
        if response in self._open and socket.is_idle(since=latest):
            goodbye = WSCloseCode.GOING_AWAY, "idle for too long"
            self._begin(close(response, socket, *goodbye, drain=False))

    def _begin(self, goodbye: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(goodbye)
        self._goodbyes.add(task)
        task.add_done_callback(self._goodbyes.discard)

    async def _watch_idle(self) -> None:
        """Check all sockets periodically: cheaper than a timeout for each message."""
        limit_s, clock = self._endpoint.options.ws_idle_timeout / 1000, self._endpoint.clock
        while self._open:
            await asyncio.sleep(limit_s / 10)
            latest = clock() - limit_s
            for response, socket in self._open.items():
                if socket.is_idle(since=latest):
                    self._endpoint.endings.add(partial(self._end_idle, response, socket, latest))
        self._watch = None

    def by_connection(self) -> Mapping[object, SocketResponse]:
        """Return the responses of all open sockets by their connections."""
        return self._responses

    def all(self) -> Collection[Socket]:
        """Return all open sockets."""
        return self._open.values()

    async def close_drained(self) -> None:
        """Close each socket when everything pending has been sent; its client returns meanwhile."""
        if self._watch is not None:
            self._watch.cancel()
        if self._open:
            log.info("the server stops and closes %s with 1001", counted(len(self._open), "socket"))
        goodbyes = [dismiss(*each) for each in self._open.items()]
        await asyncio.gather(*goodbyes, return_exceptions=True)

    async def close_all(self) -> None:
        """Close the sockets that are still open."""
        goodbyes = [
            response.close(code=WSCloseCode.GOING_AWAY, drain=False) for response in self._open
        ]
        await asyncio.gather(*goodbyes, return_exceptions=True)

    def _speaks_our_protocol(self, request: web.Request) -> bool:
        protocol = self._endpoint.options.ws_protocol
        if protocol is None:
            return True
        offered = request.headers.get("Sec-WebSocket-Protocol", "").split(",")
        return protocol in [name.strip() for name in offered]

    async def _read(self, response: SocketResponse, socket: Socket) -> None:
        while True:
            received = await response.hear(socket)
            if received.type is not WSMsgType.TEXT:
                await end(response, socket, received)
                return
            refused = await socket.handle(received.data)
            if refused is not None:
                await refuse(response, socket, refused)
                return


def _refused_version(request: web.Request, endpoint: Endpoint) -> web.Response:
    response = refusal(request, RequestRefused(ErrorReply.WEBSOCKET_VERSION_UNSUPPORTED), endpoint)
    ours = {"Sec-WebSocket-Version": _VERSION, "Upgrade": "websocket", "Connection": "Upgrade"}
    response.headers.update(ours)
    return response
