"""Long-polling: each request is a POST, and its response has events and replies."""

from collections.abc import Sequence
from io import BytesIO

import aiohttp
import orjson

from holdfast.client.transport_choice import LONG_POLLING
from holdfast.client.transports import (
    NETWORK_DELAY_S,
    NoReply,
    NotSent,
    Receive,
    RequestRefused,
    ServerFault,
    decoded,
)
from holdfast.client.wire import Json

_HEADERS = {"Content-Type": "application/json;charset=UTF-8"}
# aiohttp writes larger ones in parts if they are files.
_LARGE = 1024 * 1024
# These say that the request itself is wrong, ...
_TOO_LARGE = 413
_REFUSED = {400, _TOO_LARGE, 415}
# ... and these that the server, or a firewall before it, may fail over it each time. Others pass.
_FAILED = {403, 406, 422, 500}


class LongPolling:
    """Opens no connection: aiohttp keeps connections open."""

    name = LONG_POLLING

    def __init__(self, http: aiohttp.ClientSession, url: str, receive: Receive) -> None:
        self._http = http
        self._url = url
        self._receive = receive

    async def send(self, messages: Sequence[Json], timeout_s: float) -> list[Json]:
        timeout = aiohttp.ClientTimeout(total=timeout_s + NETWORK_DELAY_S)
        # A copy, as orjson leaves 4 KiB to what it has written, and a connect is held for long.
        text = bytes(memoryview(orjson.dumps(messages)))
        body = BytesIO(text) if len(text) > _LARGE else text
        try:
            async with self._http.post(
                self._url, data=body, headers=_HEADERS, timeout=timeout
            ) as response:
                text = await response.read()
        except aiohttp.ClientConnectorError as error:
            raise NotSent(str(error)) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NoReply(str(error) or type(error).__name__) from error
        if response.status != 200:
            raise _failure(response.status)
        events, replies = decoded(text)
        if events:
            self._receive(events)
        return replies

    async def close(self) -> None:
        """Do nothing: aiohttp owns the connections."""


def _failure(status: int) -> NoReply:
    """Return what a response means that has no replies."""
    text = f"HTTP {status}"
    if status in _REFUSED:
        return RequestRefused(text, is_too_large=status == _TOO_LARGE)
    return ServerFault(text) if status in _FAILED else NoReply(text)
