"""Requests that are work: one session answers, wherever it, the requester and the queue are."""

from typing import Any

import pytest

from tests.unit.bayeux.far_work.working import JOBS, RULES, balances, settled, waiting
from tests.unit.bayeux.harness import Json
from tests.unit.bayeux.publish.asking import asking, comes, comes_back, guest, said
from tests.unit.bayeux.publish.shards import World
from tests.unit.extensions.requesting import Person

# Their homes are the third, the second and the first shard; the second one has the queue.
PEOPLE = ("bob/1", "ann/1", "carl/1")
REFUSED = f"500:{JOBS},user.update.error:responder_error"
DEAD = f"500:{JOBS},user.update.deadMessage:responder_error"


@pytest.fixture
def world() -> World:
    world = asking(3, **RULES)
    settled(world)
    return world


def taker(world: World, name: str) -> Person:
    person = comes(world, name)
    person.subscribe(JOBS)
    settled(world)
    return person


def asked(world: World, person: Person, **fields: Any) -> Json:
    """The reply to the publish of a request."""
    ext = {"replyTo": person.address(), "timeout": 5_000, **fields}
    waiting = person.publish(JOBS, "?", ext=ext)
    person.server.turn()
    world.read_all()
    person.server.turn()
    return person._reply(waiting)


def answered(world: World, person: Person, event: Json, data: Any = "!") -> Json:
    person.heard()
    waiting = person.publish(event["ext"]["replyTo"], data)
    world.read_all()
    person.server.turn()
    return person._reply(waiting)


def judged(world: World, person: Person, event: Json, code: str = "user.update.error") -> None:
    verdict = {"seq": event["ext"]["delivery"]["seq"], "errorCode": code}
    person.connect(ext={"ack": 0, "delivery": {"verdicts": [verdict]}})
    person.server.turn()
    world.read_all()
    person.hear()


def heard(world: World, person: Person) -> list[Any]:
    world.read_all()
    return [said(event) for event in person.heard()]


def outstanding(world: World) -> int:
    return sum(each.server.bayeux.state.requests.outstanding for each in world.shards)


@pytest.mark.parametrize("name", PEOPLE)
@pytest.mark.parametrize("shard", [0, 1, 2])
@pytest.mark.parametrize("mode", ["first", "all", "one"])
def test_a_session_of_any_shard_answers(world: World, name: str, shard: int, mode: str) -> None:
    requester, worker = guest(world, shard), taker(world, name)
    worker.server.advance(0.5)
    assert asked(world, requester, request=mode)["successful"]
    event = worker.last()
    assert 4_000 < event["ext"]["timeout"] <= 5_000
    assert answered(world, worker, event)["successful"]
    more = [{"replies": 1, "missing": 0}] if mode == "all" else []
    assert [each for each in heard(world, requester) if mode != "all" or each == "!"] == ["!"]
    assert outstanding(world) in (0, len(more))
    assert answered(world, worker, event)["error"].endswith(":duplicate_reply")
    assert balances(world)


@pytest.mark.parametrize("name", PEOPLE)
@pytest.mark.parametrize("shard", [0, 2])
def test_a_request_waits_at_home_for_a_session_of_any_shard(
    world: World, name: str, shard: int
) -> None:
    requester = guest(world, shard)
    assert asked(world, requester)["successful"]
    assert heard(world, requester) == []
    worker = taker(world, name)
    assert answered(world, worker, worker.last())["successful"]
    assert heard(world, requester) == ["!"]


@pytest.mark.parametrize("shard", [0, 1, 2])
def test_another_session_answers_what_one_has_refused(world: World, shard: int) -> None:
    requester, first = guest(world, shard), taker(world, "bob/1")
    asked(world, requester)
    event = first.last()
    others = [taker(world, name) for name in PEOPLE[1:]]
    judged(world, first, event)
    assert heard(world, requester) == []
    [found] = [(each, event) for each in others for event in each.heard()]
    assert answered(world, *found)["successful"]
    assert heard(world, requester) == ["!"]


@pytest.mark.parametrize("shard", [0, 1, 2])
@pytest.mark.parametrize("name", PEOPLE)
def test_the_requester_hears_that_nobody_does_the_work(world: World, shard: int, name: str) -> None:
    requester, worker = guest(world, shard), taker(world, name)
    for code, error in (("user.update.error", REFUSED), ("user.update.deadMessage", DEAD)):
        asked(world, requester)
        judged(world, worker, worker.last(), code)
        assert heard(world, requester) == [error]
    assert outstanding(world) == 0


@pytest.mark.parametrize("shard", [0, 1, 2])
def test_work_of_a_session_that_ends_goes_to_another(world: World, shard: int) -> None:
    requester, worker = guest(world, shard), taker(world, "bob/1")
    asked(world, requester)
    worker.last()
    worker.disconnect()
    worker.server.turn()
    world.read_all()
    assert heard(world, requester) == []
    carl = taker(world, "carl/1")
    assert answered(world, carl, carl.last())["successful"]
    assert heard(world, requester) == ["!"]


@pytest.mark.parametrize("requester", PEOPLE)
@pytest.mark.parametrize("subject", ["ann", "bob", "carl"])
def test_work_that_a_session_has_left_is_answered_by_the_next_one_of_its_name(
    world: World, requester: str, subject: str
) -> None:
    person, worker = comes(world, requester), taker(world, f"{subject}/2")
    asked(world, person)
    worker.last()
    worker.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    worker.server.turn()
    settled(world)
    worker = taker(world, f"{subject}/2")
    assert answered(world, worker, worker.last())["successful"]
    assert heard(world, person) == ["!"]


@pytest.mark.parametrize("shard", [0, 2])
def test_a_listener_that_never_answers_gets_no_request(world: World, shard: int) -> None:
    requester, watcher = guest(world, shard), comes(world, "bob/1")
    qos = {"delivery": {"responds": False}}
    watcher.send({"channel": "/meta/subscribe", "subscription": "/**", "ext": qos})
    watcher.server.turn()
    watcher.hear()
    settled(world)
    asked(world, requester)
    assert watcher.heard() == []
    watcher.send({"channel": "/meta/subscribe", "subscription": "/**"})
    watcher.connect(ext={"ack": 0})
    watcher.server.turn()
    world.read_all()
    assert [event["data"] for event in watcher.heard() if "data" in event] == ["?"]


@pytest.mark.parametrize("shard", [0, 1, 2])
def test_operators_discard_a_request_and_its_requester_hears_so(world: World, shard: int) -> None:
    requester = guest(world, shard)
    asked(world, requester)
    server = world.shards[1].server
    queue = server.bayeux.state.work.of(JOBS)
    assert queue is not None
    assert server.bayeux.life.clear(queue) == 1
    server.turn()
    assert heard(world, requester) == [f"404:{JOBS}:no_responders"]
    assert waiting(world) == []


def test_a_full_queue_refuses_requests_of_all_shards() -> None:
    world = asking(3, max_work_queue=1, **RULES)
    settled(world)
    people = [guest(world, shard) for shard in (0, 2)]
    replies = [asked(world, person) for person in people]
    assert [reply["successful"] for reply in replies] == [True, False]
    assert "destination_full" in replies[1]["error"]
    assert outstanding(world) == 1


@pytest.mark.parametrize("name", PEOPLE)
@pytest.mark.parametrize("shard", [0, 2])
def test_a_deadline_ends_a_request_wherever_its_work_is(
    world: World, shard: int, name: str
) -> None:
    requester, worker = guest(world, shard), taker(world, name)
    asked(world, requester)
    event = worker.last()
    for each in world.shards:
        each.server.advance(6)
    assert heard(world, requester) == [f"408:{JOBS}:timeout"]
    assert answered(world, worker, event)["error"].endswith(":late_reply")
    assert waiting(world) == []


def test_a_call_that_comes_behind_the_deadline_makes_no_work(world: World) -> None:
    requester = guest(world, 0)
    ext = {"replyTo": requester.address(), "timeout": 1_000}
    requester.publish(JOBS, "?", ext=ext)
    requester.server.turn()
    for each in world.shards:
        each.server.advance(2)
    world.read_all()
    requester.server.turn()
    came = requester.hear()
    [reply] = [each for each in came if "successful" in each]
    # It has one outcome, so the publish must not be refused.
    assert "unknown" in reply["error"]
    assert [said(each) for each in came if "data" in each] == [f"408:{JOBS}:timeout"]
    assert waiting(world) == []
    assert all(each.keeper.inbox == {} for each in world.shards)


@pytest.mark.parametrize("killed", [0, 1, 2])
@pytest.mark.parametrize("is_restart", [True, False])
def test_a_request_goes_on_if_a_shard_is_killed(
    world: World, killed: int, is_restart: bool
) -> None:
    requester, worker = comes(world, "carl/1"), taker(world, "bob/1")
    assert asked(world, requester)["successful"]
    event = worker.last()
    if is_restart:
        world.shards[killed].restart()
    else:
        world.shards[killed].kill()
    if killed == 0:
        requester = comes_back(world, "carl/1", requester)
    if killed == 2:
        worker = comes_back(world, "bob/1", worker)
    settled(world)
    assert heard(world, requester) == []
    assert answered(world, worker, event)["successful"]
    assert heard(world, requester) == ["!"]
    assert outstanding(world) == 0


def test_a_request_has_its_outcome_if_its_shard_is_killed_before_the_home_has_answered(
    world: World,
) -> None:
    requester, worker = comes(world, "carl/1"), taker(world, "bob/1")
    key = {"delivery": {"key": "once"}}
    requester.publish(JOBS, "?", ext={"replyTo": requester.address(), "timeout": 5_000, **key})
    requester.server.turn()
    world.shards[0].kill()
    requester = comes_back(world, "carl/1", requester)
    settled(world)
    assert asked(world, requester, **key)["successful"]
    assert answered(world, worker, worker.last())["successful"]
    assert heard(world, requester) == ["!"]
    assert outstanding(world) == 0


def test_work_stays_behind_a_request_that_is_stored_first(world: World) -> None:
    requester, worker = comes(world, "carl/1"), taker(world, "bob/1")
    requester.publish(JOBS, 0, ext={"replyTo": requester.address(), "timeout": 5_000})
    for number in (1, 2):
        requester.publish(JOBS, number)
    requester.server.turn()
    world.read_all()
    assert [event["data"] for event in worker.heard()] == [0, 1, 2]
