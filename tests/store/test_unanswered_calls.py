"""What becomes of calls whose answers say that they were not carried out."""

from typing import TYPE_CHECKING, Any

from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.store.format.scripts import SAVE, ScriptCall
from holdfast.store.links.reply_errors import ScriptFailed, StoreRefused
from holdfast.store.writing.unanswered_calls import UnansweredCalls

if TYPE_CHECKING:
    from collections.abc import Callable


NONCE = "nonce000"


class FakeLink:
    """Has the calls, which the test answers."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._answers: list[Callable[[object], None]] = []
        self.flushed = 0

    def script(
        self, script: Any, keys: Any, args: Any, done: Any, *, may_be_refused: bool = False
    ) -> None:
        self.calls.append(args[0].split()[1])
        self._answers.append(done)

    def flush(self) -> None:
        self.flushed = len(self.calls)

    def answer(self, reply: object) -> None:
        self._answers.pop(0)(reply)


class Notes(DeliveryJournal):
    """Remembers which notes were answered."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def postpone(self) -> object:
        self.events.append("postponed")
        return "the note"

    def answered(self, number: int, *, is_there: bool, postponed: object = None) -> None:
        self.events.append((number, is_there, postponed))


class Calls:
    """Calls over a fake link."""

    def __init__(self) -> None:
        self.link = FakeLink()
        self.refusals: list[object] = []
        self.answers: list[tuple[str, object]] = []
        self.calls = UnansweredCalls(self.link, on_refused=self.refuse, on_answered=lambda: None)
        self.calls.begin(f"seed-1.{NONCE}")

    def refuse(self, why: object) -> bool:
        self.refusals.append(why)
        return True

    def make(self, name: str, **how: Any) -> None:
        call = ScriptCall(SAVE, [], [])
        self.calls.make(call, lambda reply: self.answers.append((name, reply)), **how)

    def carry_out(self, number: int, after: int) -> None:
        """Answer as a store does that had carried out this call before."""
        assert self.link.calls[number - 1] == f"{NONCE}-{number:012d}"
        self.link.answer(f"{NONCE}-{after:012d}".encode())

    def skip(self) -> None:
        """Answer as a store does that has carried out later calls instead."""
        self.link.answer(ScriptFailed("REFUSED", "REFUSED before"))


async def test_a_call_that_the_store_skipped_is_made_again_before_its_caller_hears_anything() -> (
    None
):
    at = Calls()
    at.make("publish", may_be_refused=True, is_publish=True)
    at.make("save")
    at.skip()
    assert (at.answers, at.link.flushed) == ([], 3)
    at.carry_out(2, after=0)
    at.carry_out(3, after=2)
    assert at.answers == [("save", None), ("publish", None)]
    assert not at.refusals
    assert not len(at.calls)


async def test_the_real_answer_to_a_call_that_was_skipped_may_be_a_refusal() -> None:
    at = Calls()
    at.make("publish", may_be_refused=True, is_publish=True)
    at.skip()
    full = StoreRefused("OOM")
    at.link.answer(full)
    assert at.answers == [("publish", full)]


async def test_the_note_of_a_call_that_was_skipped_counts_with_its_real_answer() -> None:
    at = Calls()
    at.calls.journal = notes = Notes()
    at.make("publish", may_be_refused=True, is_publish=True, note=7)
    at.make("move", note=8)
    at.skip()
    at.carry_out(2, after=0)
    at.skip()
    at.carry_out(4, after=2)
    assert notes.events == ["postponed", (8, True, None), (7, True, "the note")]


async def test_a_call_that_may_be_skipped_counts_as_refused_and_is_not_made_behind_others() -> None:
    at = Calls()
    at.make("first", may_be_refused=True, may_be_skipped=True)
    at.make("second")
    at.skip()
    at.carry_out(2, after=0)
    [(first, refused), second] = at.answers
    assert first == "first"
    assert isinstance(refused, StoreRefused)
    assert second == ("second", None)
    assert len(at.link.calls) == 2
