"""Numbers calls of scripts as a server does, for tests that call them without one."""

from typing import Any, cast

from holdfast.store.format import scripts
from holdfast.store.format.scripts import ScriptCall


class Numbering:
    """The numbers of the calls in an epoch. The same call again is a repeat, under its number."""

    def __init__(self, nonce: str) -> None:
        self.nonce = nonce
        self._made: list[ScriptCall] = []

    def words(self, call: ScriptCall) -> list[Any]:
        """The arguments of the call, with its number."""
        if call.script is scripts.OPEN:
            return [*call.args]
        places = [at for at, made in enumerate(self._made) if made is call]
        if not places:
            places = [len(self._made)]
            self._made.append(call)
        before = places[0]
        names = [f"{self.nonce}-{number:012d}" for number in (before, before + 1)]
        return [f"{names[0]} {names[1]} {before} 1", *call.args]


def meaning(call: ScriptCall, reply: object) -> Any:
    """What the reply says besides the number of the call before."""
    if call.script is scripts.OPEN or not isinstance(reply, list):
        return reply
    return cast("list[object]", reply)[1:]
