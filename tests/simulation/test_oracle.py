"""What the oracle takes for a broken promise, and what not."""

from typing import Any

import pytest

from tests.simulation.oracle import Oracle

FORMER: Any = object()
LATER: Any = object()


class Scene:
    """A receiver, and one message that comes to it."""

    def __init__(self) -> None:
        self.now, self.home = 1.0, FORMER
        self.oracle = Oracle(lambda: self.now, ["joe"])
        self.oracle.home_of = lambda _: self.home
        self.oracle.publishes("a", "ann", 1, "/a", is_durable=True, is_repeated=True)
        self.oracle.accepted("a", "7")

    def come(self) -> None:
        self.oracle.received("joe", "a", "7", is_named=True)

    def settle(self) -> None:
        self.oracle.settled("joe", ["7"])

    def lacks(self) -> list[str]:
        return [each for each in self.oracle.violations(0.0) if each.startswith("S3")]

    def disorder(self) -> list[str]:
        return [each for each in self.oracle.violations(0.0) if each.startswith("S5")]

    def faults(self) -> list[str]:
        return [each for each in self.oracle.violations(0.0) if each.startswith("S4")]


@pytest.mark.parametrize(("handed_s", "may_come"), [(-0.001, False), (0.003, True), (0.2, False)])
def test_what_came_in_the_instant_of_a_cut_may_come_again_from_the_next_server(
    handed_s: float, may_come: bool
) -> None:
    scene = Scene()
    scene.oracle.cut_off.append((FORMER, scene.now - handed_s))
    scene.come()
    scene.now, scene.home = 4.0, LATER
    scene.settle()
    scene.come()
    assert scene.faults() == ([] if may_come else ["S4: joe got a again"])
    # That server knows it now.
    scene.come()
    assert scene.faults()[-1:] == ["S4: joe got a again"]


def test_what_came_again_after_the_instant_of_a_cut_comes_once_more_after_a_crash() -> None:
    scene = Scene()
    scene.oracle.cut_off.append((FORMER, scene.now))
    scene.come()
    scene.now, scene.home = 4.0, LATER
    # It answered behind the acknowledgement, and yet did not know what that was for.
    scene.settle()
    scene.now = 4.1
    scene.come()
    scene.oracle.forgets("joe", but=())
    scene.now = 4.2
    scene.come()
    assert not scene.faults()
    scene.settle()
    scene.oracle.forgets("joe", but=())
    scene.come()
    assert scene.faults() == ["S4: joe got a again"]


def test_a_server_that_was_cut_off_does_not_repeat_what_it_has_handed_out_itself() -> None:
    scene = Scene()
    scene.oracle.cut_off.append((FORMER, scene.now))
    scene.come()
    scene.settle()
    scene.come()
    assert scene.faults() == ["S4: joe got a again"]


def test_another_server_that_is_cut_off_excuses_nothing() -> None:
    scene = Scene()
    scene.oracle.cut_off.append((LATER, scene.now))
    scene.come()
    scene.home = LATER
    scene.settle()
    scene.come()
    assert scene.faults() == ["S4: joe got a again"]


def test_what_a_receiver_has_not_acknowledged_when_it_crashes_must_come_again() -> None:
    scene = Scene()
    scene.home, scene.now = None, 1.2
    scene.oracle.subscribed("joe", "/a")
    scene.now = 1.5
    scene.oracle.publishes("b", "ann", 2, "/a", is_durable=True, is_repeated=True)
    scene.oracle.accepted("b", "8")
    scene.oracle.received("joe", "b", "8", is_named=True)
    scene.now = 2.0
    scene.oracle.forgets("joe", but=["8"])
    assert not scene.lacks()
    scene.oracle.forgets("joe", but=())
    assert scene.lacks() == ["S3: joe lacks b, accepted as 8"]
    scene.oracle.received("joe", "b", "8", is_named=True)
    scene.oracle.settled("joe", ["8"])
    scene.oracle.forgets("joe", but=())
    assert not scene.lacks()


def test_what_a_crash_undid_is_not_behind_what_came_with_an_earlier_batch() -> None:
    scene = Scene()
    scene.oracle.publishes("b", "ann", 2, "/a", is_durable=True, is_repeated=True)
    scene.oracle.accepted("b", "8")
    scene.come()
    scene.oracle.received("joe", "b", "8", is_named=True)
    # The acknowledgement is lost, and the next batch has room for the first alone.
    scene.come()
    scene.oracle.forgets("joe", but=())
    scene.come()
    scene.oracle.received("joe", "b", "8", is_named=True)
    assert not scene.disorder()


def test_what_comes_behind_a_later_one_is_out_of_order() -> None:
    scene = Scene()
    scene.oracle.publishes("b", "ann", 2, "/a", is_durable=True, is_repeated=True)
    scene.oracle.accepted("b", "8")
    scene.oracle.received("joe", "b", "8", is_named=True)
    scene.come()
    assert scene.disorder() == ["S5: joe got a behind a later one"]
