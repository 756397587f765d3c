"""Follows the files of the administration's tokens while the server runs."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from holdfast.bayeux.api import ServerApi
from holdfast.delivery.notices import LOGIN_ENDED
from holdfast.login.failures import Unusable
from holdfast.login.watched_file import WatchedFile
from holdfast.web.admin.tokens import FILES, Role, Tokens, TokensUnusable, read_former, token_in

log = logging.getLogger(__name__)

_LOOK_S = 0.5
# Sessions that are looked at before the event loop serves others.
_AT_ONCE = 200


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

    async def run(self) -> None:
        """Look at the files twice a second, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if self.look():
                await self._end_sessions()

    def look(self) -> bool:
        """Read changed files; return whether a token may have become invalid."""
        changed = [role for role, file in self._files.items() if file.refresh()]
        for role in changed:
            self._replace(role)
        now_s = self._tokens.wall_s()
        ended = [role for role, each in self._tokens.former.items() if each.until_s <= now_s]
        for role in ended:
            del self._tokens.former[role]
        if changed or ended:
            self._end_requests()
        return bool(changed or ended)

    def _replace(self, role: Role) -> None:
        try:
            token = self._files[role].value
            self._tokens.replace(role, token, read_former(self._directory, role))
        except TokensUnusable as error:
            log.error("%s: %s; the one before stays valid", FILES[role], error)

    async def _end_sessions(self) -> None:
        for place, session in enumerate(list(self._server.sessions)):
            identity = session.identity
            if identity.warrant and self._tokens.role_by_warrant(identity.warrant) is None:
                identity.role = identity.warrant = ""
                self._server.notice(LOGIN_ENDED, session.key, "its token was replaced")
                self._server.log_out(session)
                # If it has a name, it goes on without its client, and without the role.
                self._server.reauthorize(session)
            if place % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)


def _read(path: Path, text: bytes) -> str:
    try:
        return token_in(path, text)
    except TokensUnusable as error:
        raise Unusable(str(error)) from error
