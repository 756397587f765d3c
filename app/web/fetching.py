"""Fetches small documents from other servers."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from aiohttp import ClientError, ClientSession, ClientTimeout

_LIMIT_S = 5.0
_LARGEST = 1024 * 1024
_OK = 200


class FetchFailed(OSError):
    """The document is unavailable. The text says why."""


def open_fetcher(stack: AsyncExitStack) -> Callable[[str], Awaitable[bytes]]:
    """Return a function that fetches the document at a URL. It follows no redirects."""
    session = ClientSession(timeout=ClientTimeout(total=_LIMIT_S))
    stack.push_async_callback(session.close)

    async def fetch(url: str) -> bytes:
        try:
            async with session.get(url, allow_redirects=False) as response:
                if response.status != _OK:
                    raise FetchFailed(f"{url}: status {response.status}")
                text = bytearray()
                async for piece in response.content.iter_any():
                    text += piece
                    if len(text) > _LARGEST:
                        raise FetchFailed(f"{url}: larger than {_LARGEST} bytes")
        except (ClientError, TimeoutError) as error:
            raise FetchFailed(f"{url}: {str(error) or type(error).__name__}") from None
        return bytes(text)

    return fetch
