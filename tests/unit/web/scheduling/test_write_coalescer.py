"""Small writes of one turn leave together, and in order."""

from typing import Any
from weakref import ref

from holdfast.web.scheduling.write_coalescer import WriteCoalescer
from tests.web.rig import FakeRight


class Wire:
    """A transport that notes in a shared list what leaves."""

    def __init__(self, name: str, left: list[str]) -> None:
        self.name = name
        self.left = left
        self.unsent = 0
        self.is_closed = False

    def is_closing(self) -> bool:
        return self.is_closed

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.left.append(f"{self.name}{len(data)}")

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.is_closed = True


class Street:
    """A write coalescer and two transports."""

    def __init__(self) -> None:
        self.began = 0
        self.left: list[str] = []
        self.calls: list[int] = []
        self.right = FakeRight()
        self.coalescer = WriteCoalescer(
            self._begin,
            ahead=lambda: self.calls.append(len(self.left)),
            right=self.right,
        )
        self.a, self.b = Wire("a", self.left), Wire("b", self.left)

    def _begin(self) -> None:
        self.began += 1

    def write(self, wire: Any, size: int) -> None:
        self.coalescer.write(wire, b"x" * size)


def test_the_writes_of_a_turn_leave_in_order_when_it_ends() -> None:
    street = Street()
    street.write(street.a, 1)
    street.write(street.b, 2)
    street.write(street.a, 3)
    assert not street.left
    street.coalescer.send()
    assert street.left == ["a1", "b2", "a3"]


def test_the_first_write_of_a_turn_schedules_its_end() -> None:
    street = Street()
    for _ in range(2):
        street.write(street.a, 1)
        street.write(street.b, 1)
        street.coalescer.send()
    assert street.began == 2


def test_large_writes_leave_at_once_and_overtake_nothing() -> None:
    street = Street()
    street.write(street.a, 1)
    street.write(street.a, 100_000)
    assert street.left == ["a1", "a100000"]


def test_writes_to_a_client_that_does_not_read_are_not_collected() -> None:
    street = Street()
    street.a.unsent = 10
    street.write(street.a, 1)
    assert street.left == ["a1"]


def test_the_first_writes_of_a_long_turn_leave_early() -> None:
    street = Street()
    for _ in range(100):
        street.write(street.a, 1)
    assert len(street.left) == 64
    street.coalescer.send()
    assert len(street.left) == 100


def test_the_callback_runs_before_anything_leaves() -> None:
    street = Street()
    for _ in range(65):
        street.write(street.a, 1)
    street.write(street.b, 100_000)
    street.coalescer.send()
    assert street.calls == [0, 64, 66]


def test_a_closed_connection_does_not_stop_the_writes_of_others() -> None:
    street = Street()
    street.write(street.a, 1)
    street.write(street.b, 2)
    street.a.is_closed = True
    street.coalescer.send()
    assert street.left == ["b2"]


def test_nothing_leaves_while_this_process_must_not_speak() -> None:
    street = Street()
    street.write(street.a, 1)
    street.right.is_silent = True
    street.coalescer.send()
    street.write(street.a, 100_000)
    street.a.unsent = 10
    street.write(street.a, 3)
    assert street.left == []
    street.right.speak_again()
    assert street.left == ["a1", "a100000", "a3"]


def test_what_waits_for_the_right_to_speak_leaves_once() -> None:
    street = Street()
    street.right.is_silent = True
    for size in (1, 2):
        street.write(street.a, size)
        street.coalescer.send()
    street.right.speak_again()
    street.coalescer.send()
    assert street.left == ["a1", "a2"]


def test_a_silence_keeps_no_writes_to_connections_that_have_ended() -> None:
    street = Street()
    street.right.is_silent = True
    ended = []
    wire = street.b
    for _ in range(3000):
        wire = Wire("c", street.left)
        street.write(wire, 1)
        wire.is_closed = True
        ended.append(ref(wire))
    street.write(street.a, 1)
    del wire
    assert sum(each() is not None for each in ended) < 1500
    street.right.speak_again()
    assert street.left == ["a1"]


def test_a_client_that_sends_without_reading_is_cut_off_during_a_silence() -> None:
    street = Street()
    street.right.is_silent = True
    street.write(street.b, 1)
    for _ in range(3000):
        street.write(street.a, 300)
    assert street.a.is_closed
    street.right.speak_again()
    assert street.left == ["b1"]


def test_in_a_silence_what_others_say_passes_but_not_what_is_behind_own_words() -> None:
    street = Street()
    street.right.is_silent = True
    street.write(street.a, 1)
    place = street.coalescer.place
    street.write(street.a, 2)
    street.write(street.b, 3)
    street.coalescer.let_pass(place)
    assert street.left == ["b3"]
    street.right.speak_again()
    street.coalescer.send()
    assert street.left == ["b3", "a1", "a2"]


def test_a_closed_transport_gets_nothing_that_others_say() -> None:
    street = Street()
    street.right.is_silent = True
    street.write(street.b, 3)
    street.b.abort()
    street.coalescer.let_pass(0)
    assert street.left == []


def test_without_a_silence_what_others_say_leaves_with_the_turn() -> None:
    street = Street()
    street.write(street.a, 1)
    street.coalescer.let_pass(0)
    assert street.left == []
