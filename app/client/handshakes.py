"""What the handshakes of a client say of it: its session, its terms and its login."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any

from holdfast.client.errors import ReplyError, TokenFailed
from holdfast.client.requests import Requests
from holdfast.client.wire import Json

Token = str | Callable[[], str | Awaitable[str]]

# The key that a server without requests refuses in a handshake.
_REQUEST = "ext.request"
_log = logging.getLogger(__name__)


class Handshakes:
    """Creates the `ext` of each handshake and of each new login."""

    def __init__(
        self,
        *,
        session: str | Mapping[str, Any] | None,
        terms: Mapping[str, Any] | None,
        credentials: Mapping[str, str] | None,
        token: Token | None,
        max_queue: int,
        requests: Requests,
    ) -> None:
        self._session = session
        self._terms = dict(terms or {})
        self._credentials = credentials
        self._token = _alone(token) if isinstance(token, str) else token
        self._max_queue = max_queue
        self._requests = requests
        # Whether handshakes ask for a channel for replies.
        self._asks = True

    async def ext(self) -> Json:
        """Return the `ext` of the next handshake. Raises `TokenFailed`."""
        delivery: Json = {
            # The client reports pending messages, so verdicts need no time limit.
            "responseTimeout": 0,
            "maxEntries": max(self._max_queue // 2, 1),
            **self._terms,
        }
        if self._session is not None:
            delivery["session"] = self._session
        ext: Json = {"ack": True, "delivery": delivery}
        if self._asks:
            ext["request"] = self._requests.channel or True
        if self._credentials is not None:
            ext["authentication"] = dict(self._credentials)
        return {**ext, **await self.login()}

    async def login(self) -> Json:
        """Return the `ext` that logs in with a token, if there is one. Raises `TokenFailed`."""
        if self._token is None:
            return {}
        try:
            token = self._token() if callable(self._token) else self._token
            text = _alone(await token if isawaitable(token) else str(token))
        except Exception as error:
            _log.warning("there is no token: %r", error)
            raise TokenFailed(f"there is no token: {error!r}") from error
        return {"authentication": {"token": text}}

    def asks_for_less(self, refusal: ReplyError) -> bool:
        """Return whether the next handshake leaves out what this one was refused for.

        A server without requests refuses handshakes that ask for them.
        """
        is_less = self._asks and _REQUEST in refusal.arguments
        self._asks = self._asks and not is_less
        return is_less


def _alone(token: str) -> str:
    """Return the token. Raises `ValueError` if it is a whole header."""
    if token.lower().startswith("bearer "):
        raise ValueError("give the token alone, without Bearer before it")
    return token
