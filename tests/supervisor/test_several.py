"""Several servers below one supervisor: each shard of a deployment is one of them."""

import json
import os
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.stage import HANGING_S, LIMIT_S, Stage, until

pytestmark = pytest.mark.slow  # each starts several processes

STEPS = [{"step": each} for each in ("starting", "prepared", "left", "ready")]
DONE = [*STEPS, {"done": True}]
# Constants of places: before the next server, when one has ended.
PAUSES_OF_8_S = {"_SHORT_LIVES": -2.0, "_LONGEST_PAUSE_S": 60.0}


@pytest.fixture
def three(stage: Stage) -> Stage:
    """A stage whose plans have three servers."""
    return begun(stage)


def begun(stage: Stage, **plan: object) -> Stage:
    stage.plan(workers=3, **plan)
    stage.start_and_wait()
    return stage


def servers(stage: Stage) -> dict[int, int]:
    """The pid of each shard's server, all of which live and accept."""
    found = {}

    def are_serving() -> bool:
        for shard in range(3):
            found[shard] = about(stage, shard)["pid"]
        return {*found.values()} <= {*stage.family()}

    until(are_serving)
    return found


def about(stage: Stage, shard: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((stage.home / f"serving.{shard}").read_text())
    return found


def codes(stage: Stage) -> set[str]:
    return {about(stage, shard)["code"] for shard in range(3)}


def logged(stage: Stage) -> list[str]:
    return [json.loads(line)["message"] for line in stage.log().splitlines() if line[0] == "{"]


def test_the_first_server_says_how_many_there_are_and_all_serve_at_its_address(
    three: Stage,
) -> None:
    assert len({*servers(three).values()}) == 3
    # The supervisor and the importer.
    assert len(three.family()) == 5
    started = ["started []", *2 * ["started ['control', 'main.0']"]]
    assert three.notes() == started
    assert three.stop() == 0
    assert three.notes() == started + 3 * ["stopped"]
    assert three.family() == []


def test_what_several_need_is_imported_before_they_are_forked(three: Stage) -> None:
    loaded = three.home / "loaded"
    # By the importer, then for the first one, which says how many there are, and for the others.
    assert loaded.read_text().split() == ["1", "1", "3", "3"]
    loaded.unlink()
    assert three.restart() == DONE
    assert loaded.read_text().split() == ["1", "3", "3", "3"]


def test_the_supervisor_keeps_each_socket_once(three: Stage) -> None:
    def kept_more_than_once() -> list[int]:
        with suppress(FileNotFoundError):
            links = [os.readlink(each) for each in Path(f"/proc/{three.process.pid}/fd").iterdir()]
            found = Counter(each for each in links if each.startswith("socket:"))
            return [number for number in found.values() if number > 1]
        return []

    # The socket for commands is kept for servers, and read.
    until(lambda: kept_more_than_once() == [2])
    assert three.restart() == DONE
    until(lambda: kept_more_than_once() == [2])


def test_none_serves_before_all_are_open(stage: Stage) -> None:
    stage.plan(workers=3, **{"opened.2": 0.6})
    began = time.monotonic()
    stage.start()
    until(lambda: (stage.home / "serving.0").exists())
    stage.who()
    assert time.monotonic() - began > 0.6


@pytest.mark.parametrize("shard", [0, 1, 2])
def test_a_killed_server_is_replaced_and_the_others_notice_nothing(
    three: Stage, shard: int
) -> None:
    before = servers(three)
    os.kill(before[shard], signal.SIGKILL)
    until(lambda: logged(three))
    until(lambda: before[shard] not in three.family() and len(three.family()) == 5)
    after = servers(three)
    assert {each for each in after if after[each] != before[each]} == {shard}
    # The lock of its directory, and the socket of its links, were kept for it.
    assert three.notes()[-1] == "started ['control', 'link', 'lock', 'main.0']"
    assert logged(three) == [
        f"the server of shard {shard} has ended (signal 9): another is started"
    ]
    assert three.stop() == 0


def test_all_killed_at_once_are_replaced(three: Stage) -> None:
    before = servers(three)
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    until(lambda: not {*before.values()} & {*three.family()} and len(three.family()) == 5)
    assert not {*servers(three).values()} & {*before.values()}
    assert three.stop() == 0


def test_a_server_that_ends_again_and_again_pauses_alone(three: Stage) -> None:
    three.stop()
    three.constants(places=PAUSES_OF_8_S)
    begun(three)
    before = servers(three)
    os.kill(before[1], signal.SIGKILL)
    until(lambda: len(three.family()) == 4)
    assert "stands in" not in "".join(three.notes())
    time.sleep(1.2)
    assert len(three.family()) == 4
    assert three.who()["pid"] in (before[0], before[2])
    assert three.stop() == 0


def test_a_start_that_one_server_refuses_ends_with_its_exit_code(stage: Stage) -> None:
    stage.plan(workers=3, **{"opened.1": "exit"})
    stage.start()
    assert stage.process.wait(LIMIT_S) == 3
    assert stage.family() == []


def test_a_server_that_is_killed_while_the_others_start_is_replaced(stage: Stage) -> None:
    stage.plan(workers=3, **{"opened.1": "hang"})
    stage.start()
    until(lambda: "hangs at opened" in stage.notes())
    stage.plan(workers=3)
    [pid] = [
        int(line.split()[0])
        for line in (stage.home / "notes").read_text().splitlines()
        if line.endswith("hangs at opened")
    ]
    os.kill(pid, signal.SIGKILL)
    assert stage.process.stdout is not None
    assert stage.process.stdout.readline() == "holdfast is ready: http://fake\n", stage.log()
    assert len(servers(stage)) == 3
    assert stage.stop() == 0


def test_a_stop_during_the_start_waits_for_no_server(stage: Stage) -> None:
    stage.plan(workers=3, **{"opened.1": "hang"})
    stage.start()
    until(lambda: len(stage.notes()) == 4 and "hangs at opened" in stage.notes())
    assert stage.stop() == 0
    assert stage.family() == []


def test_a_restart_replaces_all_servers(three: Stage) -> None:
    before = servers(three)
    three.plan(workers=3, code="second")
    assert three.restart() == DONE
    assert codes(three) == {"second"}
    assert not {*servers(three).values()} & {*before.values()}
    until(lambda: not {*before.values()} & {*three.family()} and len(three.family()) == 5)
    assert three.notes()[3:6] == 3 * [
        "started ['control', 'door', 'link', 'lock', 'main.0'] as successor"
    ]
    # The program that the supervisor became knows all of them.
    three.plan(workers=3, code="third")
    assert three.restart() == DONE
    assert codes(three) == {"third"}
    # Former ones that still live would be stopped, too.
    until(lambda: len(three.family()) == 5)
    assert three.stop() == 0
    assert three.notes()[-3:] == 3 * ["stopped"]


@pytest.mark.parametrize("shard", [0, 2])
@pytest.mark.parametrize("step", ["prepared", "opened"])
@pytest.mark.parametrize("what", ["fail", "die", "hang"])
def test_all_old_servers_go_on_if_one_new_one_fails(
    three: Stage, step: str, shard: int, what: str
) -> None:
    before = servers(three)
    three.plan(workers=3, code="broken", **{f"{step}.{shard}": what})
    *steps, end = three.restart(timeout=HANGING_S if what == "hang" else LIMIT_S)
    assert "failed" in end
    assert end["serving"] is True
    assert steps == STEPS[: 1 if step == "prepared" else 3]
    assert servers(three) == before
    until(lambda: len(three.family()) == 5)
    assert three.notes().count("took back") == (0 if step == "prepared" else 3)
    three.plan(workers=3, code="repaired")
    assert three.restart() == DONE
    assert codes(three) == {"repaired"}
    assert three.stop() == 0


def test_all_old_servers_go_on_if_one_cannot_leave(stage: Stage) -> None:
    before = servers(begun(stage, **{"leave.1": "refuse"}))
    assert stage.restart()[-1] == {"failed": "it is too late", "serving": True, "another": False}
    assert servers(stage) == before
    assert stage.notes().count("took back") == 2
    assert stage.stop() == 0


@pytest.mark.parametrize("way", ["restart", "stop"])
def test_no_server_comes_to_rest_before_all_have_settled(stage: Stage, way: str) -> None:
    begun(stage, settles_to_stop=True, **{"settled.1": 0.2})
    assert stage.restart() == DONE if way == "restart" else stage.stop() == 0
    assert [note for note in stage.notes() if note in ("settles", "rests")] == [
        *3 * ["settles"],
        *3 * ["rests"],
    ]


def test_those_that_have_settled_do_not_wait_for_one_that_has_died(stage: Stage) -> None:
    begun(stage, settles_to_stop=True, **{"settled.2": "die"})
    assert stage.stop() == 128 + signal.SIGKILL
    assert stage.notes().count("rests") == 2


def test_servers_of_an_earlier_release_leave_without_the_others(stage: Stage) -> None:
    begun(stage, code="old", earlier=[1, 2])
    stage.plan(workers=3, code="new")
    assert stage.restart() == DONE
    assert codes(stage) == {"new"}


def test_the_death_of_an_old_server_while_all_leave_ends_the_restart(stage: Stage) -> None:
    before = servers(begun(stage, code="old", **{"leave.2": "die"}))
    stage.plan(workers=3, code="new")
    assert "failed" in stage.restart()[-1]
    until(lambda: len(stage.family()) == 5)
    after = servers(stage)
    assert (after[0], after[1]) == (before[0], before[1])
    assert codes(stage) == {"old"}
    assert stage.stop() == 0


def test_a_new_server_that_dies_when_all_may_serve_is_followed_by_another_of_its_code(
    three: Stage,
) -> None:
    three.plan(workers=3, code="new", **{"ready.1": "die"})
    answers = three.asking(do="restart")
    assert [next(answers) for _ in range(3)] == STEPS[:3]
    # All new servers know the plan already.
    three.plan(workers=3, code="new")
    assert [*answers] == [STEPS[3], {"done": True}]
    until(lambda: sum(note.startswith("started") for note in three.notes()) >= 7)
    until(lambda: len(three.family()) == 5)
    assert len({*servers(three).values()}) == 3
    assert codes(three) == {"new"}
    assert three.stop() == 0


def test_a_restart_also_starts_a_server_where_none_lives(three: Stage) -> None:
    three.stop()
    three.constants(places=PAUSES_OF_8_S)
    begun(three)
    os.kill(servers(three)[1], signal.SIGKILL)
    until(lambda: len(three.family()) == 4)
    three.plan(workers=3, code="second")
    assert three.restart() == DONE
    assert len(servers(three)) == 3
    assert codes(three) == {"second"}
    assert three.stop() == 0


def test_a_restart_cannot_change_the_number_of_servers(three: Stage) -> None:
    before = servers(three)
    three.plan(workers=2)
    assert "there are 3 servers, and the new settings want 2" in three.restart()[-1]["failed"]
    assert servers(three) == before
    assert three.stop() == 0
