"""What may become of messages that their receivers may refuse, and what no fault excuses."""

from math import inf

import pytest

from tests.simulation.books import Letter
from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.refusals import Refusals
from tests.simulation.judges.scenes import facts_at
from tests.simulation.oracle import Publish
from tests.simulation.refusing import CHANNEL
from tests.simulation.talker import Message
from tests.simulation.workers import LATER, Hand

DEAD = "user.update.error"


class Scene:
    """A receiver that has subscribed at 1, and one message, which it gets at 10."""

    def __init__(self, lifetime_s: float = float("inf"), *, is_durable: bool = True) -> None:
        self.now = 1.0
        self.is_gone = False
        self.lost_at = inf
        self.letters: list[Letter] = []
        self.kept: frozenset[str] = frozenset()
        self.excuses = Excuses()
        facts = facts_at(
            lambda: self.now,
            letters=lambda: self.letters,
            kept=lambda _: self.kept,
            may_have_lost=lambda since, until: since <= self.lost_at <= until,
            may_be_gone=lambda _: self.is_gone,
        )
        self.judge = Refusals(facts)
        publish = Publish("p", 1, CHANNEL, 9.0, is_durable, lifetime_s=lifetime_s)
        publish.id, publish.accepted_at = "1", 9.1
        self.published = {"m": publish}
        self.judge.begins("joe", {"delay": 500})
        self.judge.subscribed("joe")
        self.gets(10.0)

    def gets(self, at: float, key: str = "m") -> None:
        self.now = self.taken_at = at
        self.judge.taken("joe", Hand(key, int(at), at), is_marked=False)

    def says(self, verdict: str | None, *, delay_ms: int = 0) -> None:
        hand = Hand("m", int(self.now), self.taken_at, verdict, delay_ms)
        self.judge.says("joe", [hand])
        self.judge.settled("joe", hand)

    def dies(self, code: str = DEAD) -> None:
        self.letters.append(Letter("joe", "m", CHANNEL, code))

    def wrong(self) -> list[str]:
        return self.judge.violations(self.published, self.excuses, have_one_clock=True)


def test_a_message_that_was_acked_or_buried_has_one_end() -> None:
    acked, buried = Scene(), Scene()
    acked.says(None)
    buried.says(DEAD)
    buried.dies()
    assert acked.wrong() == buried.wrong() == []


def test_a_message_that_has_ended_is_stored_no_more() -> None:
    scene = Scene()
    scene.says(None)
    scene.kept = frozenset({"m"})
    assert scene.wrong() == ["refusals: m is still in a store"]


def test_a_message_without_an_end_is_missed_unless_its_lifetime_is_over() -> None:
    assert len(Scene().wrong()) == 1
    assert Scene(lifetime_s=1.0).wrong() == []


def test_what_its_only_store_has_lost_needs_no_end() -> None:
    scene = Scene()
    scene.is_gone = True
    assert scene.wrong() == []


@pytest.mark.parametrize(("verdict", "is_excused"), [(DEAD, True), (LATER, False)])
def test_a_refusal_without_a_letter_is_noticed_unless_a_failover_may_have_lost_it(
    *, verdict: str, is_excused: bool
) -> None:
    scene = Scene()
    scene.says(verdict)
    assert scene.wrong()
    scene.lost_at = 10.0
    assert (scene.wrong() == []) is is_excused


def test_a_letter_says_what_its_receiver_said_and_is_there_once() -> None:
    scene = Scene()
    scene.says(DEAD)
    scene.dies()
    scene.dies("user.other")
    assert len(scene.wrong()) == 2


def test_a_full_queue_buries_only_what_was_never_handed_out() -> None:
    scene = Scene()
    scene.dies("resource.overflow.queue.entries")
    assert len(scene.wrong()) == 1


def test_a_full_queue_buries_with_the_code_of_the_limit_that_it_has_reached() -> None:
    for code, count in (("resource.overflow.queue.entries", 0), ("resource.overflow.queue.x", 1)):
        scene = Scene()
        scene.judge.begins("ann", {"queue": {"maxEntries": 4}})
        scene.letters.append(Letter("ann", "m", CHANNEL, code))
        scene.says(None)
        assert len(scene.wrong()) == count


@pytest.mark.parametrize("options", [{"queue": {"maxEntries": 2}}, {"maxEntries": 2}])
def test_no_more_comes_at_once_than_a_receiver_has_room_for(options: Message) -> None:
    scene = Scene()
    scene.says(None)
    scene.judge.begins("joe", options)
    scene.judge.handed("joe", 2)
    assert scene.wrong() == []
    scene.judge.handed("joe", 3)
    assert scene.wrong() == ["S10: joe got 3 messages at 10.000, above 2"]


def test_what_is_due_later_must_not_come_earlier() -> None:
    for at, count in ((13.0, 0), (11.0, 1)):
        scene = Scene()
        scene.says(LATER, delay_ms=3000)
        scene.gets(at)
        scene.says(None)
        assert len(scene.wrong()) == count


@pytest.mark.parametrize(
    ("fault", "begins_at", "is_excused"),
    [
        ("kill_server", 11.0, True),
        ("kill_server", 1.0, False),
        ("restart", 11.0, False),
        ("hold_connection", 11.0, False),
        ("slow_server", 11.0, False),
    ],
)
def test_what_is_due_later_comes_earlier_if_its_server_was_killed_since_it_came(
    fault: str, begins_at: float, *, is_excused: bool
) -> None:
    scene = Scene()
    scene.excuses.add(fault, begins_at, 0.5)
    scene.now = 40.0
    scene.says(LATER, delay_ms=600)
    scene.gets(40.2)
    scene.says(None)
    assert (scene.wrong() == []) is is_excused


def test_what_is_due_later_comes_when_it_is_due_unless_its_receiver_is_away() -> None:
    for is_away in (False, True):
        scene = Scene()
        scene.says(LATER, delay_ms=3000)
        if is_away:
            scene.judge.is_away("joe")
        scene.gets(30.0)
        scene.says(None)
        assert len(scene.wrong()) == (not is_away)


def test_nothing_new_comes_ahead_of_what_is_due_later() -> None:
    scene = Scene()
    scene.published["n"] = Publish("p", 2, CHANNEL, 9.0, is_durable=False)
    scene.says(LATER, delay_ms=100)
    scene.gets(10.5, "n")
    scene.gets(11.0)
    scene.says(None)
    assert len(scene.wrong()) == 1


@pytest.mark.parametrize("is_durable", [True, False])
def test_what_a_killed_server_took_with_it_is_not_waited_for(*, is_durable: bool) -> None:
    scene = Scene(is_durable=is_durable)
    scene.published["n"] = Publish("p", 2, CHANNEL, 9.0, is_durable=False)
    scene.excuses.add("kill_server", 15.0, 1.0)
    scene.now = 40.0
    scene.says(LATER, delay_ms=100)
    scene.gets(40.1, "n")
    found = [each for each in scene.wrong() if "ahead" in each]
    assert len(found) == is_durable


def test_what_was_settled_comes_again_only_if_its_server_was_killed() -> None:
    scene = Scene()
    scene.says(None)
    scene.gets(12.0)
    scene.says(None)
    assert len(scene.wrong()) == 1
    scene.excuses.add("kill_server", 11.0, 1.0)
    assert scene.wrong() == []


def test_a_dead_message_comes_again_only_if_a_killed_server_had_not_heard_of_its_refusal() -> None:
    for is_refused_again in (False, True):
        scene = Scene()
        scene.excuses.add("kill_server", 11.0, 1.0)
        scene.says(DEAD)
        scene.dies()
        scene.gets(12.0)
        if is_refused_again:
            scene.says(DEAD)
        assert len(scene.wrong()) == (not is_refused_again)


def test_a_refusal_leaves_no_letter_of_what_a_killed_server_took_with_it_or_finds_over() -> None:
    for scene in (Scene(lifetime_s=1.0), Scene(is_durable=False)):
        scene.says(DEAD)
        assert any("it is not dead" in each for each in scene.wrong())
        scene.excuses.add("kill_server", 9.5, 1.0)
        assert scene.wrong() == []


def test_nobody_gets_what_is_over() -> None:
    scene = Scene(lifetime_s=1.0)
    scene.gets(20.0, "n")
    scene.says(None)
    scene.published["n"] = scene.published["m"]
    assert len(scene.wrong()) == 1
