"""Asks the shards of subjects on behalf of extensions, and answers such questions."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from holdfast.bayeux.state.calls import Answer, Asker, Asking
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.ports.homes import HomesPort

SUBJECT: Final = "subject"


class FarSubjects:
    """Sends questions to the shards that have subjects."""

    def __init__(self, state: ServerState, homes: HomesPort) -> None:
        self._state = state
        self._homes = homes
        state.calls.handle(SUBJECT, self._answer)

    def ask(self, subject: str, what: str, data: object, done: Callable[[Any], None]) -> bool:
        """Ask the shard of a subject, if it is another one. Returns whether it is.

        `done` is called in a later turn.
        """
        home = self._homes.home_of_subject(subject)
        if home is None:
            return False
        asked, heard = {"what": what, "data": data}, partial(_heard, done)

        def begin(now: float) -> None:
            self._state.calls.call(home, SUBJECT, asked, heard, now=now)

        self._state.backlog.at_turn_end(begin)
        return True

    def _answer(self, asked: Asking, asker: Asker, _: float) -> None:
        """Answer a question. Without an extension that answers it, there is no answer."""
        serve = self._state.services.of_subjects.get(asked["what"])
        asker.answer({} if serve is None else {"answer": serve(asked["data"])})


def _heard(done: Callable[[Any], None], answer: Answer | None) -> None:
    done(None if answer is None else answer.get("answer"))
