"""Calls: what a part asks the owner of a name, which this shard may be, or another one.

An operation is written once, as a handler at its owner. If that is here, it is called as it is;
otherwise request and answer are JSON in a letter. A server alone owns everything.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from orjson import JSONDecodeError, loads

from holdfast.delivery.basics.json_text import to_json

if TYPE_CHECKING:
    from holdfast.delivery.messages.shard_letter import ShardLetter
    from holdfast.delivery.ports.homes import HomesPort

Asking = Mapping[str, Any]
Answer = dict[str, Any]
# Hears an answer, in this turn or a later one; None if there is none: it may be carried out, or be
# carried out later, or not.
Heard = Callable[[Answer | None], None]
# Carries an operation out at a time, and passes the answer on once. An empty one is none.
Handler = Callable[[Asking, Callable[[Answer], None], float], None]


class Calls:
    """Knows the owners of names, and the handlers of operations."""

    def __init__(self, homes: "HomesPort | None") -> None:
        self._homes = homes
        self._handlers: dict[str, Handler] = {}

    def handle(self, operation: str, handler: Handler) -> None:
        """Let the handler carry an operation out wherever this shard is the owner."""
        assert operation not in self._handlers
        self._handlers[operation] = handler

    # Owners

    @property
    def others(self) -> Sequence[int]:
        """The other shards."""
        return () if self._homes is None else self._homes.others

    def owner_of(self, channel: str) -> int | None:
        """Return the shard that orders the channel; None if it is this one, or if none does."""
        return None if self._homes is None else self._homes.home_of(channel)

    def owners_of(self, pattern: str) -> Sequence[int | None]:
        """Return the shards that may order channels of the pattern; None stands for this one."""
        return (None,) if self._homes is None else self._homes.homes_of(pattern)

    # Calling

    def call(
        self, owner: int | None, operation: str, asked: Asking, heard: Heard, *, now: float
    ) -> None:
        """Let the owner carry the operation out."""
        if owner is None or self._homes is None:
            self._handlers[operation](asked, heard, now)
        elif self._homes.may_send(owner):
            self._homes.send(owner, operation, to_json(asked), partial(_read, heard))
        else:
            heard(None)

    def gather(
        self,
        operation: str,
        asked: Mapping[int | None, Asking],
        heard_all: Callable[[Sequence[Answer] | None], None],
        *,
        now: float,
    ) -> None:
        """Let several owners carry the operation out. All of them answer, or there is none."""
        if not asked:
            heard_all(())
            return
        gathered = _Gathered(len(asked), heard_all)
        for owner, its in asked.items():
            self.call(owner, operation, its, gathered.take, now=now)

    def serve(self, letter: "ShardLetter", now: float) -> bool:
        """Carry out what another shard asks for. Returns whether there is such an operation."""
        handler, homes = self._handlers.get(letter.what), self._homes
        if handler is None or homes is None:
            return False
        handler(loads(letter.data), lambda answer: homes.answer(letter, to_json(answer)), now)
        return True


class _Gathered:
    """The answers to several calls."""

    def __init__(self, missing: int, heard_all: Callable[[Sequence[Answer] | None], None]) -> None:
        self._missing = missing
        self._heard_all = heard_all
        self._answers: list[Answer] = []
        self._are_all = True

    def take(self, answer: Answer | None) -> None:
        """Take one of them."""
        assert self._missing, "an owner has answered twice"
        self._missing -= 1
        if answer:
            self._answers.append(answer)
        else:
            self._are_all = False
        if not self._missing:
            self._heard_all(self._answers if self._are_all else None)


def _read(heard: Heard, answer: bytes | None) -> None:
    try:
        found = None if answer is None else loads(answer)
    except JSONDecodeError:
        found = None
    heard(found if isinstance(found, dict) and found else None)
