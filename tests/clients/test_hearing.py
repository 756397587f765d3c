"""A test with these clients can fail: whatever a client notices is found."""

from collections.abc import Sequence

import pytest

from tests.clients.hearing import Hearing

COUNTS = {"anna": 4}


def hearing(
    *numbers: int, handshakes: int = 1, faults: Sequence[tuple[str, int]] = (), step_ms: int = 1000
) -> Hearing:
    heard = [("anna", number, index * step_ms) for index, number in enumerate(numbers)]
    return Hearing("joe", handshakes, heard, faults)


def test_nothing_is_wrong_with_a_client_that_heard_everything_in_order() -> None:
    assert hearing(0, 1, 2, 3).wrongs(COUNTS) == []


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ((0, 2, 3), "lost [1], doubled [], too late []"),
        ((0, 1, 2), "lost [3], doubled [], too late []"),
        ((), "lost [0, 1, 2, 3], doubled [], too late []"),
        ((0, 1, 1, 2, 3), "lost [], doubled [1], too late []"),
        ((0, 2, 1, 3), "lost [], doubled [], too late [1]"),
    ],
)
def test_a_message_that_is_lost_doubled_or_late_is_found(
    numbers: tuple[int, ...], found: str
) -> None:
    assert hearing(*numbers).wrongs(COUNTS) == [f"joe, published by anna: {found}"]


def test_a_second_handshake_and_a_fault_are_found() -> None:
    noticed = hearing(0, 1, 2, 3, handshakes=2, faults=[("a failed connect", 17)])
    assert noticed.wrongs(COUNTS) == ["joe: a failed connect at 17", "joe: 2 handshakes"]


def test_a_silence_counts_if_any_of_it_lies_in_the_time() -> None:
    heard = [("anna", number, at_ms) for number, at_ms in enumerate((0, 100, 900, 1000))]
    joe = Hearing("joe", 1, heard, [])
    assert joe.silence_s(0.0, 0.05) == 0.1
    assert joe.silence_s(0.5, 0.6) == 0.8
    assert joe.silence_s(0.0, 1.0) == 0.8
    assert joe.silence_s(2.0, 3.0) == float("inf")


def test_a_named_session_misses_what_was_accepted_and_never_came_or_came_late() -> None:
    # 2 may not have been accepted; 1 came again, as after a failover.
    assert hearing(0, 1, 1, 3).misses("anna", (0, 1, 3)) == []
    assert hearing(0, 3).misses("anna", (0, 1, 3)) == [
        "joe, published by anna: lost [1], too late [] of 3"
    ]
    assert hearing(0, 3, 1).misses("anna", (0, 1, 3)) == [
        "joe, published by anna: lost [], too late [1] of 3"
    ]


def test_a_new_session_may_hear_again_what_the_former_one_has_heard_and_no_more() -> None:
    assert hearing(0, 1, 1, 3, handshakes=2).disorder(["anna"]) == []
    assert hearing(0, 1, 1, 3).disorder(["anna"]) == ["joe, published by anna: twice or late [1]"]
