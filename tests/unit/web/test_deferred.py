"""Connections read what waits in order, some in each turn."""

from collections.abc import Callable
from functools import partial
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.deferred import Deferred
from tests.web.rig import FakeTurn


class Read:
    """What was read, in a turn that has time for so many."""

    def __init__(self, most: int) -> None:
        self.names: list[str] = []
        self._most = most
        self._left = most

    def reading(self, name: str) -> Callable[[], None]:
        return partial(self._read, name)

    def turn(self) -> FakeTurn:
        self._left = self._most
        return FakeTurn(lambda: self._left <= 0, lambda: None)

    def _read(self, name: str) -> None:
        self.names.append(name)
        self._left -= 1


def test_a_turn_reads_as_many_as_it_has_time_for_in_order() -> None:
    deferred, read = Deferred(), Read(2)
    for name in "abcde":
        deferred.add(1.0, read.reading(name))
    told = []
    while not deferred.is_empty:
        deferred.read_some(read.turn())
        told.append("".join(read.names))
    assert told == ["ab", "abcd", "abcde"]


def test_a_turn_that_is_over_reads_one() -> None:
    deferred, read = Deferred(), Read(0)
    for name in "ab":
        deferred.add(1.0, read.reading(name))
    deferred.read_some(read.turn())
    assert (read.names, deferred.is_empty) == (["a"], False)
    deferred.read_some(read.turn())
    deferred.read_some(read.turn())
    assert (read.names, deferred.is_empty) == (["a", "b"], True)


def test_what_comes_again_meanwhile_waits_for_the_next_turn() -> None:
    deferred, read = Deferred(), Read(10)

    def again() -> None:
        read.names.append("again")
        deferred.add(2.0, read.reading("rest"))

    deferred.add(1.0, again)
    deferred.read_some(read.turn())
    assert (read.names, deferred.since()) == (["again"], 2.0)


def test_it_knows_since_when_the_first_one_waits() -> None:
    deferred, read = Deferred(), Read(1)
    assert deferred.since() == inf
    deferred.add(1.0, read.reading("a"))
    deferred.add(2.0, read.reading("b"))
    assert deferred.since() == 1.0
    deferred.read_some(read.turn())
    assert deferred.since() == 2.0


@given(st.lists(st.sampled_from([b"", b"a", b"b"])), st.integers(0, 3))
def test_it_knows_the_cookies_of_those_that_wait(cookies: list[bytes], most: int) -> None:
    deferred, read = Deferred(), Read(most)
    for each in cookies:
        deferred.add(1.0, read.reading("x"), each)
    while not deferred.is_empty:
        left = cookies[len(read.names) :]
        assert [deferred.has(each) for each in (b"a", b"b")] == [b"a" in left, b"b" in left]
        deferred.read_some(read.turn())
    assert not any(deferred.has(each) for each in (b"", b"a", b"b"))
