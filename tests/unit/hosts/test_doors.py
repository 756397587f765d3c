"""A host without a worker that serves clients has a door to the shards of others."""

from holdfast.hosts.doors import DoorNeed, parts_of


class Site:
    """The workers of a host, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.need = DoorNeed(lambda: self.now)

    def needs(self, here: str = "", serving: str = "", leaving: str = "") -> bool:
        """Return whether a door is needed, given shards as digits."""
        digits = (map(int, each) for each in (here, serving, leaving))
        return self.need.is_there(*(set(each) for each in digits))


def test_a_host_without_workers_needs_a_door_at_once() -> None:
    assert Site().needs()


def test_a_worker_that_serves_is_a_door_itself() -> None:
    site = Site()
    assert not site.needs("1", "1")
    assert not site.needs("12", "1")
    assert not site.needs("12", "12", leaving="2")


def test_a_host_whose_last_worker_leaves_needs_a_door_before() -> None:
    site = Site()
    assert not site.needs("1", "1")
    assert site.needs("1", "1", leaving="1")
    assert site.need.is_awaited
    site.now += 9.9
    assert site.need.is_awaited
    # Without a door, too, it leaves some time.
    site.now += 0.2
    assert not site.need.is_awaited


def test_workers_that_start_have_some_seconds() -> None:
    site = Site()
    assert not site.needs("1")
    site.now += 5.0
    assert not site.needs("1")
    site.now += 0.1
    assert site.needs("1")


def test_the_seconds_begin_again_after_a_worker_has_served() -> None:
    site = Site()
    assert not site.needs("1")
    site.now += 4.0
    assert not site.needs("1", "1")
    assert not site.needs("1")
    site.now += 4.0
    assert not site.needs("1")


def test_an_address_has_an_equal_part_at_each_host_and_divides_it_by_the_doors_there() -> None:
    even = {1: "b", 2: "c", 3: "a", 4: "b", 5: "c"}
    assert parts_of("a", even) == 6
    # Of three hosts, this one has four doors.
    assert parts_of("a", {**even, 1: "a", 2: "a"}) == 12
    # The others are gone; or not reached.
    assert parts_of("a", dict.fromkeys(even, "a")) == 6
    assert parts_of("a", {}) == 1
