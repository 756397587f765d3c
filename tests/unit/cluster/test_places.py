"""Places in logs, and where a reader goes on after an opening that it does not know."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cluster.places import (
    NOWHERE,
    FirstFrame,
    Place,
    PlaceUnreadable,
    go_on,
    openings_of,
    passed_with,
    place_of,
)

numbers = st.integers(0, 10**15)
OPENINGS = openings_of("aaaaaaaa 1-4,bbbbbbbb 2-1,cccccccc 4-7")


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
    assert OPENINGS[1] == FirstFrame("bbbbbbbb", 2, 1)
    assert openings_of("") == []
    with pytest.raises(PlaceUnreadable, match="no list of openings"):
        openings_of("aaaaaaaa 1-4,")


def test_a_reader_at_the_end_of_an_opening_goes_on_with_the_first_frame_of_the_next() -> None:
    assert go_on(Place("aaaaaaaa", 1, 90, 5), (), OPENINGS) == ("2-0", False)
    # The store had lost the end of that opening, so the next one follows earlier.
    assert go_on(Place("bbbbbbbb", 2, 3, 5), ("aaaaaaaa",), OPENINGS) == ("4-6", False)


def test_a_reader_at_the_newest_opening_goes_on_where_it_is() -> None:
    assert go_on(Place("cccccccc", 4, 9, 5), (), OPENINGS) == ("4-9", False)


def test_a_reader_of_a_forgotten_opening_takes_all_frames_of_openings_that_it_does_not_know() -> (
    None
):
    forgotten = Place("xxxxxxxx", 4, 3, 5)
    assert go_on(forgotten, ("bbbbbbbb", "aaaaaaaa"), OPENINGS) == ("4-6", True)
    assert go_on(forgotten, ("aaaaaaaa",), OPENINGS) == ("2-0", True)
    assert go_on(forgotten, (), OPENINGS) == ("1-3", True)


def test_a_reader_of_a_forgotten_opening_waits_if_it_knows_all_others() -> None:
    forgotten = Place("xxxxxxxx", 5, 3, 5)
    assert go_on(forgotten, ("cccccccc",), OPENINGS) == ("5-3", False)
    assert go_on(forgotten, (), ()) == ("5-3", False)


def test_a_new_reader_begins_at_the_first_frame() -> None:
    assert go_on(NOWHERE, (), OPENINGS) == ("1-3", True)


def test_the_openings_that_a_reader_has_passed_are_limited() -> None:
    passed: tuple[str, ...] = ()
    for number in range(30):
        passed = tuple(passed_with(passed, f"{number:08d}"))
    assert len(passed) == 16
    assert passed[0] == "00000029"
    assert passed_with(passed, "00000020") == passed
    assert passed_with((), NOWHERE.nonce) == ()
