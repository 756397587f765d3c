"""A process that numbers its calls, and a naive store that answers as the scripts do."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from hypothesis import strategies as st

from holdfast.store.links.call_numbers import CallNumbers
from holdfast.store.links.reply_errors import CallSkipped, ScriptFailed, StoreRefused, WentBack

NONCE = "nonce000"
# Calls, by whether they may be refused; which of them the store refuses; how many answers arrive.
Connection = tuple[list[bool], list[bool], int]

connections = st.lists(
    st.tuples(
        st.lists(st.booleans(), max_size=4), st.lists(st.booleans(), max_size=8), st.integers(0, 8)
    ),
    max_size=8,
)


class Numbered(Protocol):
    """A store that carries out numbered calls."""

    @property
    def done(self) -> list[int]:
        """The numbers of the calls whose effect it has, in its order."""
        ...

    def call(self, word: str) -> object: ...

    def go_back(self, calls: int) -> None:
        """Forget so many of the latest calls."""
        ...


@dataclass
class NaiveStore:
    """Remembers which numbers it carried out and which it refused, for ever."""

    done: list[int] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)

    def call(self, word: str) -> object:
        _, name, needed, _ = word.split()
        number = int(name[9:])
        last = self.done[-1] if self.done else 0
        if number in self.refused:
            return ScriptFailed("REFUSED", "REFUSED before")
        if last < int(needed):
            return ScriptFailed("BACK", f"BACK {last}")
        before = f"{NONCE}-{last:012d}"
        if number in self.done:
            before += "".join(f" {each}-{each}" for each in self.refused)
        else:
            self.refused |= {*range(last + 1, number)}
            self.done.append(number)
        return before.encode()

    def go_back(self, calls: int) -> None:
        self.done = self.done[: max(0, len(self.done) - calls)]
        last = self.done[-1] if self.done else 0
        self.refused = {number for number in self.refused if number < last}


@dataclass
class Call:
    word: str
    may_be_refused: bool


class Process:
    """Makes calls as the link does: repeats what has no answer, in order."""

    def __init__(self, store: Numbered) -> None:
        self.numbers = CallNumbers()
        self.numbers.begin(NONCE)
        self.store = store
        self.unanswered: deque[Call] = deque()
        self.answers: list[object] = []

    def make(self, *, may_be_refused: bool) -> None:
        word = self.numbers.next(may_be_refused=may_be_refused)
        self.unanswered.append(Call(word, may_be_refused))

    def go_through(self, connections: Iterable[Connection]) -> None:
        for made, refusals, heard_of in connections:
            for may_be_refused in made:
                self.make(may_be_refused=may_be_refused)
            self.connect(refusals, heard_of)

    @property
    def known(self) -> list[int]:
        """The calls that were answered as carried out."""
        return [number for number, answer in enumerate(self.answers, 1) if answer == "done"]

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
        return "refused" if isinstance(reply, (StoreRefused, CallSkipped)) else "done"


def check_once(store: Numbered, connections: Iterable[Connection]) -> None:
    """Every call is carried out once and in order, or refused, whatever answers are lost."""
    at = Process(store)
    at.go_through(connections)
    while at.unanswered:
        at.connect([], 99)
    assert store.done == at.known
    assert set(at.answers) <= {"done", "refused"}


def check_back(
    store: Numbered, before: Iterable[Connection], lost: int, after: Iterable[Connection]
) -> None:
    """A store that loses answered calls is noticed at the first answer after that."""
    at = Process(store)
    at.go_through(before)
    store.go_back(lost)
    is_lost = not set(at.known) <= set(store.done)
    heard = len(at.answers)
    at.go_through(after)
    told = [answer for answer in at.answers[heard:] if answer != "refused"]
    assert told[:1] in ([], ["back"]) if is_lost else "back" not in told
