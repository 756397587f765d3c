"""A response of Server-Sent Events that is open."""

import asyncio
from typing import TYPE_CHECKING, Final

from aiohttp import web

from holdfast.bayeux.state.waiting_readers import WaitingReader
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.web.streams.reading_rights import Admission

if TYPE_CHECKING:
    from collections.abc import Mapping

# A client that leaves more than this unread is disconnected. It goes on where it stopped.
MOST_UNREAD: Final = 256 * 1024
# How long a client may take to read what it gets before it waits for news, and the end.
_READ_S: Final = 30.0
HEADERS: Final = {
    # Some clients compare the whole value, which is UTF-8 anyway.
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache, no-store",
    # Otherwise nginx collects the events.
    "X-Accel-Buffering": "no",
}
BEAT: Final = b":\n\n"


class Written:
    """Events as they are sent, written once for all readers that wait for the same."""

    __slots__ = ("chunk", "is_checked", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text
        # The same in a chunk of HTTP.
        self.chunk = b"%x\r\n%b\r\n" % (len(text), text)
        # Whether a reader without a login may have it: then all of them may.
        self.is_checked = False


class OpenStream:
    """The response to one reader.

    Args:
        places: By home, where the reader is.
        has_all: Whether there was no more behind them.
    """

    __slots__ = (
        "_admission",
        "_is_chunked",
        "_request",
        "_response",
        "_transport",
        "_waiting",
        "has_all",
        "is_over",
        "places",
        "reader",
        "refused",
    )

    def __init__(
        self,
        request: web.Request,
        admission: Admission,
        reader: WaitingReader,
        places: "Mapping[int, str]",
        *,
        has_all: bool,
    ) -> None:
        self._request, self._admission = request, admission
        self.reader, self.places, self.has_all = reader, dict(places), has_all
        self._response = web.StreamResponse(headers={**admission.headers(request), **HEADERS})
        self._is_chunked = False
        self._transport: asyncio.Transport | None = None
        # Done when it waits no longer.
        self._waiting: asyncio.Future[None] | None = None
        self.is_over = False
        # Why it is over, if the reader has to know.
        self.refused: RequestRefused | None = None
        reader.end = self.recheck

    @property
    def response(self) -> web.StreamResponse:
        return self._response

    async def begin(self) -> None:
        """Send the headers."""
        await self._response.prepare(self._request)
        self._transport = self._request.transport
        self._is_chunked = self._response.headers.get("Transfer-Encoding") == "chunked"

    async def send(self, text: bytes) -> None:
        """Send events, and wait while the client does not read."""
        self._admission.check(self.reader)
        self._admission.spend(self.reader, len(text))
        async with asyncio.timeout(_READ_S):
            await self._response.write(text)

    def give(self, written: Written) -> None:
        """Send what all readers get, unless the client does not read."""
        transport = self._transport
        if self.is_over or transport is None or transport.is_closing():
            self.stop()
            return
        sent = written.chunk if self._is_chunked else written.text
        unread = transport.get_write_buffer_size()
        if unread and unread + len(sent) > MOST_UNREAD:
            transport.abort()
            self.stop()
            return
        try:
            if self.reader.grants is not None or not written.is_checked:
                self._admission.check(self.reader)
                written.is_checked = self.reader.grants is None
            self._admission.spend(self.reader, len(sent))
        except RequestRefused as refused:
            self.stop(refused)
        else:
            transport.write(sent)

    def recheck(self) -> None:
        """Look whether the reader may still read."""
        try:
            self._admission.check(self.reader)
        except RequestRefused as refused:
            self.stop(refused)

    def stop(self, refused: RequestRefused | None = None) -> None:
        """End the response soon."""
        self.is_over, self.refused = True, self.refused or refused
        self.fall_behind()

    def fall_behind(self) -> None:
        """Let the reader read by itself again."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def wait(self, most_s: float) -> None:
        """Wait until others give nothing any more, or for this long."""
        if self.is_over:
            return
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(most_s):
                await self._waiting
        except TimeoutError:
            self.is_over = True
        finally:
            self._waiting = None

    async def end(self, text: bytes) -> None:
        """Send the last event and the end."""
        async with asyncio.timeout(_READ_S):
            if text:
                await self._response.write(text)
            await self._response.write_eof()

    def abort(self) -> None:
        """Close the connection: the client does not read."""
        if self._request.transport is not None:
            self._request.transport.abort()
