"""In which layout stores are, and what an earlier release must find in them."""

from typing import Any

import pytest

from holdfast.store.format.layouts import LAYOUT, OLDEST_LAYOUT
from tests.simulation.books import Written
from tests.simulation.judges.excuses import GOING_BACK, Excuses
from tests.simulation.judges.layouts import Layouts
from tests.simulation.judges.scenes import facts_at

FORMER = OLDEST_LAYOUT


class Scene:
    """A store of two shards that an earlier release has left."""

    def __init__(self) -> None:
        self.now = 1.0
        self.may_have_lost = False
        self.versions = [FORMER, FORMER]
        self.merged: list[str] = []
        self.timeless: list[str] = []
        self.unrecorded: list[str] = []
        self.excuses = Excuses()
        facts = facts_at(lambda: self.now, may_have_lost=lambda *_: self.may_have_lost)
        self.judge = Layouts(
            facts,
            FORMER,
            lambda: [Written(each, self.merged, self.timeless) for each in self.versions],
            lambda: [self.unrecorded, []],
        )

    def is_told(self, number: int, **more: Any) -> None:
        answer = {"layout": number, "finished": number == LAYOUT, **more}
        self.judge.told(answer, is_whole=True)

    def is_finished(self) -> None:
        self.judge.asks()
        self.versions = [LAYOUT, LAYOUT]
        self.is_told(LAYOUT)

    def wrong(self) -> list[str]:
        self.now += 1.0
        return [*self.judge.violations(self.excuses)]


def test_a_store_stays_in_its_layout_until_somebody_finishes_the_upgrade() -> None:
    scene = Scene()
    scene.is_told(FORMER)
    assert scene.wrong() == []
    scene.is_finished()
    assert scene.wrong() == []


def test_a_layout_that_moves_before_anybody_has_asked_is_reported() -> None:
    scene = Scene()
    scene.versions[1] = LAYOUT
    assert scene.wrong() == [
        f"layouts: shard 1 is in layout {LAYOUT}, and nobody has asked at 2.000"
    ]


def test_a_finish_that_not_all_stores_have_is_reported_unless_a_failover_may_have_lost_it() -> None:
    scene = Scene()
    scene.is_finished()
    scene.versions[1] = FORMER
    scene.may_have_lost = True
    assert scene.wrong() == []
    scene.may_have_lost = False
    assert any("and was finished" in each for each in scene.wrong())


def test_an_operator_is_told_the_same_for_ever() -> None:
    scene = Scene()
    scene.is_finished()
    scene.is_told(FORMER)
    assert any("not finished any more" in each for each in scene.wrong())


def test_an_operator_is_told_of_a_finish_that_somebody_has_asked_for() -> None:
    scene = Scene()
    scene.is_told(LAYOUT)
    assert any("nobody has asked" in each for each in scene.wrong())


def test_who_wants_the_upgrade_finished_gets_it() -> None:
    scene = Scene()
    scene.judge.is_wanted = True
    assert scene.wrong() == ["liveness: the upgrade is not finished"]
    scene.is_finished()
    assert scene.wrong() == []


@pytest.mark.parametrize("form", ["merged", "timeless"])
def test_an_earlier_release_finds_the_times_of_publish_keys_apart(form: str) -> None:
    scene = Scene()
    setattr(scene, form, ["key"])
    assert any("cannot read when key was published" in each for each in scene.wrong())
    scene = Scene()
    scene.is_finished()
    setattr(scene, form, ["key"])
    assert scene.wrong() == []


def test_an_earlier_release_finds_requests_in_sessions_unless_a_server_has_ended_just_then() -> (
    None
):
    scene = Scene()
    scene.unrecorded = ["joe/1/4000001"]
    scene.excuses.add(GOING_BACK, 0.0, 5.0)
    scene.judge.former_looks()
    assert scene.wrong() == [
        "layouts: an earlier release does not find the request joe/1/4000001 at 1.000"
    ]
    scene.excuses.add("kill_server", 0.5, 0.1)
    assert scene.wrong() == []


@pytest.mark.parametrize("version", [FORMER, LAYOUT])
@pytest.mark.parametrize("refusal", ["", "VERSION 4"])
def test_an_earlier_release_opens_its_layout_and_is_refused_any_later_one(
    version: int, refusal: str
) -> None:
    scene = Scene()
    scene.judge.former_opened(version, FORMER, refusal)
    is_right = bool(refusal) is (version > FORMER)
    assert (scene.wrong() == []) is is_right
