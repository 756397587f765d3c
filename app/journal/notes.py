"""What happens most: publishes, and that the same happened to many receivers at a time."""

from typing import TYPE_CHECKING

from app.delivery.witness import Handouts, Intake, Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.delivery.messages import Message
    from app.delivery.receivers import Receiver
    from app.journal.builder import FrameBuilder
    from app.journal.columns import Columns
    from app.journal.places import Place


class PublishNotes(Intake):
    """What was published is told by the next frame."""

    __slots__ = ("_builder",)

    def __init__(self, builder: "FrameBuilder") -> None:
        self._builder = builder

    def add(self, message: "Message", copies: int) -> None:
        if copies or not message.is_durable:
            self._builder.published(message, copies)


class CrowdNotes(Handouts):
    """What is given out, or acknowledged, is told by the next frame."""

    __slots__ = ("_attempt", "_builder", "_columns", "_crowds", "_kind")

    def __init__(
        self, builder: "FrameBuilder", watch: Watch, kind: str, attempt: int | None = None
    ) -> None:
        super().__init__(watch, are_acks=attempt is None)
        self._builder = builder
        self._kind = kind
        self._attempt = attempt
        # Of this frame: receivers and their group, by the first of them.
        self._columns: Columns | None = None
        self._crowds: dict[str, tuple[list[Receiver], Place]] = {}

    def tell(self, messages: "Sequence[Message]", receivers: "list[Receiver]", at: int) -> None:
        columns = self._builder.columns
        if columns is not self._columns:
            # Nobody who has gone is kept in memory for long.
            self._columns = columns
            self._crowds.clear()
        places, count = columns.places, len(messages)
        told = places.message(messages[0])
        if count > 1:
            told = [places.message(each) for each in messages]
        group = self._group(receivers, columns)
        columns.deliver(self._kind, told, group, at, self._attempt, count * len(receivers))

    def _group(self, receivers: "list[Receiver]", columns: "Columns") -> "Place":
        """Very often they are those of before."""
        first = receivers[0].key
        if len(receivers) == 1:
            return columns.places.single(first)
        crowd = self._crowds.get(first)
        if crowd is not None and crowd[0] == receivers:
            return crowd[1]
        group = columns.places.new_group([receiver.key for receiver in receivers])
        self._crowds[first] = receivers, group
        return group
