"""What one message of a receiver says of very many others, on its way to be done."""

from collections.abc import Sequence

from app.delivery.verdicts import Verdict


class Trial:
    """The refusals of one message, the gravest last; some of them may have to wait for a turn."""

    __slots__ = ("_place", "_refusals", "refused_any")

    def __init__(self, refusals: Sequence[Verdict]) -> None:
        self._refusals = refusals
        self._place = 0
        # Whether anything was refused. Then the receiver must not be answered before the store
        # knows: it never repeats a refusal that was answered, so after a restart its next
        # acknowledgement would settle the message.
        self.refused_any = False

    @property
    def is_over(self) -> bool:
        return self._place == len(self._refusals)

    def next(self) -> Verdict:
        """The next refusal, which is carried out now."""
        verdict = self._refusals[self._place]
        self._place += 1
        return verdict
