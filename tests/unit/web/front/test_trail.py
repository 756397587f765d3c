"""When a connection is given to the worker whose requests it carries."""

import pytest

from holdfast.web.front.trail import (
    IN_A_ROW,
    MOST_MOVES,
    NO_TRAIL,
    Trail,
    cookies_of_first,
    is_due,
)


def after(*shards: int | None) -> Trail:
    """The trail after requests for these shards; None is the own one."""
    trail = NO_TRAIL
    for number, shard in enumerate(shards, 1):
        if shard is not None:
            trail = trail.next(shard, number)
    return trail


@pytest.mark.parametrize(
    ("trail", "is_new", "moves", "expected"),
    [
        # A first request says whose the connection is.
        (after(1), True, 0, True),
        (after(None, 1), True, 0, False),
        (after(1, 1), True, 0, False),
        # One that has moved stays until a whole row is for another worker.
        (after(1), False, 1, False),
        (after(*[1] * IN_A_ROW), False, 1, True),
        (after(*[1] * IN_A_ROW), True, 0, True),
        (after(None, *[1] * IN_A_ROW), True, 0, True),
        (after(*[1] * (IN_A_ROW - 1)), False, 0, False),
        (after(*[1, 2] * IN_A_ROW), False, 0, False),
        (after(*[1] * (IN_A_ROW - 1), None, 1), False, 0, False),
        (after(*[1] * (IN_A_ROW - 1), 2), False, 0, False),
        # It does not wander.
        (after(*[1] * IN_A_ROW), False, MOST_MOVES, False),
    ],
)
def test_a_connection_moves_at_its_first_request_or_after_a_row(
    trail: Trail, is_new: bool, moves: int, expected: bool
) -> None:
    assert is_due(trail, is_new=is_new, moves=moves) is expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"GET / HTTP/1.1\r\nCookie: a=1\r\n\r\n", ["a=1"]),
        (b"GET / HTTP/1.1\r\ncookie:a=1\r\nHost: x\r\nCOOKIE: b=2\r\n\r\n", ["a=1", "b=2"]),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", []),
        # Its body comes later.
        (b"POST / HTTP/1.1\r\nCookie: a=1\r\n\r\n", ["a=1"]),
        # Its body says more.
        (b"POST / HTTP/1.1\r\nCookie: a=1\r\n\r\n[]", None),
        (b"GET / HTTP/1.1\r\nCookie: a=1\r\n", None),
        (b"GET / HTTP/1.1\r\nX-Cookie: a=1\r\n\r\nCookie: b=1\r\n\r\n", []),
        (b"\x16\x03\x01", None),
    ],
)
def test_a_first_head_shows_its_cookies(data: bytes, expected: list[str] | None) -> None:
    assert cookies_of_first(data) == expected
