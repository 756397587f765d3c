"""Posts bodies to the URL of one webhook."""

import time
from contextlib import AsyncExitStack
from io import BytesIO
from ipaddress import ip_address

import aiohttp
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, TCPConnector
from yarl import URL

from holdfast.distribution import release
from holdfast.settings.webhooks import WebhookSettings
from holdfast.web.http.trace_context import TRACEPARENT, is_traceparent
from holdfast.web.webhooks.allowed_addresses import (
    AddressDenied,
    AllowedAddresses,
    CheckedResolver,
)
from holdfast.web.webhooks.judging import Answer, seconds_until
from holdfast.web.webhooks.posted_bodies import Body
from holdfast.web.webhooks.signatures import signed_headers

# How much of an answer is read, in bytes: a letter shows the beginning.
_MOST_READ = 4096
_MOST_SHOWN = 200
_JSON = "application/json"


class Posting:
    """Makes the calls of one webhook.

    It follows no redirects, uses no proxy of the environment, keeps no cookies, and verifies
    certificates.
    """

    def __init__(self, settings: WebhookSettings, addresses: AllowedAddresses) -> None:
        self._settings = settings
        self._keys = settings.keys
        self._addresses = addresses
        self._url = URL(settings.url)

    async def open(self, stack: AsyncExitStack) -> None:
        """Open what keeps connections; `stack` closes it."""
        names = aiohttp.DefaultResolver()
        stack.push_async_callback(names.close)
        self._session = await stack.enter_async_context(
            ClientSession(
                connector=TCPConnector(
                    resolver=CheckedResolver(names.resolve, self._addresses),
                    use_dns_cache=False,
                    limit=self._settings.in_flight,
                ),
                timeout=ClientTimeout(total=self._settings.timeout / 1000),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                headers={
                    "User-Agent": f"Holdfast/{release()}",
                    "Content-Type": _JSON,
                    # Letters show the beginning of an answer.
                    "Accept-Encoding": "identity",
                },
            )
        )

    async def post(self, body: Body) -> Answer:
        """Post the body, a part at a time. Returns the answer, or why there is none."""
        now_s = time.time()
        headers = {**signed_headers(self._keys, body.id, body.text, int(now_s))}
        if is_traceparent(body.traceparent):
            # Nothing else that a publisher invents becomes a header.
            headers[TRACEPARENT] = str(body.traceparent)
        try:
            self._check_literal()
            async with self._session.post(
                self._url, data=BytesIO(body.text), headers=headers, allow_redirects=False
            ) as response:
                return await self._answer(response, now_s)
        except TimeoutError:
            return Answer(0, f"no answer within {self._settings.timeout / 1000:g} s")
        except (ClientError, OSError, ValueError) as error:
            # A host that is no name raises ValueError.
            return Answer(0, _reason(error))

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

    async def _answer(self, response: ClientResponse, now_s: float) -> Answer:
        shown = await _beginning_of(response)
        text = " ".join(shown.decode(errors="replace").split())[:_MOST_SHOWN]
        # Of a reason that is no UTF-8, aiohttp makes text that cannot be encoded.
        reason = (response.reason or "").encode(errors="replace").decode()
        line = f"{response.status} {reason}".strip()[:_MOST_SHOWN]
        retry_after_s = seconds_until(response.headers.get("Retry-After"), now_s)
        return Answer(response.status, f"{line}: {text}" if text else line, retry_after_s)


async def _beginning_of(response: ClientResponse) -> bytes:
    """Return the beginning of an answer; nothing if it breaks off: its status has said it all."""
    try:
        beginning = await response.content.read(_MOST_READ)
    except (ClientError, OSError):
        beginning = b""
    if response.content.at_eof():
        # The connection can be used again.
        response.release()
    else:
        response.close()
    return beginning


def _reason(error: BaseException) -> str:
    """Return why there was no answer, without the URL, which may be secret."""
    cause = error.__cause__ or error
    if isinstance(cause, AddressDenied):
        return str(cause)
    if isinstance(cause, OSError) and cause.strerror:
        return f"no connection: {cause.strerror}"
    return f"no answer: {type(error).__name__}"
