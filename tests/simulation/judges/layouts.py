"""Judges in which layout stores are, and whether an earlier release finds everything in it.

A store stays in the layout in which an earlier release has left it, until an operator finishes the
upgrade. Until then servers write what that release reads, too.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf

from holdfast.store.format.layouts import LAYOUT, written_form
from tests.simulation.books import Written
from tests.simulation.judges.excuses import GOING_BACK, HARMLESS, Excuses
from tests.simulation.judges.facts import Facts
from tests.simulation.talker import Message

# For so long before the end of a server the store may have one of two changes that belong together.
_STORED_S = 1.0
_MOST_TOLD = 5


class Layouts:
    """Collects what operators ask for, what they are told, and in which layout stores are.

    Args:
        former: The layout in which an earlier release has left the stores.
        written: Returns what there is in the store of each shard.
        unrecorded: Returns the outstanding requests of each that no record of a session contains.
    """

    def __init__(
        self,
        facts: Facts,
        former: int,
        written: Callable[[], Sequence[Written]],
        unrecorded: Callable[[], Sequence[Sequence[str]]],
    ) -> None:
        self._facts = facts
        self._former = former
        self._written = written
        self._unrecorded = unrecorded
        # Whether an operator wants to finish the upgrade; since when it may be finished, and since
        # when it is.
        self.is_wanted = False
        self._asked_at = self._finished_at = inf
        self._looks = 0
        self._wrong: list[tuple[float, str]] = []
        # What an earlier release would not find: when, and what.
        self._unfound: list[tuple[float, str]] = []

    # What happens

    @property
    def is_finished(self) -> bool:
        """Whether a server has said that all stores are in the newest layout."""
        return self._finished_at < inf

    def asks(self) -> None:
        """Note that an operator is about to finish the upgrade."""
        self._asked_at = min(self._asked_at, self._facts.now())

    def told(self, answer: Message, *, is_whole: bool) -> None:
        """Note what an operator was told of the upgrade, perhaps without the answer of all."""
        number, is_finished = int(answer["layout"]), bool(answer["finished"])
        if is_finished is not (number == LAYOUT) or number not in (self._former, LAYOUT):
            self._note(f"an operator was told of layout {number}: {answer}")
        elif is_finished and self._asked_at == inf:
            self._note("an operator was told that the upgrade is finished, and nobody has asked")
        elif not is_finished and self.is_finished and not self._may_be_lost:
            self._note("an operator was told that the upgrade is not finished any more")
        if is_finished and is_whole and not self.is_finished:
            self._finished_at = self._facts.now()
            self._facts.mark("an upgrade was finished")

    @property
    def _may_be_lost(self) -> bool:
        return self._facts.may_have_lost(self._asked_at, self._facts.now())

    def look(self) -> None:
        """Look at the stores, whatever happens just then."""
        self._looks += 1
        for shard, its in enumerate(self._written()):
            if self._asked_at == inf and its.version != self._former:
                self._note(f"shard {shard} is in layout {its.version}, and nobody has asked")
            elif self.is_finished and its.version != LAYOUT and not self._may_be_lost:
                self._note(f"shard {shard} is in layout {its.version}, and was finished")
            if not written_form(its.version).has_key_times:
                for key in [*its.merged, *its.timeless]:
                    self._note(f"an earlier release cannot read when {key} was published")

    def former_looks(self) -> None:
        """Look at the stores at rest, with the eyes of an earlier release."""
        self.look()
        for its, unrecorded in zip(self._written(), self._unrecorded(), strict=True):
            if written_form(its.version).has_requests_in_sessions:
                for address in unrecorded:
                    what = f"an earlier release does not find the request {address}"
                    self._unfound.append((self._facts.now(), what))

    def former_opened(self, version: int, newest: int, refusal: str) -> None:
        """Note how an earlier release opened a store in this layout, which reads up to another."""
        self._facts.mark("an earlier release came back")
        if version > newest:
            self._facts.mark("an earlier release was refused")
        if (refusal != "") is not (version > newest):
            how = f"was refused: {refusal}" if refusal else "was not refused"
            self._note(f"an earlier release for layout {newest} {how} by one in layout {version}")

    def _note(self, what: str) -> None:
        if len(self._wrong) < _MOST_TOLD:
            self._wrong.append((self._facts.now(), what))

    # What it means

    @property
    def is_under_way(self) -> bool:
        """Whether an operator goes on to finish the upgrade."""
        return self.is_wanted and not self.is_finished

    def violations(self, excuses: Excuses) -> Iterator[str]:
        """Yield all broken promises."""
        self.look()
        excuses.judges("layout of a store", self._looks)
        if self.is_under_way:
            yield "liveness: the upgrade is not finished"
        for at, what in self._wrong:
            yield f"layouts: {what} at {at:.3f}"
        for at, what in self._unfound:
            excuses.judges("request that an earlier release must find")
            if not excuses.excuse(
                *("request that an earlier release must find", at - _STORED_S, at),
                harmless=HARMLESS | {GOING_BACK},
            ):
                yield f"layouts: {what} at {at:.3f}"
