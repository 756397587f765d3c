"""Serials are xMsg's: the vectors come from its own tests."""

import pytest

from holdfast.delivery.requests.reply_channels import SERVER, Serials

# The first digit of a serial: the requester's language.
JAVA, CPP, PYTHON, JAVASCRIPT = 1, 2, 3, 4


def following(serials: Serials, skipped: int = 0) -> list[int]:
    for _ in range(skipped):
        serials.next()
    return [serials.next() for _ in range(3)]


@pytest.mark.parametrize(
    ("counter", "expected"),
    [
        (0, [1000000, 1000001, 1000002]),
        (2**31 - 1, [1483647, 1483648, 1483649]),
        (-1, [1967295, 1000000, 1000001]),
    ],
)
def test_serials_of_java_are_those_of_xmsg(counter: int, expected: list[int]) -> None:
    assert following(Serials(JAVA, counter)) == expected


def test_serials_of_cpp_are_those_of_xmsg() -> None:
    assert following(Serials(CPP, 0)) == [2000000, 2000001, 2000002]


@pytest.mark.slow
def test_serials_start_again_after_a_million_requests() -> None:
    serials = Serials(JAVA)
    assert following(serials, 989_997 + 3) == [1990000, 1990001, 1990002]
    assert following(serials, 9_997) == [1000000, 1000001, 1000002]


@pytest.mark.parametrize("language", [JAVA, CPP, PYTHON, JAVASCRIPT, SERVER])
def test_the_first_digit_of_a_serial_is_its_language(language: int) -> None:
    assert Serials(language, 999_999).next() == language * 1_000_000 + 999_999
