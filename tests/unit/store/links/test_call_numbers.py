"""Numbers of calls against a naive store that answers as the scripts do."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.store.links.call_numbers import CallNumbers
from holdfast.store.links.reply_errors import CallSkipped, ScriptFailed, WentBack
from tests.unit.store.numbered import (
    NONCE,
    Connection,
    NaiveStore,
    check_back,
    check_once,
    connections,
)


@given(connections)
def test_every_call_is_done_once_in_order_or_refused_whatever_answers_are_lost(
    given_connections: list[Connection],
) -> None:
    check_once(NaiveStore(), given_connections)


@given(connections, st.integers(1, 5), connections)
@example([([True, True, True], [], 2)], 2, [([], [], 8)])
# The answer that showed what was missing is lost.
@example([([False, True, False], [False, False, True], 2)], 1, [([], [], 0), ([], [], 1)])
def test_a_store_that_loses_calls_with_an_answer_is_noticed_at_the_first_answer_after_that(
    before: list[Connection], lost: int, after: list[Connection]
) -> None:
    check_back(NaiveStore(), before, lost, after)


def test_a_call_that_failed_may_have_been_carried_out_or_not() -> None:
    for before in (0, 1):
        numbers = CallNumbers()
        numbers.begin(NONCE)
        words = [numbers.next(may_be_refused=True) for _ in range(3)]
        assert [word[22:] for word in words] == [f"{NONCE}-{n:012d} 0 0" for n in (1, 2, 3)]
        assert isinstance(numbers.heard(ScriptFailed("ERR", "ERR")), ScriptFailed)
        assert numbers.heard(name_of(before)) is None
        with pytest.raises(WentBack):
            numbers.heard(name_of(1))


def test_the_store_may_have_noted_the_number_of_a_call_that_it_refused() -> None:
    """As `take.lua` does: the next call shows that, and no call is lost."""
    for before in (0, 1):
        numbers = CallNumbers()
        numbers.begin(NONCE)
        for _ in range(3):
            numbers.next(may_be_refused=True)
        assert isinstance(numbers.heard(ScriptFailed("REFUSED", "REFUSED")), CallSkipped)
        assert numbers.heard([name_of(before), b"taken"]) == [b"taken"]
        with pytest.raises(WentBack):
            numbers.heard(name_of(1))


def test_the_meaning_of_a_list_begins_behind_the_name() -> None:
    numbers = CallNumbers()
    numbers.begin(NONCE)
    numbers.next(may_be_refused=False)
    assert numbers.heard([name_of(0), b"taken"]) == [b"taken"]


def name_of(number: int) -> bytes:
    return f"{NONCE}-{number:012d}".encode()
