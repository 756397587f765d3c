"""Small answers of one turn leave together, and nothing overtakes anything."""

from typing import Any

from holdfast.web.write_coalescer import WriteCoalescer


class Wire:
    """A transport that writes down, in a list that others share, what leaves."""

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


class Street:
    """A burst and its wires."""

    def __init__(self) -> None:
        self.began = 0
        self.left: list[str] = []
        self.told: list[int] = []
        self.burst = WriteCoalescer(self._begin, ahead=lambda: self.told.append(len(self.left)))
        self.a, self.b = Wire("a", self.left), Wire("b", self.left)

    def _begin(self) -> None:
        self.began += 1

    def write(self, wire: Any, size: int) -> None:
        self.burst.write(wire, b"x" * size)


def test_what_a_turn_has_to_say_leaves_when_it_ends_and_in_order() -> None:
    street = Street()
    street.write(street.a, 1)
    street.write(street.b, 2)
    street.write(street.a, 3)
    assert not street.left
    street.burst.send()
    assert street.left == ["a1", "b2", "a3"]


def test_the_first_thing_of_a_turn_asks_for_its_end() -> None:
    street = Street()
    for _ in range(2):
        street.write(street.a, 1)
        street.write(street.b, 1)
        street.burst.send()
    assert street.began == 2


def test_what_is_large_is_not_held_back_and_overtakes_nothing() -> None:
    street = Street()
    street.write(street.a, 1)
    street.write(street.a, 100_000)
    assert street.left == ["a1", "a100000"]


def test_nothing_is_held_back_from_a_client_that_has_not_read_what_came_before() -> None:
    street = Street()
    street.a.unsent = 10
    street.write(street.a, 1)
    assert street.left == ["a1"]


def test_in_a_long_turn_the_first_do_not_wait_for_the_last() -> None:
    street = Street()
    for _ in range(100):
        street.write(street.a, 1)
    assert len(street.left) == 64
    street.burst.send()
    assert len(street.left) == 100


def test_whoever_must_know_first_is_told_before_anything_leaves() -> None:
    street = Street()
    for _ in range(65):
        street.write(street.a, 1)
    street.write(street.b, 100_000)
    street.burst.send()
    assert street.told == [0, 64, 66]


def test_a_connection_that_is_closed_meanwhile_costs_the_others_nothing() -> None:
    street = Street()
    street.write(street.a, 1)
    street.write(street.b, 2)
    street.a.is_closed = True
    street.burst.send()
    assert street.left == ["b2"]
