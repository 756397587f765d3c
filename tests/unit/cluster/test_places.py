"""Places in logs, and where a reader goes on after an incarnation that it does not know."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cluster.places import (
    NOWHERE,
    Incarnation,
    Place,
    PlaceUnreadable,
    go_on,
    incarnations_of,
    passed_with,
    place_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

numbers = st.integers(0, 10**15)
TEXT = "aaaaaaaa 1-4,bbbbbbbb 2-1,cccccccc 4-7"
INCARNATIONS = incarnations_of(TEXT)


@given(st.text("0123456789abcdef", min_size=8, max_size=8), numbers, numbers, numbers)
def test_a_place_is_read_as_it_was_written(nonce: str, fence: int, n: int, total: int) -> None:
    place = Place(nonce, fence, n, total)
    assert place_of(str(place)) == place
    assert place.id == f"{fence}-{n}"


@given(
    st.text(max_size=40) | st.from_regex(r"[0-9a-f]{8} \d{1,20}-\d{1,3} \d{1,3}", fullmatch=True)
)
def test_any_text_is_a_place_or_an_error(text: str) -> None:
    try:
        place = place_of(text)
    except PlaceUnreadable:
        return
    assert str(place) == (text or str(NOWHERE))


def test_openings_are_read_and_anything_else_is_an_error() -> None:
    assert INCARNATIONS[1] == Incarnation("bbbbbbbb", 2, 1)
    assert text_of(INCARNATIONS) == TEXT
    assert incarnations_of("") == []
    with pytest.raises(PlaceUnreadable, match="no list of openings"):
        incarnations_of("aaaaaaaa 1-4,")


def test_a_reader_whose_opening_is_listed_goes_on_at_its_place() -> None:
    assert go_on(Place("aaaaaaaa", 1, 90, 5), (), INCARNATIONS) == "1-90"
    assert go_on(Place("cccccccc", 4, 9, 5), (), INCARNATIONS) == "4-9"


def test_a_reader_of_a_forgotten_opening_goes_on_in_the_newest_one_that_it_knows() -> None:
    forgotten = Place("xxxxxxxx", 4, 3, 5)
    assert go_on(forgotten, incarnations_of("bbbbbbbb 2-8,aaaaaaaa 1-9"), INCARNATIONS) == "2-8"
    assert go_on(forgotten, incarnations_of("yyyyyyyy 3-1,aaaaaaaa 1-9"), INCARNATIONS) == "1-9"


def test_a_reader_that_knows_no_opening_begins_at_the_first_frame() -> None:
    assert go_on(Place("xxxxxxxx", 4, 3, 5), (), INCARNATIONS) == "0-0"
    assert go_on(NOWHERE, (), INCARNATIONS) == "0-0"
    assert go_on(Place("xxxxxxxx", 4, 3, 5), (), ()) == "0-0"


def test_the_openings_that_a_reader_has_passed_are_limited() -> None:
    passed: Sequence[Incarnation] = ()
    for number in range(30):
        passed = passed_with(passed, Place(f"{number + 1:08d}", number, 5, 0))
    assert len(passed) == 16
    assert passed[0] == Incarnation("00000030", 29, 5)
    # A store that went back may bring a reader into an incarnation again.
    again = passed_with(passed, Place("00000020", 19, 7, 0))
    assert again[:2] == (Incarnation("00000020", 19, 7), Incarnation("00000030", 29, 5))
    assert len(again) == 16
    assert passed_with((), NOWHERE) == ()
