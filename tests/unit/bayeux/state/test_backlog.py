"""The backlog: work over several turns, of which none may stop the rest."""

import logging
from collections import deque
from functools import partial

import pytest

from holdfast.bayeux.state.backlog import Backlog, SerialWork


def nothing() -> None:
    pass


def work_on(items: list[str], done: list[str]) -> partial[bool]:
    """Work on items in order, of which those called "bad" cannot be done."""
    return partial(_next, deque(items), done)


def _next(left: deque[str], done: list[str], _: float) -> bool:
    if left:
        item = left.popleft()
        if item == "bad":
            raise ValueError(item)
        done.append(item)
    return bool(left)


def test_a_piece_that_fails_stops_neither_the_next_one_nor_other_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backlog, done = Backlog(nothing, lambda: False), list[str]()
    backlog.add(work_on(["bad", "bad", "a", "bad"], done))
    backlog.add(work_on(["b", "c"], done))
    backlog.go_on(0.0)
    assert sorted(done) == ["a", "b", "c"]
    assert backlog.failures == 3
    assert not backlog
    # Two failures in succession are one line of the log.
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2


def test_work_that_only_fails_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    backlog, done = Backlog(nothing, lambda: False), list[str]()

    def fail(_: float) -> bool:
        raise ValueError

    backlog.begin(fail, 0.0)
    backlog.begin(work_on(["a"], done), 0.0)
    assert done == ["a"]
    assert not backlog
    assert len(caplog.records) == 2


def test_works_in_a_row_go_on_behind_one_that_failed() -> None:
    backlog, done, ends = Backlog(nothing, lambda: False), list[str](), list[str]()

    def fail(_: float) -> bool:
        raise ValueError

    works = SerialWork([fail, work_on(["a"], done)], partial(ends.append, "end"))
    backlog.begin(works.go_on, 0.0)
    assert (done, ends, backlog.failures) == (["a"], ["end"], 1)
