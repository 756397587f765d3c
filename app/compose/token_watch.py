"""Follows the files of the administration's tokens while the server runs."""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from holdfast.bayeux.api import ServerApi
from holdfast.compose.cannot_start import CannotStart
from holdfast.delivery.basics.notices import LOGIN_ENDED
from holdfast.login.failures import Unusable
from holdfast.login.watched_file import WatchedFile
from holdfast.web.admin.tokens import (
    FILES,
    Tokens,
    TokensUnusable,
    open_tokens,
    read_former,
    token_in,
)
from holdfast.web.tasks import run_until_closed

log = logging.getLogger(__name__)

_LOOK_S = 0.5
# Sessions that are looked at before the event loop serves others.
_AT_ONCE = 200


def opened_tokens(data: Path) -> Tokens:
    """Return the operators' tokens. Raises `CannotStart`."""
    try:
        return open_tokens(data)
    except TokensUnusable as error:
        raise CannotStart(str(error)) from error


def role_of(tokens: Tokens, warrant: str) -> str:
    """Return the role that a token grants, by its warrant; empty if there is none."""
    role = tokens.role_by_warrant(warrant)
    return "" if role is None else role.title


def begin_token_watch(
    directory: Path,
    tokens: Tokens,
    server: ServerApi,
    end_requests: Callable[[], None],
    stack: AsyncExitStack,
) -> Collection[WatchedFile[str]]:
    """Follow the tokens' files until the stack ends that; returns the files."""
    watch = TokenWatch(directory, tokens, server, end_requests)
    run_until_closed(stack, watch.run())
    return watch.files


class TokenWatch:
    """Puts replaced tokens in force, and ends whatever used a token that is no longer valid.

    Args:
        end_requests: Ends the requests that show a token that is no longer valid.
    """

    def __init__(
        self,
        directory: Path,
        tokens: Tokens,
        server: ServerApi,
        end_requests: Callable[[], None],
    ) -> None:
        self._directory = directory
        self._tokens = tokens
        self._server = server
        self._end_requests = end_requests
        self._files = {
            role: WatchedFile(directory / name, partial(_read, directory / name))
            for role, name in FILES.items()
        }
        # They were read before: another host's may have replaced them while this server started.
        self._is_behind = any(
            file.value != tokens.present(role) for role, file in self._files.items()
        )
        tokens.look = self._look_early

    @property
    def files(self) -> Collection[WatchedFile[str]]:
        return self._files.values()

    async def run(self) -> None:
        """Look at the files twice a second, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if self.look():
                await self._end_sessions()

    def look(self) -> bool:
        """Read changed files; return whether a token may have become invalid."""
        found = [file.refresh() for file in self._files.values()]
        has_changed, self._is_behind = any(found) or self._is_behind, False
        if has_changed:
            self._replace()
        ended = self._end_overlaps()
        if has_changed or ended:
            self._end_requests()
        return has_changed or ended

    def _look_early(self) -> None:
        """Look now, and let the next look end sessions if this one finds something."""
        if self.look():
            self._is_behind = True

    def _replace(self) -> None:
        """Let both roles have what is in the files, which may have changed places."""
        tokens, directory = self._tokens, self._directory
        new = {
            role: (file.value, read_former(directory, role))
            for role, file in self._files.items()
            if file.value != tokens.present(role)
        }
        try:
            tokens.replace(new)
        except TokensUnusable as error:
            log.error("%s: %s; those before stay valid", " and ".join(FILES.values()), error)

    def _end_overlaps(self) -> bool:
        """End those whose time is over or whose file is gone; return whether there were any."""
        former, now_s = self._tokens.former, self._tokens.wall_s()
        ended = [
            role
            for role, each in former.items()
            if each.until_s <= now_s or read_former(self._directory, role) != each
        ]
        for role in ended:
            del former[role]
        return bool(ended)

    async def _end_sessions(self) -> None:
        for place, session in enumerate(list(self._server.sessions)):
            identity = session.identity
            if identity.warrant and self._role_of(identity.warrant) != identity.role:
                identity.role = identity.warrant = ""
                self._server.notice(LOGIN_ENDED, session.key, "its token was replaced")
                self._server.log_out(session)
                # If it has a name, it goes on without its client, and without the role.
                self._server.reauthorize(session)
            if place % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)

    def _role_of(self, warrant: str) -> str:
        role = self._tokens.role_by_warrant(warrant)
        return "" if role is None else role.title


def _read(path: Path, text: bytes) -> str:
    try:
        return token_in(path, text)
    except TokensUnusable as error:
        raise Unusable(str(error)) from error
