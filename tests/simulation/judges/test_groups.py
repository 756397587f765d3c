"""What the judges of groups of clients report, each broken promise planted by hand."""

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.store.format.keys import RedisKeys
from tests.simulation.asking import Outcomes
from tests.simulation.books import Books
from tests.simulation.erasing import CHANNEL, ONCE, Erasures
from tests.simulation.histories import CHANNELS, Histories, Visit
from tests.simulation.jobs import CHANNEL as JOBS
from tests.simulation.jobs import Jobs
from tests.simulation.members import Attendance
from tests.simulation.oracle import Publish
from tests.simulation.store.keyspace import Hash, Keyspace
from tests.simulation.workers import Hand

DEAD = "user.update.error"


# Histories


class Reading:
    """A reader of two messages."""

    def __init__(self) -> None:
        self.published = {
            key: Publish("p", n, CHANNELS[0], n, id=f"{n}", accepted_at=n + 0.5)
            for n, key in enumerate("ab", 1)
        }
        self.judge = Histories(self.published, lambda _: False, lambda _: False)
        self.judge.expects("joe")
        self.visit = Visit("joe", may_repeat=False)

    def gets(self, key: str, place: int) -> None:
        self.judge.received(self.visit, CHANNELS[0], key, place)

    def wrong(self, since: float = 5.0) -> list[str]:
        self.judge.told("joe", 6.0)
        return self.judge.violations(since, trusts_clocks=True)


def test_a_reader_has_each_message_of_a_history_once_and_in_order() -> None:
    scene = Reading()
    scene.gets("a", 1)
    assert scene.wrong() == ["histories: joe lacks b, accepted as 2"]
    scene.gets("b", 2)
    assert scene.wrong() == []
    scene.gets("b", 2)
    assert scene.wrong() == ["histories: joe got b again"]


def test_a_message_has_one_place_in_a_history_behind_those_before_it() -> None:
    scene = Reading()
    scene.gets("b", 2)
    scene.gets("a", 1)
    assert scene.wrong() == ["histories: joe got a behind a later one"]
    scene.gets("a", 3)
    assert scene.wrong()[1:] == ["histories: a is at several places"]


def test_a_reader_is_told_where_it_is() -> None:
    scene = Reading()
    scene.gets("a", 1)
    scene.gets("b", 2)
    assert scene.wrong(since=7.0) == ["liveness: joe gets no cursor"]


# Requests


class Asking:
    """A request of one client, which two others may answer."""

    def __init__(self, mode: str) -> None:
        self.now = 1.0
        self.judge = Outcomes(lambda: self.now, lambda *_: False)
        self.judge.responds("ann")
        self.now = 2.0
        self.judge.asks("joe 1", mode, 8_000)
        self.judge.accepted("joe 1")

    def answers(self, responder: str, *, is_told: bool = True) -> None:
        self.judge.replied("joe 1", responder, is_clear=True)
        if is_told:
            self.hears(responder)

    def hears(self, what: str, *, id: str = "", is_reply: bool = True) -> None:
        self.judge.ended("joe 1", id or what, what, is_reply=is_reply)

    def wrong(self) -> list[str]:
        return [
            each.removeprefix("requests: joe 1 ")
            for each in self.judge.violations(trusts_clocks=True)
        ]


def test_a_request_has_one_outcome() -> None:
    scene = Asking("first")
    assert scene.wrong() == ["has no outcome"]
    scene.answers("ann")
    assert scene.wrong() == []
    scene.hears("408::request_timeout", is_reply=False)
    assert scene.wrong() == ["has several outcomes: ['ann', '408::request_timeout']"]
    scene = Asking("first")
    scene.answers("ann")
    scene.answers("bob", is_told=False)
    assert scene.wrong()[0] == "has several accepted replies: ['ann', 'bob']"


def test_a_request_to_all_has_all_replies_once_and_one_end() -> None:
    scene = Asking("all")
    scene.answers("ann")
    scene.answers("bob", is_told=False)
    scene.hears("408::request_timeout", is_reply=False)
    assert scene.wrong() == ["lacks the accepted replies of ['bob']"]
    scene.hears("bob")
    assert scene.wrong() == []
    scene.hears("bob", id="again")
    assert [each[:18] for each in scene.wrong()] == ["has a reply twice:"]
    scene.hears("410::late_reply", is_reply=False)
    assert "ends several times" in scene.wrong()[0]


def test_a_reply_that_was_refused_comes_to_nobody() -> None:
    scene = Asking("first")
    scene.hears("ann")
    assert scene.wrong() == ["has replies that were refused: ['ann']"]


def test_whoever_got_a_request_may_answer_it_and_whoever_is_there_gets_it() -> None:
    scene = Asking("first")
    scene.judge.refused("joe 1", "ann", "403::reply_denied")
    scene.hears("404::no_responders", is_reply=False)
    assert scene.wrong() == [
        "has no responders, although ann is one",
        "was handed to ['ann'], who must not reply",
    ]


# Presence


def test_watchers_know_in_the_end_who_is_there() -> None:
    oracle: Any = SimpleNamespace(may_have_forgotten=lambda *_: False)
    judge = Attendance(oracle)
    judge.expects_member("ann")
    judge.expects_watcher("joe")
    judge.stays("ann", "ann/1")
    judge.asked("joe", frozenset({"ann/1"}))
    judge.followed("joe", frozenset())
    wrong = ["presence: joe follows [], and there are ['ann/1']"]
    assert judge.violations(trusts_clocks=True) == wrong
    assert judge.violations(trusts_clocks=False) == []
    judge.followed("joe", frozenset({"ann/1"}))
    assert judge.violations(trusts_clocks=True) == []
    judge.stays("ann", "")
    assert len(judge.violations(trusts_clocks=True)) == 2


# Jobs


class Working:
    """A job that joe has got at 1."""

    def __init__(self) -> None:
        self.now = 1.0
        self.dead: list[SimpleNamespace] = []
        self.stored: list[str] = []
        oracle: Any = SimpleNamespace(
            now=lambda: self.now,
            published={"m": Publish("boss", 1, JOBS, 0.0, id="a-1")},
            may_be_gone=lambda _: False,
            may_have_lost=lambda *_: False,
            was_calm=lambda *_: True,
        )
        books: Any = SimpleNamespace(letters=lambda: self.dead, work=lambda: self.stored)
        self.judge = Jobs(oracle, books)
        self.gets("joe")

    def gets(self, worker: str, *, is_marked: bool = False) -> None:
        self.judge.taken(worker, Hand("m", 1, self.now), is_marked=is_marked)

    def ends(self, worker: str, verdict: str | None = None) -> None:
        hand = Hand("m", 1, self.now, verdict)
        self.judge.released(worker, [hand])
        self.judge.says(worker, [hand])
        self.judge.settled(worker, hand)

    def wrong(self) -> list[str]:
        return [each.removeprefix("jobs: ") for each in self.judge.violations()]


def test_a_job_is_in_one_hand_and_the_next_one_knows_of_it() -> None:
    scene = Working()
    scene.gets("ann")
    assert scene.wrong()[:2] == [
        "ann got m as if joe had not had it",
        "ann got m, which joe has in hand",
    ]


def test_a_job_that_is_done_or_refused_does_not_come_again() -> None:
    scene = Working()
    scene.ends("joe")
    scene.gets("ann", is_marked=True)
    assert scene.wrong() == ["ann got m, which joe has done"]
    scene = Working()
    scene.ends("joe", DEAD)
    scene.gets("joe", is_marked=True)
    scene.dead = [SimpleNamespace(key="m")]
    assert scene.wrong() == ["joe got m again, which it has refused"]


def test_a_job_ends_once_and_is_stored_no_more() -> None:
    scene = Working()
    scene.ends("joe")
    scene.stored = ["m"]
    assert scene.wrong() == ["m is still in a store"]
    scene.stored = []
    scene.dead = [SimpleNamespace(key="m")]
    assert scene.wrong() == [
        "m is dead, and nobody has refused it",
        "m is dead, and joe has done it",
    ]


# Topics


class Erasing:
    """A follower that has subscribed at 1, and a message that was published at 2."""

    def __init__(self) -> None:
        self.published = {"m": Publish("p", 1, CHANNEL, 2.0, id="1", accepted_at=2.5)}
        self.now, self.restarted_at = 0.9, 0.0
        oracle: Any = SimpleNamespace(
            now=lambda: self.now,
            published=self.published,
            may_have_lost=lambda *_: False,
            was_calm=lambda *_: True,
            has_restarted=lambda since, until: since < self.restarted_at < until,
        )
        self.judge = Erasures(oracle)
        self.judge.expects("joe")
        self.judge.asks("joe")
        self.judge.subscribed("joe")
        self.now = 3.0

    def erases(self, at: float) -> None:
        self.now = at
        erasure = self.judge.erases(CHANNEL, is_forced=False)
        self.now = at + 1.0
        self.judge.answered(erasure, is_done=True)

    def wrong(self, told: int | None = 1) -> list[str]:
        self.now = 50.0
        self.judge.told(49.0, told)
        return [each.removeprefix("topics: ") for each in self.judge.violations()]


def test_a_follower_has_all_that_came_before_an_erasure_and_hears_of_it() -> None:
    scene = Erasing()
    assert scene.wrong() == ["joe lacks m, accepted as 1 before any erasure"]
    scene.judge.heard("joe", "m")
    assert scene.wrong() == []
    scene.erases(5.0)
    assert scene.wrong() == ["joe does not hear of the erasure at 5.000"]


def test_a_follower_gets_nothing_behind_an_erasure_and_loses_one_subscription() -> None:
    scene = Erasing()
    scene.judge.heard("joe", "m")
    scene.erases(5.0)
    scene.published["n"] = Publish("p", 2, CHANNEL, 7.0, id="2", accepted_at=7.5)
    scene.judge.heard("joe", "n")
    scene.judge.ended("joe")
    scene.judge.ended("joe")
    wrong = scene.wrong(told=None)
    assert wrong[:2] == [
        "joe lost what it had not subscribed to",
        "joe got n, which came behind the erasure at 6.000",
    ]


def test_a_subscription_made_while_the_topic_was_erased_may_end_behind_the_event() -> None:
    scene = Erasing()
    scene.judge.heard("joe", "m")
    erasure = scene.judge.erases(CHANNEL, is_forced=False)
    scene.judge.ended("joe")
    scene.judge.asks("joe")
    scene.now = 4.0
    scene.judge.subscribed("joe")
    scene.judge.answered(erasure, is_done=True)
    # The event of that erasure, and then of another one.
    scene.judge.ended("joe")
    scene.judge.ended("joe")
    assert "joe lost what it had not subscribed to" not in scene.wrong(told=None)


def test_the_home_of_a_topic_knows_its_subscriptions() -> None:
    scene = Erasing()
    scene.judge.heard("joe", "m")
    assert scene.wrong(told=2) == [
        "there are 2 of 1 subscriptions",
        "the home knows 2 of 1 subscriptions",
    ]


def test_a_home_that_has_just_restarted_has_not_heard_yet_who_has_subscribed() -> None:
    scene = Erasing()
    scene.judge.heard("joe", "m")
    scene.restarted_at = 48.0
    assert scene.wrong(told=0) == ["the home knows 0 of 1 subscriptions"]


def test_a_topic_for_one_message_takes_no_second_one() -> None:
    scene = Erasing()
    scene.judge.heard("joe", "m")
    for n, key in enumerate("xy", 3):
        scene.published[key] = Publish("p", n, ONCE, n, id=key, accepted_at=n + 0.5)
    assert scene.wrong() == [f"y was accepted although {ONCE} had x"]


# Books


@pytest.mark.parametrize(("taken", "is_right"), [(b"9", True), (b"8", False)])
def test_what_a_shard_has_for_another_one_is_taken(*, taken: bytes, is_right: bool) -> None:
    stores = {RedisKeys("holdfast", shard).meta: Keyspace() for shard in range(2)}
    books = Books(lambda key: stores[key], 2)
    for shard, (meta, store) in enumerate(stores.items()):
        has_taken = taken if shard else b"9"
        store.data[meta.encode()] = Hash(
            {b"log": b"a 9", b"place %d" % (1 - shard): b"a " + has_taken}
        )
    found = books.unsettled()
    assert found == ([] if is_right else ["S9: shard 1 took 8 of 9 entries of 0"])
    keys = RedisKeys("holdfast", 1)
    stores[keys.meta].data[keys.inbox.encode()] = Hash({b"1": b"letter"})
    assert books.unsettled()[-1] == "liveness: shard 1 has not done 1 letters"
