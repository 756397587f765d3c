"""What may come to clients that log in, and what to nobody."""

import pytest

from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.logins import Logins
from tests.simulation.judges.scenes import facts_at
from tests.simulation.tokens import SQUARE, VAULT


class Scene:
    """Somebody who has a right until 10, and gets a message at 12 or later."""

    def __init__(self) -> None:
        self.now = 12.0
        self.excuses = Excuses()
        self.judge = Logins(facts_at(lambda: self.now))

    def gets(self, at: float) -> list[str]:
        self.now = at
        assert self.judge.may_have("ann", {"key": "m"}, 10.0)
        return self.judge.violations(self.excuses)


def test_a_message_may_be_on_its_way_when_a_login_ends_and_no_longer() -> None:
    assert Scene().gets(12.0) == []
    assert len(Scene().gets(14.0)) == 1


@pytest.mark.parametrize(
    ("fault", "is_excused"),
    [("kill_server", False), ("restart", False), ("freeze_server", True), ("set_clock", True)],
)
def test_a_server_that_begins_serves_no_login_that_ended_meanwhile(
    fault: str, is_excused: bool
) -> None:
    scene = Scene()
    scene.excuses.add(fault, 9.0, 2.0)
    assert (scene.gets(14.0) == []) is is_excused


def test_what_nobody_may_publish_comes_to_nobody() -> None:
    scene = Scene()
    scene.now = 5.0
    assert not scene.judge.may_have("ann", scene.judge.forbidden("m"), 10.0)
    assert len(scene.judge.violations(scene.excuses)) == 1


def test_who_has_no_right_sees_nothing_but_what_is_for_everybody() -> None:
    scene = Scene()
    scene.judge.seen("eve", SQUARE)
    assert scene.judge.violations(scene.excuses) == []
    scene.judge.seen("eve", VAULT)
    assert len(scene.judge.violations(scene.excuses)) == 1
