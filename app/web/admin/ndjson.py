"""JSON lines: read from a request's body and written to an answer, line by line."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import ClientError, web

from holdfast.web.admin.faults import TOO_LARGE, TOO_SLOW, RequestFailed, illegal
from holdfast.web.admin.paths import LINES

log = logging.getLogger(__name__)

_LONGEST_LINE = 8 * 1024 * 1024
_TIMEOUT_S = 30.0
# Bytes that are collected before they are sent.
_PORTION = 64 * 1024


def read_lines(request: web.Request) -> AsyncIterator[bytes]:
    """Yield the lines of a body that are not empty; raises `RequestFailed`."""
    return lines_in(_parts_of(request))


async def lines_in(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines that are not empty; raises `RequestFailed`."""
    rest = bytearray()
    async for part in parts:
        *lines, last = part.split(b"\n")
        for line in lines:
            rest += line
            if whole := bytes(rest).strip():
                yield whole
            rest.clear()
        rest += last
        if len(rest) > _LONGEST_LINE:
            raise RequestFailed(TOO_LARGE, f"a line has more than {_LONGEST_LINE} bytes")
    if whole := bytes(rest).strip():
        yield whole


async def _parts_of(request: web.Request) -> AsyncIterator[bytes]:
    while True:
        async with arriving():
            part = await request.content.readany()
        if not part:
            return
        yield part


@asynccontextmanager
async def arriving() -> AsyncIterator[None]:
    """Wait for a body, or a part of it, for a limited time; raises `RequestFailed`."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            yield
    except TimeoutError:
        raise RequestFailed(TOO_SLOW, "the body did not arrive in time", status=408) from None
    except (web.RequestPayloadError, ClientError):
        raise illegal("the body is damaged") from None


async def send_lines(
    request: web.Request, lines: AsyncIterator[bytes], speaking: Callable[[], Awaitable[None]]
) -> web.StreamResponse:
    """Answer with these lines. If one fails, the answer is cut off, so that clients notice.

    Each part waits for `speaking`, until it may be sent.
    """
    first = await anext(lines, None)
    response = web.StreamResponse(headers={"Content-Type": LINES})
    try:
        await speaking()
        await _prepare(response, request)
        portion = bytearray() if first is None else bytearray(first + b"\n")
        async for line in lines:
            portion += line + b"\n"
            if len(portion) >= _PORTION:
                await speaking()
                await _send(response, portion)
        await speaking()
        await _send(response, portion)
    except Exception as error:
        if not isinstance(error, _ReaderGone):
            log.exception("an export failed midway")
        if request.transport is not None:
            request.transport.abort()
    return response


class _ReaderGone(Exception):
    """The client has closed the connection."""


async def _prepare(response: web.StreamResponse, request: web.Request) -> None:
    try:
        await response.prepare(request)
    except ConnectionError:
        raise _ReaderGone from None


async def _send(response: web.StreamResponse, portion: bytearray) -> None:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await response.write(bytes(portion))
    except (ConnectionError, TimeoutError):
        raise _ReaderGone from None
    portion.clear()
