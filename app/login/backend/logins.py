"""Logins that the application gives, for what a client's request shows it."""

import time
from collections.abc import Mapping
from typing import Final

import orjson

from holdfast.bayeux.state.backend_figures import Action, BackendFigures
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.codec import Json, ext_of
from holdfast.bayeux.wire.login import Login
from holdfast.login.backend.asking import Asking
from holdfast.login.backend.questions import login_in, question, shown_by
from holdfast.login.failures import Cause, LoginFailed
from holdfast.settings.login import BackendSettings

# Of what a client may give to the application in its handshake, as JSON.
_LONGEST: Final = 4096


class BackendLogins:
    """Asks the application who a client is."""

    def __init__(self, settings: BackendSettings, asking: Asking) -> None:
        self._settings = settings
        self._asking = asking

    @classmethod
    def of(cls, settings: BackendSettings) -> "BackendLogins":
        return cls(settings, Asking(BackendFigures(settings.origin)))

    @property
    def asking(self) -> Asking:
        """What asks all questions of this process."""
        return self._asking

    def shown_by(self, caller: Caller) -> dict[str, str]:
        """Return what the application gets to see of a request's headers."""
        return shown_by(caller, self._settings)

    def can_ask(self, message: Json, caller: Caller) -> bool:
        """Return whether a client shows anything by which the application could know it."""
        return _given_in(message) is not None or bool(self.shown_by(caller))

    async def login(
        self,
        message: Json,
        caller: Caller,
        action: Action = Action.HANDSHAKE,
        subject: str | None = None,
    ) -> Login:
        """Return the login of the client. Raises `LoginFailed`, `NoAnswer` or `SaysNo`.

        Args:
            subject: Who the client is, if it has logged in already.
        """
        given, shown = _given_in(message), self.shown_by(caller)
        asked = question(action, caller, shown, subject=subject, authentication=given)
        return await self._asking.ask(asked, lambda reply: login_in(reply, time.time()))


def _is_sendable(given: Mapping[str, object]) -> bool:
    try:
        # As deep in something else as in a question.
        return len(orjson.dumps({"data": {"authentication": given}})) <= _LONGEST
    except (TypeError, ValueError):
        # Some texts and numbers of JSON cannot be written again.
        return False


def _given_in(message: Json) -> Mapping[str, object] | None:
    """Return what a client gives to the application. Raises `LoginFailed`."""
    given = ext_of(message).get("authentication")
    if given is None:
        return None
    if not isinstance(given, Mapping) or not _is_sendable(given):
        raise LoginFailed(Cause.MALFORMED)
    return given
