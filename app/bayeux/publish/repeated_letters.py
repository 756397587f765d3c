"""Letters that are sent again until they are answered, or until no one needs the answer."""

from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.requests.request import Request


class _Letter(NamedTuple):
    request: Request[Any]
    shard: int
    what: str
    data: bytes
    answered: Callable[[bytes], None]


class RepeatedLetters:
    """Such letters, each about a request: it is over when that has ended.

    A letter may be done more than once.
    """

    def __init__(self, homes: HomesPort) -> None:
        self._homes = homes
        self._again: list[_Letter] = []

    def __len__(self) -> int:
        return len(self._again)

    def send(
        self,
        request: Request[Any],
        shard: int,
        what: str,
        data: bytes,
        *,
        answered: Callable[[bytes], None],
    ) -> None:
        """Send a letter, now or soon. `answered` hears the answer."""
        self._send(_Letter(request, shard, what, data, answered))

    def _send(self, letter: _Letter) -> None:
        if not self._homes.may_send(letter.shard):
            self._again.append(letter)
            return

        def heard(answer: bytes | None) -> None:
            if letter.request.end is not None:
                return
            if answer is None:
                self._again.append(letter)
            else:
                letter.answered(answer)

        self._homes.send(letter.shard, letter.what, letter.data, heard)

    def tick(self) -> None:
        """Send letters again that had no answer."""
        again, self._again = self._again, []
        for each in again:
            if each.request.end is None:
                self._send(each)
