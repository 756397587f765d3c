"""What most deliveries tell: rows of receivers to whom the same happened at the same time."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.delivery.messages import Message
    from app.delivery.receivers import Receiver
    from app.delivery.witness import Handout
    from app.journal.columns import Row


class CrowdNotes:
    """What was given out, or acknowledged, on its way into a frame."""

    __slots__ = ("_attempt", "_channels", "_crowds", "_kind", "_rows", "count")

    def __init__(self, kind: str, attempt: int | None, channels: dict[int, str]) -> None:
        self._kind = kind
        self._attempt = attempt
        # Of messages, by their ids; filled here.
        self._channels = channels
        # Events.
        self.count = 0
        self._rows: list[Row] = []
        # By the first of them: receivers, and their names.
        self._crowds: dict[str, tuple[list[Receiver], list[str]]] = {}

    @property
    def weight(self) -> int:
        """How much there is to be written, in rows."""
        return len(self._rows)

    def note(self, given: "Sequence[Handout]") -> None:
        """This was given out."""
        for messages, receivers, at in given:
            self.count += len(messages) * len(receivers)
            ids, names = _ids(messages, self._channels), self._names(receivers)
            self._rows.append((self._kind, ids, self._attempt, None, names, [at]))

    def _names(self, receivers: "list[Receiver]") -> list[str]:
        """Very often they are those of before, and then in the very same list."""
        first = receivers[0].key
        if len(receivers) == 1:
            return [first]
        crowd = self._crowds.get(first)
        if crowd is not None and crowd[0] == receivers:
            return crowd[1]
        names = [receiver.key for receiver in receivers]
        self._crowds[first] = receivers, names
        return names

    def take(self) -> "tuple[int, list[Row]]":
        """How many events there are, and their rows; others begin."""
        count, rows = self.count, self._rows
        self.count, self._rows = 0, []
        # Who has gone is not kept in memory for long.
        self._crowds.clear()
        return count, rows


def _ids(messages: "Sequence[Message]", channels: dict[int, str]) -> list[int]:
    """All that is remembered of messages; their channels by these."""
    if len(messages) == 1:
        message = messages[0]
        channels[message.id] = message.channel
        return [message.id]
    for message in messages:
        channels[message.id] = message.channel
    return [message.id for message in messages]
