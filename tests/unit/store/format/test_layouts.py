"""The table of layouts says what servers write in a store of each of them."""

from dataclasses import fields

from holdfast.store.format.layouts import (
    LAYOUT,
    LAYOUTS,
    OLDEST_LAYOUT,
    CurrentLayout,
    WrittenForm,
    later_than,
    readers_of,
    written_form,
)


def test_layouts_are_numbered_without_a_gap_and_each_says_what_it_changed() -> None:
    assert [each.number for each in LAYOUTS] == [*range(OLDEST_LAYOUT, LAYOUT + 1)]
    assert all(each.change for each in later_than(OLDEST_LAYOUT))


def test_a_store_in_the_newest_layout_is_written_in_the_newest_form() -> None:
    assert written_form(LAYOUT) == CurrentLayout().form == WrittenForm()
    assert later_than(LAYOUT) == ()


def test_a_store_in_an_earlier_layout_is_written_as_all_later_ones_say() -> None:
    former = written_form(OLDEST_LAYOUT)
    said = {name for each in LAYOUTS for name in each.before}
    assert said == {each.name for each in fields(WrittenForm)}
    assert all(getattr(former, name) != getattr(WrittenForm(), name) for name in said)
    current = CurrentLayout()
    current.enter(OLDEST_LAYOUT)
    assert (current.number, current.form) == (OLDEST_LAYOUT, former)


def test_readers_are_known_of_layouts_that_were_released() -> None:
    assert readers_of(2) == "0.2 and 0.3"
    assert readers_of(LAYOUT) == readers_of(OLDEST_LAYOUT - 1) == ""
