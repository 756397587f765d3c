"""What may become of letters and receivers at the hands of an operator."""

from tests.simulation.books import Letter
from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.holds import ENDLESS
from tests.simulation.judges.operations import CHANNEL, STAND_IN, Found, Operations, Replay
from tests.simulation.judges.scenes import facts_at
from tests.simulation.oracle import Publish
from tests.simulation.workers import Hand

DEAD = "user.update.error"


class Scene:
    """A receiver that has subscribed at 1, refuses a message that it gets at 10, and has a letter.

    The letter is as the operator finds it.
    """

    def __init__(self, *, is_durable: bool = True, is_known: bool = True) -> None:
        self.now = 1.0
        self.is_standby = self.may_have_lost = False
        self.letters: list[Letter] = []
        self.excuses = Excuses()
        facts = facts_at(
            lambda: self.now,
            letters=lambda: self.letters,
            stands_by=lambda _: self.is_standby,
            may_have_lost=lambda *_: self.may_have_lost,
        )
        self.judge = Operations(facts)
        self.id = "1" if is_known else ""
        publish = Publish("p", 1, CHANNEL, 9.0, is_durable, id=self.id, accepted_at=9.1)
        self.published = {"m": publish}
        self.judge.subscribed("joe")
        self.gets(10.0)
        self.says(DEAD)
        self.dies()
        self.found = Found("letter 0", "joe", "1", 0)

    def publishes(self, key: str, at: float) -> None:
        publish = Publish("p", 2, CHANNEL, at, id=f"id of {key}", accepted_at=at + 0.1)
        self.published[key] = publish

    def gets(
        self,
        at: float,
        generation: int = 0,
        receiver: str = "joe",
        *,
        key: str = "m",
        letter: str = "",
    ) -> None:
        self.now = at
        id = self.id if key == "m" else key
        hand = Hand(key, int(at), at, generation=generation, id=id, letter=letter)
        self.judge.taken(receiver, hand, is_marked=False)

    def says(
        self, verdict: str | None, generation: int = 0, receiver: str = "joe", *, key: str = "m"
    ) -> None:
        hand = Hand(key, int(self.now), self.now, verdict, generation=generation)
        self.judge.says(receiver, [hand])
        self.judge.settled(receiver, hand)

    def is_ended(self, at: float) -> None:
        self.now = at
        self.judge.ends("joe")
        self.judge.ended("joe", is_sure=True)

    def dies(self, generation: int = 0) -> None:
        id = f"letter {generation}"
        self.letters.append(Letter("joe", "m", CHANNEL, DEAD, id, generation))

    def is_replayed(self, *, sent: int = 1, to: str = "", edited: str = "") -> Replay:
        self.now = 20.0
        replay = self.judge.replays([self.found], to=to, edited=edited)
        self.judge.begun(replay, "job", is_whole=True)
        if sent:
            self.letters[0] = self.letters[0]._replace(job="job")
        self.judge.over(replay, {"state": "done", "total": 1, "sent": sent, "skips": {}})
        return replay

    def wrong(self) -> list[str]:
        return self.judge.violations(self.published, self.excuses, have_one_clock=True)


def test_a_letter_is_an_end_and_a_letter_that_was_dropped_too() -> None:
    assert Scene().wrong() == []
    dropped = Scene()
    drop = dropped.judge.drops([dropped.found])
    dropped.judge.dropped(drop, 1, is_whole=True)
    assert len(dropped.wrong()) == 1
    dropped.letters.clear()
    assert dropped.wrong() == []


def test_a_letter_that_is_gone_is_missed_unless_a_failover_may_have_lost_it() -> None:
    scene = Scene()
    scene.letters.clear()
    assert any("is not dead" in each for each in scene.wrong())
    scene.may_have_lost = True
    assert scene.wrong() == []


def test_a_refusal_leaves_no_letter_of_a_plain_message_that_a_killed_server_took_with_it() -> None:
    scene = Scene(is_durable=False)
    scene.letters.clear()
    assert any("is not dead" in each for each in scene.wrong())
    scene.excuses.add("kill_server", 9.5, 1.0)
    assert scene.wrong() == []


def test_a_letter_that_was_replayed_comes_and_ends_once_more() -> None:
    scene = Scene()
    scene.is_replayed()
    assert len(scene.wrong()) == 1
    scene.gets(21.0, 1)
    scene.says(None, 1)
    assert scene.wrong() == []


def test_a_letter_that_was_replayed_may_be_refused_again() -> None:
    scene = Scene()
    scene.is_replayed()
    scene.gets(21.0, 1)
    scene.says(DEAD, 1)
    assert len(scene.wrong()) == 2
    scene.dies(1)
    assert scene.wrong() == []


def test_what_nobody_has_replayed_for_a_receiver_does_not_come_to_it() -> None:
    scene = Scene()
    scene.gets(21.0, 1)
    assert len(scene.wrong()) == 1
    other = Scene()
    other.is_replayed()
    other.gets(21.0, 1)
    other.says(None, 1)
    other.gets(22.0, 1, "ann")
    assert len(other.wrong()) == 1


def test_a_replayed_letter_of_a_message_without_a_known_id_may_have_been_dropped() -> None:
    for is_known, count in ((True, 1), (False, 0)):
        scene = Scene(is_known=is_known)
        scene.is_replayed()
        assert len(scene.wrong()) == count


def test_a_replay_takes_all_its_letters_and_says_so() -> None:
    scene = Scene()
    scene.is_replayed(sent=0)
    assert len(scene.wrong()) == 1


def test_a_replay_must_end() -> None:
    scene = Scene()
    scene.judge.begun(scene.judge.replays([scene.found]), "job", is_whole=True)
    assert len(scene.wrong()) == 1


def test_a_replay_may_be_unknown_only_if_the_store_may_have_lost_it() -> None:
    scene = Scene()
    replay = scene.judge.replays([scene.found])
    scene.judge.begun(replay, "job", is_whole=True)
    asked = scene.judge.asks("10.0.0.1", "GET /replays/job")
    scene.judge.failed(asked, "404:user.oid.unknown")
    scene.judge.gone(replay)
    assert len(scene.wrong()) == 1
    scene.may_have_lost = True
    assert scene.wrong() == []


def test_a_letter_that_is_sent_on_comes_to_whom_it_was_sent_and_not_to_its_receiver() -> None:
    scene = Scene()
    scene.is_replayed(to=STAND_IN)
    scene.gets(21.0, 1, STAND_IN)
    scene.says(None, 1, STAND_IN)
    assert scene.wrong() == []
    scene.gets(22.0, 1)
    assert scene.wrong() == ["operations: joe got m, which nobody has replayed for it"]


def test_a_letter_that_is_sent_on_must_come_there() -> None:
    scene = Scene()
    scene.is_replayed(to=STAND_IN)
    assert scene.wrong() == [f"operations: m, replayed 1 times, has no end at {STAND_IN}"]


def test_a_letter_that_moved_to_a_shard_that_has_not_begun_the_replay_stays_there() -> None:
    scene = Scene()
    replay = scene.is_replayed(to=STAND_IN)
    scene.letters[0] = scene.letters[0]._replace(is_new=True)
    assert scene.wrong() == [f"operations: m, replayed 1 times, has no end at {STAND_IN}"]
    scene.judge.begun(replay, "job", is_whole=False)
    assert scene.wrong() == []


def test_a_letter_with_other_data_comes_with_them_and_names_itself() -> None:
    scene = Scene()
    scene.is_replayed(edited="new")
    assert scene.wrong() == ["operations: new, replayed 1 times, has no end at joe"]
    scene.gets(21.0, 1, key="new", letter="letter 0")
    scene.says(None, 1, key="new")
    assert scene.wrong() == []
    scene.gets(22.0, 1)
    assert scene.wrong() == ["operations: joe got m, which nobody has replayed for it"]


def test_a_message_that_names_another_letter_is_reported() -> None:
    scene = Scene()
    scene.is_replayed(edited="new")
    scene.gets(21.0, 1, key="new", letter="letter 7")
    scene.says(None, 1, key="new")
    assert scene.wrong() == ["operations: new says that it was letter letter 7"]


def test_the_queue_of_a_session_that_is_ended_becomes_letters() -> None:
    scene = Scene()
    scene.publishes("queued", 12.0)
    scene.is_ended(13.0)
    scene.publishes("later", 14.0)
    assert scene.wrong() == ["operations: queued, replayed 0 times, has no end at joe"]
    scene.letters.append(Letter("joe", "queued", CHANNEL, "communication.noConnection.dead"))
    assert scene.wrong() == []
    scene.now = 15.0
    scene.judge.subscribed("joe")
    scene.publishes("anew", 16.0)
    assert scene.wrong() == ["operations: anew, replayed 0 times, has no end at joe"]


def test_a_letter_of_an_ended_session_needs_an_operator_who_has_ended_it() -> None:
    scene = Scene()
    scene.publishes("queued", 12.0)
    scene.letters.append(Letter("joe", "queued", CHANNEL, "communication.noConnection.dead"))
    assert len(scene.wrong()) == 1


def test_an_operator_is_told_that_a_session_is_unknown_only_behind_its_end() -> None:
    scene = Scene()
    scene.judge.failed(scene.judge.asks("10.0.0.1", "GET /sessions/joe/1"), "404:user")
    assert len(scene.wrong()) == 1
    other = Scene()
    other.is_ended(13.0)
    other.judge.failed(other.judge.asks("10.0.0.1", "GET /sessions/joe/1"), "404:user")
    assert other.wrong() == []
    assert other.judge.has_ended("joe/1", 12.0, 20.0)
    assert not other.judge.has_ended("joe/1", 1.0, 12.0)


def test_nobody_is_held_back_in_the_end() -> None:
    scene = Scene()
    scene.judge.holds.asks("joe", ENDLESS)
    assert len(scene.wrong()) == 1


def test_an_operator_is_refused_only_in_trouble() -> None:
    scene = Scene()
    for said in ("lost: TimeoutError", "503:resource.db.unavailable", "401:user.security"):
        scene.judge.failed(scene.judge.asks("10.0.0.1", "GET /dead-letters"), said)
    assert len(scene.wrong()) == 3
    scene.excuses.add("kill_server", scene.now, 1.0)
    assert len(scene.wrong()) == 1


def test_a_standby_refuses_operators_whatever_goes_wrong() -> None:
    scene = Scene()
    scene.is_standby = True
    for said in ("lost: ConnectionRefusedError", "503:resource.temporary.unavailable"):
        scene.judge.failed(scene.judge.asks("10.0.0.2", "GET /dead-letters"), said)
    assert scene.wrong() == []
