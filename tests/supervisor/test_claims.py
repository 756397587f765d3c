"""The servers of a host of several: one claims shards, and each claimed shard has one."""

import json
import os
import signal
import time

import pytest

from tests.supervisor.stage import LIMIT_S, Stage, until

pytestmark = pytest.mark.slow  # each starts several processes

# Of six shards, those that this host has at first: their places are 2 and 5.
CLAIMED = [1, 4]
ALL_SERVE = "has [1, 4] serving [1, 4]"


@pytest.fixture
def host(stage: Stage) -> Stage:
    """A stage on which two shards are served."""
    return begun(stage)


def begun(stage: Stage, **plan: object) -> Stage:
    stage.plan(shards=6, claims=CLAIMED, **plan)
    stage.start_and_wait()
    until(lambda: ALL_SERVE in stage.notes())
    return stage


def claim_less(stage: Stage, *claims: int, **plan: object) -> None:
    """Have fewer shards claimed, and return when the supervisor has heard all earlier claims.

    One that it hears after the server of a shard has lost it starts another one.
    """
    stage.plan(shards=6, claims=[*claims], **plan)
    until(lambda: _last(stage, "claims ") == f"claims {[*claims]}")
    assert "failed" in stage.ask(do="nothing")[-1]


def pids(stage: Stage, *places: int) -> dict[int, int]:
    """The server of each of these places, all of which live and accept."""
    found: dict[int, int] = {}

    def are_serving() -> bool:
        for place in places:
            found[place] = json.loads((stage.home / f"serving.{place}").read_text())["pid"]
        return {*found.values()} <= {*stage.family()}

    until(are_serving)
    return found


def last_had(stage: Stage) -> str:
    """What the server that claims shards was told last."""
    return _last(stage, "has ")


def _last(stage: Stage, beginning: str) -> str:
    return [each for each in stage.notes() if each.startswith(beginning)][-1]


def started(stage: Stage) -> int:
    return sum(each.startswith("started") for each in stage.notes())


def test_claimed_shards_get_servers_once_and_whoever_claimed_them_is_told(host: Stage) -> None:
    pids(host, 0, 2, 5)
    assert started(host) == 3
    assert "opens 1 because of {'shard': 1, 'unraised': 'stood'}" in host.notes()
    assert host.stop() == 0


def test_a_killed_server_of_a_shard_is_replaced_and_claims_nothing(host: Stage) -> None:
    before = pids(host, 0, 2, 5)
    os.kill(before[5], signal.SIGKILL)
    until(lambda: pids(host, 5) != {5: before[5]})
    assert "opens 4 because of None" in host.notes()
    assert pids(host, 0, 2) == {place: before[place] for place in (0, 2)}


def test_a_shard_that_another_host_has_gets_no_other_server(stage: Stage) -> None:
    begun(stage, **{"opened.4": "be fenced"})
    stage.plan(shards=6, claims=[*CLAIMED, 3], **{"opened.4": "be fenced"})
    until(lambda: "opens 3 because of {'shard': 3, 'unraised': 'stood'}" in stage.notes())
    stage.plan(shards=6, claims=CLAIMED)
    until(lambda: last_had(stage) == ALL_SERVE)
    # The losers of a race say nothing here.
    assert "opens 3 because of None" not in stage.notes()
    assert stage.log() == ""


def test_a_shard_that_fails_to_open_twice_is_left_to_other_hosts(stage: Stage) -> None:
    begun(stage, **{"opened.4": "exit"})
    stage.plan(shards=6, claims=[*CLAIMED, 3], **{"opened.4": "exit"})
    until(lambda: "has [1, 4] serving [1, 4] failed [3]" in stage.notes())
    assert "opens 3 because of None" in stage.notes()
    assert "shard 3 cannot be opened here, and is left to other hosts" in stage.log()


def test_a_server_that_claims_shards_hears_what_there_is_when_it_serves(host: Stage) -> None:
    before = pids(host, 0, 2, 5)
    times = host.notes().count(ALL_SERVE)
    os.kill(before[0], signal.SIGKILL)
    until(lambda: host.notes().count(ALL_SERVE) > times and pids(host, 0) != {0: before[0]})
    after = pids(host, 0, 2, 5)
    assert {**after, 0: 0} == {**before, 0: 0}
    # It would take what it is told before that for the answer to something else.
    assert not any(each.startswith("too early") for each in host.notes())


def test_a_shard_is_given_to_another_host_and_its_connections_to_a_server_here(host: Stage) -> None:
    host.plan(shards=6, claims=[4], gives=1)
    until(lambda: "has [4] serving [4]" in host.notes())
    assert host.notes().count("gives its shard to another") == 1
    until(lambda: host.notes().count("adopts") == 1)
    # It may come back.
    host.plan(shards=6, claims=CLAIMED, gives=1)
    until(lambda: last_had(host) in (ALL_SERVE, "has [4, 1] serving [4, 1]"))


def test_a_restart_waits_for_one_that_gives_its_shard_but_not_for_its_connections(
    host: Stage,
) -> None:
    host.plan(shards=6, claims=[4], gives=1, giving_s=0.5, handing_s=LIMIT_S, code="second")
    until(lambda: "gives its shard to another" in host.notes())
    assert host.restart()[-1] == {"done": True}
    assert host.who()["code"] == "second"
    until(lambda: last_had(host) == "has [4] serving [4]")


def test_one_that_was_to_give_its_shard_and_goes_on_is_restarted_like_others(host: Stage) -> None:
    before = pids(host, 2)
    host.plan(shards=6, claims=CLAIMED, gives=1, giving_s=0.5, keeps=True)
    until(lambda: "gives its shard to another" in host.notes())
    assert host.restart()[-1] == {"done": True}
    assert pids(host, 2) != before


def test_a_restart_replaces_all_of_them_and_the_new_program_knows_their_places(host: Stage) -> None:
    before = pids(host, 0, 2, 5)
    host.plan(shards=6, claims=CLAIMED, code="second")
    assert host.restart()[-1] == {"done": True}
    after = pids(host, 0, 2, 5)
    assert not {*before.values()} & {*after.values()}
    assert host.who()["code"] == "second"
    # The supervisor is a new program by now.
    os.kill(after[5], signal.SIGKILL)
    until(lambda: pids(host, 5) != {5: after[5]})
    host.plan(shards=6, claims=[*CLAIMED, 0])
    until(lambda: last_had(host) == "has [1, 4, 0] serving [1, 4, 0]")
    assert host.restart()[-1] == {"done": True}
    assert host.stop() == 0


@pytest.mark.parametrize("step", ["prepared.0", "prepared.5", "opened.0", "opened.2"])
def test_a_restart_that_fails_leaves_all_of_them(host: Stage, step: str) -> None:
    before = pids(host, 0, 2, 5)
    host.plan(shards=6, claims=CLAIMED, **{step: "fail"})
    end = host.restart()[-1]
    assert end["failed"] == "the test wants it"
    assert end["serving"] is True
    assert end["another"] is False
    assert pids(host, 0, 2, 5) == before
    host.plan(shards=6, claims=CLAIMED)
    assert host.restart()[-1] == {"done": True}


def test_a_shard_that_is_lost_during_a_restart_ends_it_at_once(stage: Stage) -> None:
    stage.constants(replacing={"_LEAVING_S": LIMIT_S})
    begun(stage, **{"settled.2": "be fenced"})
    before = pids(stage, 0, 2, 5)
    stage.plan(shards=6, claims=[4])
    began = time.monotonic()
    assert "has ended" in stage.restart()[-1]["failed"]
    # It waits for no server of a shard that another host has.
    assert time.monotonic() - began < LIMIT_S
    assert pids(stage, 0, 5) == {place: before[place] for place in (0, 5)}
    until(lambda: last_had(stage) == "has [4] serving [4]")


def test_a_door_without_a_shard_gives_its_connections_to_a_server_of_a_shard(host: Stage) -> None:
    # Its number is behind those of all shards.
    host.plan(shards=6, claims=[*CLAIMED, 6])
    until(lambda: last_had(host) == "has [1, 4, 6] serving [1, 4, 6]")
    host.plan(shards=6, claims=CLAIMED, gives=6)
    until(lambda: last_had(host) == ALL_SERVE)
    assert host.notes().count("gives its shard to another") == 1
    # It is told before, in another process.
    until(lambda: host.notes().count("adopts") == 1)


def test_a_door_that_does_not_start_is_no_loss_of_a_shard(stage: Stage) -> None:
    begun(stage, **{"opened.7": "exit"})
    stage.plan(shards=6, claims=[*CLAIMED, 6], **{"opened.7": "exit"})
    until(lambda: "has [1, 4] serving [1, 4] failed [6]" in stage.notes())
    assert "the server that is a door has ended" in stage.log()
    assert "left to other hosts" not in stage.log()


def test_a_server_that_loses_its_shard_gives_its_connections_to_one_that_serves(
    host: Stage,
) -> None:
    claim_less(host, 4)
    host.plan(shards=6, claims=[4], loses=[1])
    until(lambda: last_had(host) == "has [4] serving [4]")
    until(lambda: host.notes().count("adopts") == 1)
    until(lambda: host.notes().count("parts from shard 1") == 1)


def lose_all(stage: Stage) -> None:
    """Lose both shards to other hosts, one after the other."""
    claim_less(stage, 4)
    stage.plan(shards=6, claims=[4], loses=[1])
    until(lambda: stage.notes().count("adopts") == 1)
    claim_less(stage, loses=[1])
    stage.plan(shards=6, claims=[], loses=CLAIMED)
    until(lambda: last_had(stage) == "has [] serving []")


def test_connections_of_the_last_server_that_loses_its_shard_wait_for_a_door(stage: Stage) -> None:
    stage.constants(claimed={"_PARTED_S": LIMIT_S})
    begun(stage)
    lose_all(stage)
    stage.plan(shards=6, claims=[6], loses=CLAIMED)
    until(lambda: stage.notes().count("adopts") == 2)
    until(lambda: last_had(stage) == "has [6] serving [6]")


def test_connections_do_not_wait_forever(stage: Stage) -> None:
    stage.constants(claimed={"_PARTED_S": 0.1})
    begun(stage)
    lose_all(stage)
    # The supervisor looks once a second.
    time.sleep(2.0)
    stage.plan(shards=6, claims=[6], loses=CLAIMED)
    until(lambda: last_had(stage) == "has [6] serving [6]")
    assert stage.notes().count("adopts") == 1
