"""Posts to one URL that the settings name: signed, to addresses that were checked."""

import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from io import BytesIO
from ipaddress import ip_address
from typing import NamedTuple

import aiohttp
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, TCPConnector
from yarl import URL

from holdfast.distribution import release
from holdfast.settings.section import SignedPostSettings
from holdfast.web.outgoing.allowed_addresses import (
    AddressDenied,
    AllowedAddresses,
    CheckedResolver,
)
from holdfast.web.outgoing.signatures import signed_headers

_JSON = "application/json"


class Unanswered(Exception):
    """There was no answer. The text says why, without the URL, which may be secret."""


class PostAnswer(NamedTuple):
    """The answer to a post."""

    status: int
    reason: str
    headers: Mapping[str, str]
    # As much of it as may be read.
    body: bytes
    # Whether that was all.
    is_whole: bool


class SignedPosts:
    """Posts to the URL of the settings.

    It follows no redirects, uses no proxy of the environment, keeps no cookies, and verifies
    certificates.

    Args:
        at_once: The most posts at the same time.
        most_read: How much of an answer is read, in bytes.
        reads_all: Whether to wait for all of that; otherwise the first part that comes is enough.
    """

    def __init__(
        self,
        settings: SignedPostSettings,
        addresses: AllowedAddresses,
        *,
        at_once: int,
        timeout_s: float,
        most_read: int,
        reads_all: bool,
    ) -> None:
        self._keys = settings.keys
        self._addresses = addresses
        self._url = URL(settings.url)
        self._at_once, self._timeout_s = at_once, timeout_s
        self._most_read, self._reads_all = most_read, reads_all

    async def open(self, stack: AsyncExitStack) -> None:
        """Open what keeps connections; `stack` closes it."""
        names = aiohttp.DefaultResolver()
        stack.push_async_callback(names.close)
        self._session = await stack.enter_async_context(
            ClientSession(
                connector=TCPConnector(
                    resolver=CheckedResolver(names.resolve, self._addresses),
                    use_dns_cache=False,
                    limit=self._at_once,
                ),
                timeout=ClientTimeout(total=self._timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                headers={
                    "User-Agent": f"Holdfast/{release()}",
                    "Content-Type": _JSON,
                    # What is read of an answer must be readable.
                    "Accept-Encoding": "identity",
                },
            )
        )

    async def post(self, id: str, body: bytes, headers: Mapping[str, str]) -> PostAnswer:
        """Post the body, a part at a time. Raises `Unanswered`."""
        signed = signed_headers(self._keys, id, body, int(time.time()))
        try:
            self._check_literal()
            async with self._session.post(
                self._url,
                data=BytesIO(body),
                headers={**headers, **signed},
                allow_redirects=False,
            ) as response:
                return await self._answer(response)
        except TimeoutError:
            raise Unanswered(f"no answer within {self._timeout_s:g} s") from None
        except (ClientError, OSError, ValueError) as error:
            # A host that is no name raises ValueError.
            raise Unanswered(_reason(error)) from None

    def _check_literal(self) -> None:
        """Raise `AddressDenied` if the URL has an address that must not be called.

        Addresses are not looked up like names.
        """
        host = self._url.host or ""
        try:
            ip_address(host)
        except ValueError:
            return
        self._addresses.check(host, self._url.port or 0)

    async def _answer(self, response: ClientResponse) -> PostAnswer:
        body, is_whole = await self._beginning_of(response)
        # Of a reason that is no UTF-8, aiohttp makes text that cannot be encoded.
        reason = (response.reason or "").encode(errors="replace").decode()
        return PostAnswer(response.status, reason, response.headers, body, is_whole)

    async def _beginning_of(self, response: ClientResponse) -> tuple[bytes, bool]:
        """Return the beginning of an answer, and whether that is all of it.

        It is nothing if the answer breaks off.
        """
        parts, size = [], 0
        try:
            while size < self._most_read:
                part = await response.content.read(self._most_read - size)
                parts.append(part)
                size += len(part)
                if not (part and self._reads_all):
                    break
        except (ClientError, OSError):
            response.close()
            return b"", False
        is_whole = response.content.at_eof()
        if is_whole:
            # The connection can be used again.
            response.release()
        else:
            response.close()
        return b"".join(parts), is_whole


def _reason(error: BaseException) -> str:
    """Return why there was no answer, without the URL, which may be secret."""
    cause = error.__cause__ or error
    if isinstance(cause, AddressDenied):
        return str(cause)
    if isinstance(cause, OSError) and cause.strerror:
        return f"no connection: {cause.strerror}"
    return f"no answer: {type(error).__name__}"
