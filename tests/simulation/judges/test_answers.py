"""Which answers are due, and which no fault excuses."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.simulation.judges.answers import Answers
from tests.simulation.judges.excuses import Excuses
from tests.simulation.judges.scenes import facts_at
from tests.simulation.session import CONNECT, HANDSHAKE, SUBSCRIBE, Attempt
from tests.simulation.talker import Denied, Lost

SERVER: Any = SimpleNamespace(host="first", thawed_at=0.0)
GONE = "402::session_unknown"


class Scene:
    """A client that begins a session at 10, and is told something at 12."""

    def __init__(self, name: str = "", *, has_shards: bool = True) -> None:
        self.now = 10.0
        self.name = name
        self.excuses = Excuses()
        facts = facts_at(
            lambda: self.now, home_of=lambda _: SERVER, stands_by=lambda door: door == "aside"
        )
        self.answers = Answers(facts)
        self.answers.has_shards = has_shards
        self.answers.answered(self.asks(HANDSHAKE), {"clientId": "7"})
        self.now = 12.0

    def asks(self, channel: str = CONNECT, door: str = "first", **given: Any) -> Attempt:
        id = "" if channel == HANDSHAKE else "7"
        attempt = Attempt(self.name, id, channel, door, self.now, **given)
        self.answers.begins(attempt)
        return attempt

    def loses(self, fault: str, door: str = "first") -> list[str]:
        self.answers.failed(self.asks(door=door), Lost(fault))
        return self.answers.violations(self.excuses)

    def hears(self, fault: str, door: str = "first", channel: str = CONNECT) -> list[str]:
        self.answers.failed(self.asks(channel, door), Denied({"error": fault}))
        return self.answers.violations(self.excuses)


@pytest.mark.parametrize(("ended_before_s", "is_excused"), [(0.0, False), (20.0, True)])
def test_a_kept_connection_may_have_been_lost_with_the_fault_that_ended_it(
    ended_before_s: float, is_excused: bool
) -> None:
    scene = Scene()
    scene.excuses.add("kill_server", 11.0, 2.0)
    scene.now = 34.0
    lost = Lost("IncompleteReadError")
    lost.ended_before_s = ended_before_s
    scene.answers.failed(scene.asks(), lost)
    assert (scene.answers.violations(scene.excuses) == []) is is_excused


def test_a_living_session_is_never_unknown() -> None:
    assert len(Scene().hears(GONE)) == 1


@pytest.mark.parametrize(("fault", "is_excused"), [("kill_server", True), ("freeze_server", False)])
def test_a_session_without_a_name_ends_with_its_server_and_not_while_that_is_away(
    fault: str, is_excused: bool
) -> None:
    scene = Scene()
    scene.excuses.add(fault, 11.0, 2.0)
    assert (scene.hears(GONE) == []) is is_excused
    assert scene.excuses.used == ({f"answer 402: {fault}": 1} if is_excused else {})


@pytest.mark.parametrize("stop", ["stop_supervisor", "kill_supervisor", "terminate_server"])
@pytest.mark.parametrize(("store_is_back_at", "is_excused"), [(1.0, False), (11.0, True)])
def test_a_server_that_stops_in_order_gives_sessions_to_the_next_one_if_it_has_its_store(
    store_is_back_at: float, is_excused: bool, stop: str
) -> None:
    scene = Scene()
    scene.excuses.add("end_store", 0.0, store_is_back_at)
    scene.excuses.add(stop, 10.5, 1.0)
    assert (scene.hears(GONE) == []) is is_excused


@pytest.mark.parametrize(
    ("faults", "door", "is_excused"),
    [
        (["freeze_server"], "first", False),
        # One of them may have gone on for a moment.
        (["freeze_server", "freeze_server"], "first", True),
        (["freeze_server", "part_from_store"], "first", True),
        # It may be the one at which the client has asked.
        (["freeze_server"], "second", True),
    ],
)
def test_a_shard_that_is_frozen_keeps_nobody_from_subscribing_elsewhere(
    faults: list[str], door: str, is_excused: bool
) -> None:
    scene = Scene("joe/1")
    for fault in faults:
        scene.excuses.add(fault, 11.0, 2.0)
    refusal = "503:resource.cluster.notAvailable:shard_unavailable"
    assert (scene.hears(refusal, door, SUBSCRIBE) == []) is is_excused


def test_a_session_with_a_name_outlives_its_server() -> None:
    scene = Scene("joe/1")
    scene.now = 20.0
    scene.answers.answered(scene.asks(), {})
    scene.excuses.add("kill_server", 15.0, 2.0)
    assert len(scene.hears(GONE)) == 1


def test_a_session_that_another_client_has_claimed_is_over() -> None:
    scene = Scene("joe/1")
    scene.now = 11.0
    scene.asks(HANDSHAKE)
    scene.now = 12.0
    assert scene.hears(GONE) == []


def test_a_session_that_another_client_claims_later_or_in_vain_was_not_over() -> None:
    scene = Scene("joe/1")
    scene.asks(HANDSHAKE, due="session_name_denied")
    assert len(scene.hears(GONE)) == 1
    scene.now = 13.0
    scene.asks(HANDSHAKE)
    assert len(scene.answers.violations(scene.excuses)) == 1


@pytest.mark.parametrize(("ends_at", "is_over"), [(11.9, True), (12.1, False)])
def test_a_session_is_over_when_its_login_has_ended(ends_at: float, is_over: bool) -> None:
    scene = Scene("joe/1")
    scene.answers.answered(scene.asks(SUBSCRIBE, login_ends_at=ends_at), {})
    assert (scene.hears(GONE) == []) is is_over


@pytest.mark.parametrize(("fault", "is_excused"), [("kill_server", False), ("set_clock", True)])
def test_a_good_token_is_refused_only_while_a_clock_is_wrong(fault: str, is_excused: bool) -> None:
    scene = Scene()
    scene.excuses.add(fault, 11.0, 2.0)
    denied = Denied({"error": "403::handshake_denied"})
    scene.answers.failed(scene.asks(HANDSHAKE, login_ends_at=20.0), denied)
    assert (scene.answers.violations(scene.excuses) == []) is is_excused


@pytest.mark.parametrize(("due", "is_excused"), [("", False), ("handshake_denied", True)])
def test_a_login_that_is_refused_may_take_longer_than_its_server_stays(
    due: str, is_excused: bool
) -> None:
    scene = Scene()
    scene.excuses.add("restart", 11.0, 1.0)
    busy = Denied({"error": "503::server_busy"})
    scene.answers.failed(scene.asks(HANDSHAKE, due=due), busy)
    assert (scene.answers.violations(scene.excuses) == []) is is_excused


@pytest.mark.parametrize(
    ("tries", "since", "is_excused"), [(3, 12.0, False), (4, 12.0, True), (4, 80.0, False)]
)
def test_a_stranger_waits_only_behind_some_wrong_tokens(
    tries: int, since: float, is_excused: bool
) -> None:
    scene = Scene()
    wrong = Denied({"error": "403:no_login:handshake_denied"})
    for _ in range(tries):
        scene.answers.failed(scene.asks(HANDSHAKE, due="handshake_denied"), wrong)
    scene.now = since + 8.0
    busy = Denied({"error": "503::server_busy"})
    scene.answers.failed(scene.asks(HANDSHAKE, due="handshake_denied"), busy)
    assert (scene.answers.violations(scene.excuses) == []) is is_excused


def test_a_session_is_over_behind_a_long_silence() -> None:
    scene = Scene()
    scene.now = 25.0
    assert scene.hears(GONE) == []


@pytest.mark.parametrize("fault", ["kill_server", "part_from_store"])
def test_no_fault_excuses_an_internal_error(fault: str) -> None:
    scene = Scene()
    scene.excuses.add(fault, 11.0, 2.0)
    assert len(scene.hears("500::server_fault")) == 1
    scene.answers.failed(scene.asks(), Lost("status 500"))
    assert len(scene.answers.violations(scene.excuses)) == 2


def test_a_server_is_unavailable_while_something_is_wrong_or_if_it_stands_by() -> None:
    assert len(Scene().hears("503::store_unavailable")) == 1
    assert Scene().hears("503::server_busy", door="aside") == []
    scene = Scene()
    scene.excuses.add("freeze_store", 11.0, 2.0)
    assert scene.hears("503::store_unavailable") == []


def test_a_server_that_stands_by_need_not_run_and_one_that_speaks_must() -> None:
    assert Scene().loses("ConnectionRefusedError", door="aside") == []
    assert len(Scene().loses("ConnectionResetError", door="aside")) == 1
    assert len(Scene().loses("ConnectionRefusedError")) == 1


@pytest.mark.parametrize("fault", ["403::publish_denied", "400::request_malformed"])
def test_no_fault_excuses_that_a_client_is_denied_what_it_may_do(fault: str) -> None:
    scene = Scene()
    scene.excuses.add("kill_server", 11.0, 2.0)
    assert len(scene.hears(fault)) == 1


def test_a_connect_is_superseded_only_if_its_client_has_given_it_up() -> None:
    scene = Scene()
    assert len(scene.hears("409::connect_superseded")) == 1
    scene.excuses.add("slow_network", 11.0, 2.0)
    assert scene.answers.violations(scene.excuses) == []


def test_a_restart_costs_no_answer_but_may_cost_a_connection() -> None:
    scene = Scene()
    scene.excuses.add("restart", 11.0, 0.0)
    assert len(scene.hears("503::store_unavailable")) == 1
    assert len(scene.hears(GONE)) == 2
    scene.answers.failed(scene.asks(), Lost("ConnectionResetError"))
    assert len(scene.answers.violations(scene.excuses)) == 2


def test_no_answer_at_all_needs_an_excuse() -> None:
    scene = Scene()
    scene.answers.failed(scene.asks(), Lost("TimeoutError"))
    assert len(scene.answers.violations(scene.excuses)) == 1


def test_each_limit_answers_with_its_error_and_lets_nothing_pass() -> None:
    scene = Scene()
    attempt = scene.asks()._replace(due="message_too_large")
    scene.answers.failed(attempt, Denied({"error": "413::message_too_large"}))
    assert scene.answers.violations(scene.excuses) == []
    scene.answers.failed(attempt, Denied({"error": "413::subscriptions_exceeded"}))
    assert len(scene.answers.violations(scene.excuses)) == 1
    scene.answers.answered(attempt, {})
    assert len(scene.answers.violations(scene.excuses)) == 2
    assert scene.excuses.judged["limit message_too_large"] == 6


@pytest.mark.parametrize(
    ("due", "is_excused"), [("requests_exceeded", True), ("sessions_exceeded", False)]
)
def test_what_counts_for_a_limit_may_have_ended_with_a_server(
    due: str, *, is_excused: bool
) -> None:
    scene = Scene()
    scene.answers.answered(scene.asks()._replace(due=due), {})
    assert len(scene.answers.violations(scene.excuses)) == 1
    scene.excuses.add("kill_server", 5.0, 1.0)
    assert (scene.answers.violations(scene.excuses) == []) is is_excused
