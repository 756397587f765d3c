"""Numbers in the output of commands."""

import pytest

from holdfast.cli.output import speed
from holdfast.units import counted


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 messages"),
        (1, "1 message"),
        (999, "999 messages"),
        (1000, "1,000 messages"),
        (1234567, "1,234,567 messages"),
    ],
)
def test_numbers_of_things_have_separators_for_thousands(count: int, text: str) -> None:
    assert counted(count, "message") == speed(count, 0.0) == text


def test_a_plural_may_be_given() -> None:
    assert counted(2000, "entry is", "entries are") == "2,000 entries are"


def test_a_speed_has_the_time_and_the_rate() -> None:
    assert speed(3000, 2.0) == "3,000 messages in 2.00 s, 1,500 per second"
