"""Asks the administration of a simulated deployment, as operators and their commands do."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from tests.simulation.actors import Plan
from tests.simulation.judges.operations import Operations
from tests.simulation.server import ADMIN_PORT
from tests.simulation.talker import Lost, Message, Talker

_API = "/admin/api/v1"
_PATIENCE_S = 12.0
_GOOD, _NOT_FOUND = 300, 404


class Refused(Exception):
    """The server has not done what the operator wants."""


class Unknown(Refused):
    """The server does not know what the operator asks about."""


class Console:
    """Asks one server after the other, as one of them answers.

    Args:
        token_at: Returns the token of operators at an address; the empty text without one.
    """

    def __init__(self, plan: Plan, truth: Operations, token_at: Callable[[str], str]) -> None:
        self._plan = plan
        self._truth = truth
        self._token_at = token_at
        self._doors: list[tuple[str, int]] = []
        self._talker = Talker(self._doors)

    def hang_up(self) -> None:
        """Ask at the next door."""
        self._talker.hang_up()

    async def ask(
        self,
        method: str,
        path: str,
        body: Message | None = None,
        *,
        due: Collection[int] = (),
    ) -> Message:
        """Ask for something; returns the answer. Raises `Lost` or `Refused`.

        Args:
            due: Statuses that are an answer, too: it has an `error` then.
        """
        if not (token := self._token_at(self._next_host())):
            raise Refused("nobody has ever been there")
        return await self.ask_with(token, method, path, body, due=due)

    def _next_host(self) -> str:
        # Clients may have come elsewhere.
        self._doors[:] = [(host, ADMIN_PORT) for host, _ in self._plan.manners.doors]
        return self._talker.door[0]

    async def ask_with(
        self,
        token: str,
        method: str,
        path: str,
        body: Message | None = None,
        *,
        due: Collection[int] = (),
        is_refused: bool = False,
    ) -> Message:
        """Ask with a token, to which these statuses may be due, or must be."""
        about = (body or {}).get("command", "")
        what = f"{method} {path.partition('?')[0]} {about}".rstrip()
        asked = self._truth.asks(self._next_host(), what)
        try:
            status, answer = await self._talker.request(
                *(method, _API + path, token, body), limit_s=_PATIENCE_S
            )
        except Lost as lost:
            self._truth.failed(asked, f"lost: {lost}")
            raise
        if status in due and answer.keys() == {"error"}:
            return answer
        if status >= _GOOD or is_refused:
            code = (answer.get("error") or {}).get("code", "")
            self._truth.failed(asked, f"{status}:{code}")
            raise (Unknown if status == _NOT_FOUND else Refused)(code)
        return answer


def is_whole(answer: Mapping[str, Any]) -> bool:
    """Return whether all shards have answered."""
    return not answer.get("unanswered")
