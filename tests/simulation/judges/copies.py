"""What receivers say of one copy of a message, and what must come of it, for all who judge that."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from tests.simulation.judges.excuses import HARMLESS, Excuses
from tests.simulation.judges.facts import Facts
from tests.simulation.oracle import Publish
from tests.simulation.workers import LATER


@dataclass(slots=True)
class Copy:
    """What one receiver knows of one copy of a message."""

    taken: list[float] = field(default_factory=list)
    # What it has said of it, and what a server knows for sure: since when, and what.
    said: set[str | None] = field(default_factory=set)
    sure: dict[str | None, float] = field(default_factory=dict)

    @property
    def refusals(self) -> list[float]:
        """Since when a server has known for sure each time that it was refused for good."""
        return [at for verdict, at in self.sure.items() if verdict is not None]

    def may_have_lost_letter(self, facts: Facts) -> bool:
        """Return whether it was refused for good, and a failover may have lost its letter.

        A server that tells the store again what that has lost knows the letters of the last ten
        seconds alone, and that nobody waits for the message.
        """
        is_refused = bool(self.said - {None, LATER})
        return is_refused and facts.may_have_lost(min(self.taken), facts.now())

    def comes_after(self, at: float) -> list[float]:
        """Return when it came later than this: a killed server may not know what it handed out."""
        return [each for each in self.taken if each > at]

    def may_leave_nothing(self, at: float, publish: Publish, excuses: Excuses) -> bool:
        """Return whether its refusal, known since then, may have left no letter, and that counts.

        The next server may find it over before it hears of the refusal, and does not have what is
        not durable.
        """
        is_gone = publish.lifetime_s < inf or not publish.is_durable
        return is_gone and excuses.excuse(
            "refusal of what is gone", min(self.taken), at, harmless=HARMLESS
        )

    def returns(self, excuses: Excuses, what: str) -> Iterator[float]:
        """Yield when it came again although its receiver had done with it."""
        at = min(self.sure.values(), default=inf)
        # Those that do not come again are looked at, too: all others need an excuse.
        excuses.judges(what, int(at < inf))
        for again in self.comes_after(at):
            if not excuses.excuse(what, at, again, harmless=HARMLESS):
                yield again
