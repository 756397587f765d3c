"""Serials are xMsg's: the vectors are those of its own tests."""

import pytest

from holdfast.delivery.request_serials import CPP, JAVA, JAVASCRIPT, PYTHON, SERVER, Serials


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
def test_serials_of_java_begin_anew_where_xmsg_does(counter: int, expected: list[int]) -> None:
    assert following(Serials(JAVA, counter)) == expected


def test_serials_of_cpp_count_before_they_are_used() -> None:
    assert following(Serials(CPP, -1 + 1)) == [2000000, 2000001, 2000002]


@pytest.mark.slow
def test_after_a_million_requests_the_serials_begin_anew() -> None:
    serials = Serials(JAVA)
    assert following(serials, 989_997 + 3) == [1990000, 1990001, 1990002]
    assert following(serials, 9_997) == [1000000, 1000001, 1000002]


@pytest.mark.parametrize("language", [JAVA, CPP, PYTHON, JAVASCRIPT, SERVER])
def test_the_first_digit_is_the_language(language: int) -> None:
    assert Serials(language, 999_999).next() == language * 1_000_000 + 999_999
