"""Messages with keys: which of them came before, and which keys must be given up."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

from app.delivery.keeper import Kept
from app.delivery.messages import Message

if TYPE_CHECKING:
    from app.delivery.publish_keys import Key

# A key, and the message that has it.
Claim = tuple[str, int]


class Keyed:
    """What is known of keys outside the store.

    Args:
        disown: Have the store forget these keys, and call when everything before is answered.
    """

    def __init__(self, disown: Callable[[Sequence[Claim], Callable[[], None]], None]) -> None:
        self._disown = disown
        # Messages that are refused though the store may have them, until it has forgotten them.
        self._refused: set[int] = set()
        self.dropped = 0

    def hear(self, messages: Iterable[Message], reply: Sequence[object]) -> None:
        """What the store says of them, which then stands in their keys."""
        dropped, *firsts = reply
        self.dropped += cast("int", dropped)
        for message, first in zip(messages, firsts, strict=True):
            key = cast("Key", message.key)
            key.first = int(cast("bytes", first) or 0)
            if key.first:
                # What repeats a message that is not kept after all is not kept either.
                was_refused = key.first in self._refused
                key.meaning = Kept.REFUSED if was_refused else Kept.REPEATED

    def refuse(self, messages: Iterable[Message]) -> None:
        """They may have been kept before their answer was lost: the next attempt is the first."""
        claims = [(each.key.digest, each.id) for each in messages if each.key is not None]
        if claims:
            ids = {id for _, id in claims}
            self._refused |= ids
            self._disown(claims, lambda: self._refused.difference_update(ids))


def meaning(message: Message, kept: Kept) -> Kept:
    """What it means for a message that its call was answered so."""
    if kept is Kept.KEPT and message.key is not None:
        return message.key.meaning
    return kept


def witness(message: Message) -> int | str:
    """What is in the store if the message, or the one that it repeats, is kept."""
    key = message.key
    return message.id if key is None else f"{key.digest}:{key.first or message.id}"
