"""Code in a thread runs when it is told to, and nothing else runs meanwhile."""

import pytest

from tests.simulation.strands import Strand


class Counting:
    """Counts each time that it goes on, and says how it ends."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self.has_ended = False
        self._most = most
        self.strand = Strand(self._run)

    def _run(self) -> None:
        try:
            while self.count < self._most:
                self.count += 1
                self.strand.wait()
        finally:
            self.has_ended = True


def test_a_strand_runs_until_it_waits_again() -> None:
    counting = Counting(2)
    assert counting.count == 0
    counting.strand.go_on()
    assert (counting.count, counting.strand.is_over) == (1, False)
    counting.strand.go_on()
    counting.strand.go_on()
    assert (counting.count, counting.strand.is_over) == (2, True)


def test_a_killed_strand_ends_where_it_waits() -> None:
    counting = Counting(2)
    counting.strand.go_on()
    counting.strand.kill()
    assert (counting.count, counting.has_ended, counting.strand.is_over) == (1, True, True)


def test_a_strand_that_never_began_is_killed_without_running() -> None:
    counting = Counting(2)
    counting.strand.kill()
    assert (counting.count, counting.has_ended) == (0, False)


def test_what_a_strand_raises_comes_to_whoever_let_it_go_on() -> None:
    def fail() -> None:
        raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        Strand(fail).go_on()
