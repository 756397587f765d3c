"""Numbers of calls against a naive store that answers as the scripts do."""

from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.store.call_numbers import CallNumbers
from holdfast.store.reply_errors import ScriptFailed, StoreRefused, WentBack


@dataclass
class NaiveStore:
    """Remembers which numbers it carried out and which it refused, for ever."""

    done: list[int] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)

    def call(self, word: str) -> object:
        _, number, needed, _ = word.split()
        if int(number) in self.done:
            return self.done[-1]
        if int(number) in self.refused:
            return ScriptFailed("REFUSED", "REFUSED before")
        last = self.done[-1] if self.done else 0
        if last < int(needed):
            return ScriptFailed("BACK", f"BACK {last}")
        self.refused |= {*range(last + 1, int(number))}
        self.done.append(int(number))
        return last

    def go_back(self, calls: int) -> None:
        """Forget so many of the latest calls."""
        self.done = self.done[: max(0, len(self.done) - calls)]
        last = self.done[-1] if self.done else 0
        self.refused = {number for number in self.refused if number < last}


@dataclass
class Call:
    word: str
    may_be_refused: bool


class Process:
    """Makes calls as the link does: repeats what has no answer, in order."""

    def __init__(self) -> None:
        self.numbers = CallNumbers()
        self.numbers.begin("e")
        self.store = NaiveStore()
        self.unanswered: deque[Call] = deque()
        self.answers: list[object] = []

    def make(self, *, may_be_refused: bool) -> None:
        word = self.numbers.next(may_be_refused=may_be_refused)
        self.unanswered.append(Call(word, may_be_refused))

    def connect(self, refusals: list[bool], heard_of: int) -> None:
        """Send everything. The store refuses some; so many answers arrive."""
        replies: list[object] = []
        for call, is_refused in zip(self.unanswered, [*refusals, *[False] * 99], strict=False):
            replies.append(StoreRefused("OOM") if is_refused else self.store.call(call.word))
        for reply in replies[:heard_of]:
            if isinstance(reply, StoreRefused) and not self.unanswered[0].may_be_refused:
                break
            self.unanswered.popleft()
            self.answers.append(self.heard(reply))
        # What the store may have carried out is repeated until it is accepted.
        for call in self.unanswered:
            call.may_be_refused = False

    def heard(self, reply: object) -> object:
        try:
            reply = self.numbers.heard(reply)
        except WentBack:
            return "back"
        if isinstance(reply, ScriptFailed):
            return "back"
        return "refused" if isinstance(reply, StoreRefused) else "done"


connections = st.lists(
    st.tuples(
        st.lists(st.booleans(), max_size=4), st.lists(st.booleans(), max_size=8), st.integers(0, 8)
    ),
    max_size=8,
)


@given(connections)
def test_every_call_is_done_once_in_order_or_refused_whatever_answers_are_lost(
    given_connections: list[tuple[list[bool], list[bool], int]],
) -> None:
    at = Process()
    for made, refusals, heard_of in given_connections:
        for may_be_refused in made:
            at.make(may_be_refused=may_be_refused)
        at.connect(refusals, heard_of)
    while at.unanswered:
        at.connect([], 99)
    numbers = [n for n, answer in enumerate(at.answers, 1) if answer == "done"]
    assert at.store.done == numbers
    assert set(at.answers) <= {"done", "refused"}


@given(connections, st.integers(1, 5), connections)
def test_a_store_that_loses_calls_with_an_answer_is_noticed_at_the_first_answer_after_that(
    before: list[tuple[list[bool], list[bool], int]],
    lost: int,
    after: list[tuple[list[bool], list[bool], int]],
) -> None:
    at = Process()
    for made, refusals, heard_of in before:
        for may_be_refused in made:
            at.make(may_be_refused=may_be_refused)
        at.connect(refusals, heard_of)
    known = [n for n, answer in enumerate(at.answers, 1) if answer == "done"]
    at.store.go_back(lost)
    is_lost = not set(known) <= set(at.store.done)
    heard = len(at.answers)
    for made, refusals, heard_of in after:
        for may_be_refused in made:
            at.make(may_be_refused=may_be_refused)
        at.connect(refusals, heard_of)
    told = [answer for answer in at.answers[heard:] if answer != "refused"]
    assert told[:1] in ([], ["back"]) if is_lost else "back" not in told


def test_a_call_that_failed_may_have_been_carried_out_or_not() -> None:
    for before in (0, 1):
        numbers = CallNumbers()
        numbers.begin("e")
        words = [numbers.next(may_be_refused=True) for _ in range(3)]
        assert words == ["e 1 0 1", "e 2 0 1", "e 3 0 1"]
        assert isinstance(numbers.heard(ScriptFailed("ERR", "ERR")), ScriptFailed)
        assert numbers.heard(before) == before
        with pytest.raises(WentBack):
            numbers.heard(1)


def test_the_meaning_of_a_list_begins_behind_the_number() -> None:
    numbers = CallNumbers()
    numbers.begin("e")
    numbers.next(may_be_refused=False)
    assert numbers.heard([0, b"taken"]) == [b"taken"]
