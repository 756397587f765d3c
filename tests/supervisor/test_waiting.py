"""Servers that wait for another one, elsewhere, below a supervisor."""

import os
import signal
from contextlib import suppress

import pytest

from tests.supervisor.stage import LIMIT_S, Stage, until

pytestmark = pytest.mark.slow  # each starts several processes

LOOKS = "looks at the store"


def waiting(stage: Stage, **plan: object) -> int:
    """Start a supervisor whose servers wait; returns its pid."""
    stage.plan(waits=True, **plan)
    pid = stage.start()
    until(lambda: stage.notes().count(LOOKS) == plan.get("workers", 1))
    return pid


def servers(stage: Stage, pid: int) -> list[int]:
    """Those that importers have forked."""
    found = []
    for each in stage.family():
        # An importer of former servers may just end.
        with suppress(FileNotFoundError, ProcessLookupError):
            if each != pid and stage.parent_of(each) not in (pid, 1):
                found.append(each)
    return found


def test_a_server_that_waits_stops_in_order(stage: Stage) -> None:
    waiting(stage)
    assert stage.stop() == 0
    assert stage.notes() == ["started []", LOOKS, "stopped"]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_restart_replaces_servers_that_wait_and_only_then_the_new_ones_look(
    stage: Stage, workers: int
) -> None:
    pid = waiting(stage, workers=workers)
    before = servers(stage, pid)
    assert len(before) == workers
    assert stage.restart() == [{"step": "starting"}, {"done": True}]
    until(lambda: stage.notes().count(LOOKS) == 2 * workers)
    assert not {*before} & {*servers(stage, pid)}
    notes = stage.notes()
    ends = [number for number, note in enumerate(notes) if note == "stopped"]
    looks = [number for number, note in enumerate(notes) if note == LOOKS]
    # Both hold one lock, by which a store knows that a server has ended.
    assert max(ends) < min(looks[workers:])
    inherited = [note for note in notes if note.startswith("started") and "main.0" in note]
    assert len(inherited) >= workers
    # The new program knows that they wait, and what the first server of all is.
    until(lambda: len(servers(stage, pid)) == workers)
    assert stage.stop() == 0


def test_a_server_that_waits_goes_on_if_the_new_one_fails(stage: Stage) -> None:
    pid = waiting(stage)
    before = servers(stage, pid)
    stage.plan(waits=True, waiting="fail", why="a setting is wrong")
    *_, last = stage.restart()
    assert last == {"failed": "a setting is wrong", "serving": True, "another": False}
    assert servers(stage, pid) == before
    stage.plan(waits=True)
    assert stage.restart()[-1] == {"done": True}


def test_new_servers_that_may_not_wait_leave_no_descriptor_behind(stage: Stage) -> None:
    pid = waiting(stage)
    # Then it has done all that follows from what the server said.
    assert "failed" in stage.ask(do="nothing")[-1]
    before = len(os.listdir(f"/proc/{pid}/fd"))
    stage.plan(waits=True, workers=2)
    assert "want 2" in stage.restart()[-1]["failed"]
    assert len(os.listdir(f"/proc/{pid}/fd")) == before
    stage.plan(waits=True)
    assert stage.stop() == 0


def test_a_server_that_waits_is_started_again_although_its_settings_are_wrong_by_now(
    stage: Stage,
) -> None:
    pid = waiting(stage)
    stage.plan(waits=True, waiting="exit")
    [server] = servers(stage, pid)
    os.kill(server, signal.SIGKILL)
    until(lambda: "exit code 3" in stage.log())
    stage.plan(waits=True)
    until(lambda: stage.notes().count(LOOKS) == 2)
    assert stage.process.poll() is None


def test_settings_that_are_wrong_at_the_first_start_end_the_supervisor(stage: Stage) -> None:
    stage.plan(waits=True, waiting="exit")
    stage.start()
    assert stage.process.wait(LIMIT_S) == 3
