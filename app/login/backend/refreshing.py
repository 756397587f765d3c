"""Asks the backend again about logins that it gave, before they end."""

from collections.abc import Callable
from functools import partial

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.backend_figures import Action
from holdfast.bayeux.state.server_state import RunLater
from holdfast.bayeux.wire.login import Login, LoginMethod
from holdfast.login.backend.logins import BackendLogins
from holdfast.login.failures import LoginFailed, NoAnswer, SaysNo

# The new login, or why there is none, or None without an answer.
Refreshed = Login | str | None


class LoginRefreshing:
    """Asks about one session after the other, as they become due."""

    def __init__(self, backend: BackendLogins, run_later: RunLater) -> None:
        self._backend, self._run_later = backend, run_later

    def lead_s(self, login: Login, warning_s: float) -> float:
        """Return how long before the end of a login to ask; 0.0 if it is not the backend's.

        A login that is short is asked about after half of its time.
        """
        if login.method is not LoginMethod.BACKEND:
            return 0.0
        return min(warning_s, (login.expires_s - login.issued_s) / 2)

    def begin(self, session: Session, done: Callable[[Refreshed], None]) -> None:
        """Ask. `done` gets the answer."""
        self._run_later(self._ask(session), partial(_tell, done))

    async def _ask(self, session: Session) -> Refreshed:
        subject = session.subject
        try:
            return await self._backend.login({}, session.caller, Action.REFRESH, subject)
        except SaysNo as no:
            return f"the backend refused it: {no}" if str(no) else "the backend refused it"
        except (NoAnswer, LoginFailed):
            return None


def _tell(done: Callable[[Refreshed], None], outcome: object, _: float) -> None:
    done(outcome if isinstance(outcome, Login | str) else None)
