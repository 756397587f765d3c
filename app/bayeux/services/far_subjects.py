"""Asks the shards of subjects on behalf of extensions, and answers such questions."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from orjson import JSONDecodeError, loads

from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.shard_letter import ShardLetter
from holdfast.delivery.ports.homes import NO_ANSWER, HomesPort

# What the letter is called in the log.
SUBJECT: Final = "subject"


class FarSubjects:
    """Sends questions to the shards that have subjects."""

    def __init__(self, state: ServerState, homes: HomesPort) -> None:
        self._state = state
        self._homes = homes

    def ask(self, subject: str, what: str, data: object, done: Callable[[Any], None]) -> bool:
        """Ask the shard of a subject, if it is another one. Returns whether it is."""
        home = self._homes.home_of_subject(subject)
        if home is None:
            return False
        answered = partial(_answered, done)
        if self._homes.may_send(home):
            letter = to_json({"what": what, "data": data})
            self._homes.send(home, SUBJECT, letter, answered)
        else:
            self._state.backlog.at_turn_end(lambda _: answered(None))
        return True

    def carry_out(self, letter: ShardLetter, _: float) -> None:
        """Answer a question. Without an extension that answers it, there is no answer."""
        asked = loads(letter.data)
        serve = self._state.services.of_subjects.get(asked["what"])
        if serve is None:
            self._homes.answer(letter, NO_ANSWER)
        else:
            self._homes.answer(letter, to_json({"answer": serve(asked["data"])}))


def _answered(done: Callable[[Any], None], answer: bytes | None) -> None:
    try:
        found = None if answer is None else loads(answer).get("answer")
    except (JSONDecodeError, AttributeError):
        found = None
    done(found)
