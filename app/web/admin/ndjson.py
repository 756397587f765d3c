"""JSON lines: out of a request's body and into an answer, never more than one line at a time."""

import asyncio
import logging
from collections.abc import AsyncIterator

from aiohttp import ClientError, web

from app.web.admin.address import LINES
from app.web.admin.faults import TOO_SLOW, RequestFault, illegal
from app.web.admin.operations import TOO_LARGE

log = logging.getLogger(__name__)

_LONGEST_LINE = 8 * 1024 * 1024
_PATIENCE_S = 30.0
# What is gathered before it is sent.
_PORTION = 64 * 1024


async def read_lines(request: web.Request) -> AsyncIterator[bytes]:
    """The lines of a body that are not empty; raises `RequestFault`."""
    rest = bytearray()
    while part := await _part(request):
        *lines, last = part.split(b"\n")
        for line in lines:
            rest += line
            if whole := bytes(rest).strip():
                yield whole
            rest.clear()
        rest += last
        if len(rest) > _LONGEST_LINE:
            raise RequestFault(413, TOO_LARGE, f"a line has more than {_LONGEST_LINE} bytes")
    if whole := bytes(rest).strip():
        yield whole


async def _part(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await request.content.readany()
    except TimeoutError:
        raise RequestFault(408, TOO_SLOW, "the body did not go on") from None
    except (web.RequestPayloadError, ClientError):
        raise illegal("the body is damaged") from None


async def send_lines(request: web.Request, lines: AsyncIterator[bytes]) -> web.StreamResponse:
    """Answer with these lines. If they fail in their middle the answer has no end, as a warning."""
    first = await anext(lines, None)
    response = web.StreamResponse(headers={"Content-Type": LINES})
    try:
        await _prepare(response, request)
        portion = bytearray() if first is None else bytearray(first + b"\n")
        async for line in lines:
            portion += line + b"\n"
            if len(portion) >= _PORTION:
                await _send(response, portion)
        await _send(response, portion)
    except Exception as error:
        if not isinstance(error, _ReaderGone):
            log.exception("an export ended before its end")
        if request.transport is not None:
            request.transport.abort()
    return response


class _ReaderGone(Exception):
    """Nobody takes the answer any more."""


async def _prepare(response: web.StreamResponse, request: web.Request) -> None:
    try:
        await response.prepare(request)
    except ConnectionError:
        raise _ReaderGone from None


async def _send(response: web.StreamResponse, portion: bytearray) -> None:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await response.write(bytes(portion))
    except (ConnectionError, TimeoutError):
        raise _ReaderGone from None
    portion.clear()
