"""The sources of keys: a file, or an identity provider's URL."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import orjson

from holdfast.bayeux.limits.buckets import Buckets, Rate
from holdfast.login.failures import Unusable
from holdfast.login.verification_keys import VerificationKeys, read_key_set, read_keys
from holdfast.login.watched_file import WatchedFile

log = logging.getLogger(__name__)

# Providers announce new keys long before they sign with them.
_RENEW_AFTER_S = 300.0
# The pause before it tries again, if the provider does not answer.
_RETRY_S = 10.0
# At most one fetch in this time, and in the long run fewer, if tokens name unknown keys.
_PAUSE_S = 1.0
_FETCHES = Rate(burst=10, per_s=0.1)
# Without an answer of the provider for this long, its keys are no longer trusted.
_KEPT_S = 24 * 3600.0
_DISCOVERY = "/.well-known/openid-configuration"

Fetch = Callable[[str], Awaitable[bytes]]
Clock = Callable[[], float]


class KeySource(Protocol):
    """Keys that may change while the server runs."""

    def keys(self) -> VerificationKeys:
        """Return the current keys; none if they can no longer be trusted."""
        ...

    async def renew(self, key_id: object) -> None:
        """Get newer keys if there may be any, but not too often."""
        ...


class KeyFile:
    """Keys from a file, which is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        """Raises `Unusable`."""
        self.file = WatchedFile(path, partial(_read_file, path))

    def keys(self) -> VerificationKeys:
        return self.file.value

    async def renew(self, key_id: object) -> None:
        self.file.refresh()


def _read_file(path: Path, text: bytes) -> VerificationKeys:
    keys = read_keys(text)
    _log_skipped(str(path), keys.skipped)
    return keys


def _log_skipped(source: str, skipped: Sequence[str]) -> None:
    for each in skipped:
        log.warning("%s: %s; it is skipped", source, each)


class KeyUrl:
    """Keys from a provider: cached, and fetched again when a token names an unknown one."""

    def __init__(
        self,
        find: Callable[[], Awaitable[str]],
        fetch: Fetch,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`find` returns the URL of the JWK Set."""
        self._find = find
        self._fetch = fetch
        self._clock = clock
        self._sleep = sleep
        self._fetches = Buckets(_FETCHES)
        self._keys = VerificationKeys()
        self._fetched_at = self._tried_at = float("-inf")
        self._tries = 0
        self._is_failing = False
        self._one_at_a_time = asyncio.Lock()
        # The loop itself keeps no task.
        self._renewing: asyncio.Task[None] | None = None

    def keys(self) -> VerificationKeys:
        is_kept = self._clock() < self._fetched_at + _KEPT_S
        return self._keys if is_kept else VerificationKeys()

    async def renew(self, key_id: object) -> None:
        """Fetch the keys if they are old; only a token with an unknown key waits for that."""
        if not self.keys().knows(key_id):
            await self._look_for(key_id, self._tries)
        elif self._is_old() and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.get_running_loop().create_task(self._renew_old())

    def _is_old(self) -> bool:
        now = self._clock()
        return now > self._fetched_at + _RENEW_AFTER_S and now > self._tried_at + _RETRY_S

    async def _renew_old(self) -> None:
        async with self._one_at_a_time:
            if self._is_old():
                await self._renew()

    async def _look_for(self, key_id: object, tries: int) -> None:
        """Fetch the keys, unless that was tried again since the token came."""
        async with self._one_at_a_time:
            if self._tries > tries or self.keys().knows(key_id):
                return
            if self._fetches.take("", self._clock()):
                return
            # The key may have been published since the last fetch.
            pause_s = self._tried_at + _PAUSE_S - self._clock()
            if pause_s > 0:
                await self._sleep(pause_s)
            await self._renew()

    async def _renew(self) -> None:
        self._tried_at = self._clock()
        self._tries += 1
        try:
            url = await self._find()
            found = read_key_set(await self._fetch(url))
        except (Unusable, OSError, ValueError) as error:
            if not self._is_failing:
                log.error("keys: %s; tokens are verified with the keys known so far", error)
            self._is_failing = True
            return
        if self._is_failing:
            log.info("keys: the provider answers again")
        if found.skipped != self._keys.skipped:
            _log_skipped(url, found.skipped)
        self._keys = found
        self._is_failing = False
        self._fetched_at = self._clock()


def at(url: str) -> Callable[[], Awaitable[str]]:
    """Return a finder for a URL from the settings."""

    async def find() -> str:
        return url

    return find


def discovered(issuer: str, hosts: tuple[str, ...], fetch: Fetch) -> Callable[[], Awaitable[str]]:
    """Return a finder that asks an OpenID provider where its keys are.

    The answer must name the same issuer, and a host that is the issuer's or one of `hosts`.
    """

    async def find() -> str:
        url = issuer.rstrip("/") + _DISCOVERY
        try:
            found = orjson.loads(await fetch(url))
        except orjson.JSONDecodeError:
            raise Unusable(f"{url}: not JSON") from None
        if not isinstance(found, dict) or found.get("issuer") != issuer:
            raise Unusable(f"{url}: the document names another issuer")
        keys = found.get("jwks_uri")
        if not isinstance(keys, str):
            raise Unusable(f"{url}: the document names no jwks_uri")
        _check_host(issuer, keys, hosts)
        return keys

    return find


def _check_host(issuer: str, url: str, hosts: tuple[str, ...]) -> None:
    own, other = urlsplit(issuer), urlsplit(url)
    if other.scheme != "https" and (other.scheme, other.netloc) != (own.scheme, own.netloc):
        raise Unusable(f"{issuer}: its keys are not at an https URL")
    if other.netloc != own.netloc and other.hostname not in hosts:
        raise Unusable(
            f"{issuer}: its keys are at {other.hostname}, another host: name it in login_key_host "
            "if you trust it"
        )
