"""What may become of a batch that is refused in part, and of a request."""

import pytest

from tests.simulation.judges.batches import CHANNEL, Batches
from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.scenes import facts_at
from tests.simulation.oracle import Publish
from tests.simulation.workers import LATER, Hand


class Scene:
    """A receiver that has subscribed at 1 gets a batch of three at 10.

    It wants the first one in a second, has done the last one, and says nothing of the other.
    """

    def __init__(self) -> None:
        self.now = 1.0
        self.marks: list[str] = []
        self.excuses = Excuses()
        self.judge = Batches(facts_at(lambda: self.now, mark=self.marks.append))
        self.published = {
            key: Publish("p", n, CHANNEL, 9.0, id=f"{n}", accepted_at=9.1)
            for n, key in enumerate("abc", 1)
        }
        self.judge.subscribed("joe")
        self.gets(10.0, "abc")
        later = Hand("a", 1, 10.0, LATER, delay_ms=1_000)
        self.says(later, Hand("b", 2, 10.0, is_open=True), Hand("c", 3, 10.0))

    def gets(self, at: float, keys: str) -> None:
        self.now = at
        for key in keys:
            self.judge.taken("joe", Hand(key, int(at), at), is_marked=False)

    def says(self, *hands: Hand) -> None:
        self.judge.says("joe", hands)
        for hand in hands:
            self.judge.settled("joe", hand)

    def ends(self, at: float, keys: str) -> None:
        self.gets(at, keys)
        self.says(*(Hand(key, int(at), at) for key in keys))

    def wrong(self) -> list[str]:
        return self.judge.violations(self.published, self.excuses, have_one_clock=False)


def test_what_is_left_open_comes_again_behind_what_is_due_later() -> None:
    scene = Scene()
    scene.ends(11.2, "a")
    assert scene.wrong() == ["batches: b, accepted as 2, has no end at joe"]
    scene.ends(11.3, "b")
    assert scene.wrong() == []
    assert "what was behind a refused message came again" in scene.marks


@pytest.mark.parametrize("keys", ["ba", "bda", "adb"])
def test_it_comes_neither_before_that_nor_behind_anything_new(keys: str) -> None:
    scene = Scene()
    scene.published["d"] = Publish("p", 4, CHANNEL, 9.0, id="4", accepted_at=9.1)
    scene.ends(11.2, keys)
    assert any("ahead of" in each for each in scene.wrong())


def test_the_old_order_is_lost_with_a_server_that_is_killed() -> None:
    scene = Scene()
    scene.excuses.add("kill_server", 10.5, 0.2)
    scene.ends(11.2, "ba")
    assert scene.wrong() == []


def test_what_must_be_refused_comes_to_nobody() -> None:
    scene = Scene()
    scene.ends(11.2, "ab")
    scene.judge.wrong("x")
    scene.ends(12.0, "x")
    assert scene.wrong() == ["batches: joe got x, which must be refused"]


def test_accepted_messages_of_requests_come_in_order_unless_nobody_knows_what_was_accepted() -> (
    None
):
    scene = Scene()
    scene.ends(11.2, "ab")
    for key, serial in (("e", 5), ("d", 4)):
        scene.published[key] = Publish("p", serial, CHANNEL, 11.0, id=key, accepted_at=11.1)
    scene.ends(12.0, "ed")
    assert scene.wrong() == ["batches: joe got d behind a later one"]
    scene.judge.unsure("d")
    assert scene.wrong() == []


def test_a_request_is_refused_in_part_if_some_of_it_was_due_to_be() -> None:
    scene = Scene()
    scene.judge.answered(["", ""], [{"successful": True}, {"successful": False}])
    assert "a request was refused in part" not in scene.marks
    scene.judge.answered(["", "too_large"], [{"successful": True}, {"successful": False}])
    assert "a request was refused in part" in scene.marks
