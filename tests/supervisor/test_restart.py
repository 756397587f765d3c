"""Restarts: a new server takes over, or the old one goes on."""

import json
import os
import resource
import shutil
import signal
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from select import select

import pytest

from holdfast.supervisor.control import (
    CONTROL_FILE,
    Channel,
    channel_pair,
    socket_for_commands,
)
from tests.pages import ROOT
from tests.supervisor.stage import HANGING_S, LIMIT_S, Stage, until

pytestmark = pytest.mark.slow  # each starts several processes

STEPS = [{"step": each} for each in ("starting", "prepared", "left", "ready")]
DONE = [*STEPS, {"done": True}]
# Of the answer to a restart that has failed.
GOES_ON = {"serving": True, "another": False}
HUGE = pytest.param(10**400, id="huge")


def descriptors_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_a_restart_replaces_server_importer_and_program_under_one_pid(stage: Stage) -> None:
    pid = stage.start_and_wait()
    first = stage.who()
    before = Path(f"/proc/{pid}/environ").read_bytes()
    stage.plan(code="second")
    assert stage.restart() == DONE
    second = stage.who()
    assert (first["code"], second["code"]) == ("first", "second")
    until(lambda: first["pid"] not in stage.family() and len(stage.family()) == 3)
    assert stage.parent_of(stage.parent_of(second["pid"])) == pid
    # Only a new program has another environment.
    until(lambda: Path(f"/proc/{pid}/environ").read_bytes() != before)
    assert stage.stop() == 0
    assert stage.notes() == [
        "started []",
        "started ['control', 'door', 'main.0'] as successor",
        "went",
        "stopped",
    ]
    until(lambda: stage.family() == [])


def test_many_restarts_leave_nothing_behind(stage: Stage) -> None:
    pid = stage.start_and_wait()
    before, servers = descriptors_of(pid), [stage.who()["pid"]]
    for _ in range(6):
        assert stage.restart() == DONE
        servers.append(stage.who()["pid"])
    assert len({*servers}) == 7
    until(lambda: len(stage.family()) == 3 and descriptors_of(pid) == before)
    assert stage.process.poll() is None
    assert stage.stop() == 0
    assert stage.family() == []


def test_a_hangup_is_a_restart_without_an_answer(stage: Stage) -> None:
    pid = stage.start_and_wait()
    first = stage.who()["pid"]
    os.kill(pid, signal.SIGHUP)
    until(lambda: "the restart is done" in stage.log())
    assert stage.who()["pid"] != first
    logged = [json.loads(line)["message"] for line in stage.log().splitlines()]
    assert logged == ["a restart begins", "the restart is done"]
    assert stage.stop() == 0


def test_a_hangup_during_a_restart_is_followed_by_another_restart(stage: Stage) -> None:
    pid = stage.start_and_wait()
    stage.plan(code="second", ready="wait")
    answers = stage.asking(do="restart")
    assert [next(answers) for _ in range(3)] == STEPS[:3]
    stage.plan(code="third")
    for _ in range(3):
        os.kill(pid, signal.SIGHUP)
    stage.let_go_on()
    assert [*answers] == [STEPS[3], {"done": True}]
    until(lambda: stage.who()["code"] == "third")
    until(lambda: stage.log().count("the restart is done") == 2)
    assert stage.stop() == 0
    assert stage.log().count("a restart begins") == 2


def test_a_hangup_during_a_restart_that_fails_is_followed_by_another_restart(stage: Stage) -> None:
    pid = stage.start_and_wait()
    stage.plan(code="broken", prepared="hang")
    answers = stage.asking(do="restart", timeout=HANGING_S)
    assert next(answers) == STEPS[0]
    until(lambda: "hangs at prepared" in stage.notes())
    stage.plan(code="repaired")
    os.kill(pid, signal.SIGHUP)
    assert "in time" in next(answers)["failed"]
    until(lambda: stage.who()["code"] == "repaired")
    assert stage.stop() == 0


def test_signals_in_a_row_end_in_one_server(stage: Stage) -> None:
    pid = stage.start_and_wait()
    for _ in range(20):
        os.kill(pid, signal.SIGHUP)
        time.sleep(0.01)
    os.kill(pid, signal.SIGTERM)
    assert stage.process.wait(LIMIT_S) == 0
    assert stage.family() == []


# By step of the new server and what it does there: a part of the reason that is answered.
FAILURES = {
    ("prepared", "fail"): "the test wants it",
    ("prepared", "exit"): "the new server has ended (exit code 3): see the log",
    ("prepared", "die"): "the new server has ended (signal 9): see the log",
    ("prepared", "hang"): "has not read its settings and the stored records in time",
    ("ready", "fail"): "the test wants it",
    ("ready", "exit"): "the new server has ended (exit code 3): see the log",
    ("ready", "die"): "the new server has ended (signal 9): see the log",
    ("ready", "hang"): "the new server was not ready in time",
}


@pytest.mark.parametrize(("step", "what"), FAILURES)
def test_the_old_server_goes_on_if_the_new_one_fails(stage: Stage, step: str, what: str) -> None:
    pid = stage.start_and_wait()
    first, count = stage.who(), descriptors_of(pid)
    stage.plan(code="broken", **{step: what})
    *steps, end = stage.restart(timeout=HANGING_S if what == "hang" else LIMIT_S)
    assert FAILURES[step, what] in end["failed"]
    assert steps == (STEPS[:1] if step == "prepared" else STEPS[:3])
    assert stage.who() == first
    until(lambda: len(stage.family()) == 3)
    assert descriptors_of(pid) == count
    assert FAILURES[step, what] in stage.log()
    stage.plan(code="repaired")
    assert stage.restart() == DONE
    assert stage.who()["code"] == "repaired"
    assert stage.stop() == 0


def test_the_old_server_goes_on_if_the_new_code_cannot_be_imported(stage: Stage) -> None:
    stage.start_and_wait()
    first = stage.who()
    stage.main.write_text("raise SystemExit(5)")
    assert stage.restart() == [
        STEPS[0],
        {"failed": "the new server has ended (exit code 5): see the log", **GOES_ON},
    ]
    assert stage.who() == first
    assert stage.stop() == 0


def test_the_old_server_goes_on_if_the_supervisor_may_open_no_more_files(stage: Stage) -> None:
    pid = stage.start_and_wait()
    first = stage.who()
    numbers = {int(each) for each in os.listdir(f"/proc/{pid}/fd")}
    # Three more: for the answers, and for the channel to the importer. It closes one of them, but
    # then needs two.
    limit = next(n for n in count() if n - sum(each < n for each in numbers) == 3)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    assert stage.restart() == [
        STEPS[0],
        {"failed": "[Errno 24] Too many open files", **GOES_ON},
    ]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert stage.who() == first
    until(lambda: len(stage.family()) == 3)
    assert stage.restart() == DONE
    assert stage.stop() == 0


def test_an_old_server_that_does_not_leave_takes_back_and_goes_on(stage: Stage) -> None:
    stage.plan(leave="hang")
    stage.constants(replacing={"_LEAVING_S": 2.0})
    stage.start_and_wait()
    first = stage.who()
    *steps, end = stage.restart()
    assert steps == STEPS[:2]
    assert end == {"failed": "the server did not become still in time", **GOES_ON}
    assert stage.who() == first


def test_an_old_server_that_cannot_leave_goes_on_by_itself(stage: Stage) -> None:
    stage.plan(leave="refuse")
    stage.start_and_wait()
    first = stage.who()
    assert stage.restart()[-1] == {"failed": "it is too late", **GOES_ON}
    assert stage.who() == first
    assert "took back" not in stage.notes()
    stage.plan(code="second")
    assert stage.restart()[-1] == {"failed": "it is too late", **GOES_ON}
    assert stage.stop() == 0


SOON_KILLED = {"watching": {"AWAITED_S": 2.0}, "running": {"TICK_S": 0.1}}


def test_a_new_server_that_freezes_while_clients_wait_is_killed(stage: Stage) -> None:
    stage.constants(**SOON_KILLED)
    stage.start_and_wait()
    first = stage.who()
    stage.plan(code="broken", ready="freeze")
    assert stage.restart()[-1] == {
        "failed": "the new server has ended (signal 9): see the log",
        **GOES_ON,
    }
    assert "the new server has said nothing for 2 s: it is killed" in stage.log()
    assert stage.who() == first
    assert stage.stop() == 0


def test_a_new_server_that_freezes_as_soon_as_it_is_ready_is_soon_followed_by_another(
    stage: Stage,
) -> None:
    stage.constants(**SOON_KILLED)
    stage.start_and_wait()
    stage.plan(code="second", silent=True)
    assert stage.restart()[-1] == {"done": True}
    frozen = stage.who()
    assert frozen["code"] == "second"
    stage.plan(code="second")
    until(lambda: stage.who()["pid"] != frozen["pid"])
    assert "the server has said nothing for 2 s: it is killed" in stage.log()
    assert stage.stop() == 0


@pytest.mark.parametrize(("leave", "back"), [("freeze", "say"), ("say", "freeze")])
def test_an_old_server_that_freezes_while_clients_wait_is_followed_by_another_of_its_code(
    stage: Stage, leave: str, back: str
) -> None:
    stage.constants(**SOON_KILLED)
    stage.plan(code="old", leave=leave, back=back)
    stage.start_and_wait()
    first = stage.who()["pid"]
    stage.plan(code="broken", ready="exit")
    answers = stage.asking(do="restart")
    assert [next(answers) for _ in range(2)] == STEPS[:2]
    stage.plan()
    *_, end = answers
    assert (end["serving"], end["another"]) == (True, True)
    assert first not in stage.family()
    assert "the old server has said nothing for 2 s: it is killed" in stage.log()
    assert stage.who()["code"] == "old"
    assert stage.stop() == 0


def test_a_new_server_may_freeze_for_long_while_no_client_waits(stage: Stage) -> None:
    stage.constants(**SOON_KILLED)
    stage.start_and_wait()
    stage.plan(prepared="freeze")
    assert "in time" in stage.restart(timeout=HANGING_S)[-1]["failed"]
    assert "has said nothing" not in stage.log()
    assert stage.stop() == 0


@pytest.mark.parametrize(
    "plan",
    [
        *({"leave": "die"}, {"ready": "say", "back": "die"}, {"back": "hang"}),
        *({"leave": "be lost"}, {"back": "be lost"}),
    ],
)
def test_if_the_old_server_cannot_go_on_either_another_of_its_code_starts(
    stage: Stage, plan: dict[str, str]
) -> None:
    stage.plan(code="old", **plan)
    # The other one has this time, too.
    stage.constants(replacing={"_LEAVING_S": HANGING_S})
    stage.start_and_wait()
    first = stage.who()
    stage.plan(code="broken", **{"ready of broken": "exit"})
    *steps, end = stage.asking(do="restart")
    assert steps[:2] == STEPS[:2]
    assert "failed" in end
    assert (end["serving"], end["another"]) == (True, True)
    assert stage.who()["code"] == "old"
    assert stage.who()["pid"] != first["pid"]
    assert stage.stop() == 0


def test_the_death_of_the_old_server_while_the_new_one_loads_ends_the_restart(
    stage: Stage,
) -> None:
    stage.start_and_wait()
    first = stage.who()["pid"]
    stage.plan(code="new", prepared="hang")
    answers = stage.asking(do="restart")
    assert next(answers) == STEPS[0]
    until(lambda: "hangs at prepared" in stage.notes())
    os.kill(first, signal.SIGKILL)
    assert next(answers) == {
        "failed": "the old server has ended (signal 9): see the log",
        "serving": True,
        "another": True,
    }
    assert stage.who()["code"] == "first"
    assert "the server has ended (signal 9): another is started" in stage.log()
    assert stage.stop() == 0


def test_a_new_server_that_dies_as_soon_as_it_is_ready_leaves_its_sockets_to_another(
    stage: Stage,
) -> None:
    pid = stage.start_and_wait()
    first = stage.who()["pid"]
    stage.plan(code="new", ready="wait", dies_when_ready=True)
    answers = stage.asking(do="restart")
    assert [next(answers) for _ in range(3)] == STEPS[:3]
    # Only then has it been told to open.
    until(lambda: stage.pid_of_server() != first)
    before = len(stage.family())
    # So it hears of both at once.
    os.kill(pid, signal.SIGSTOP)
    stage.let_go_on()
    until(lambda: len(stage.family()) < before)
    stage.plan(code="new")
    os.kill(pid, signal.SIGCONT)
    assert [*answers] == [STEPS[3], {"done": True}]
    assert stage.who()["code"] == "new"
    assert "started ['control', 'main.0']" in stage.notes()
    assert stage.stop() == 0


def test_the_death_of_the_old_server_after_it_left_changes_nothing(stage: Stage) -> None:
    stage.start_and_wait()
    first = stage.who()["pid"]
    stage.plan(code="new", ready="wait")
    answers = stage.asking(do="restart")
    assert [next(answers) for _ in range(3)] == STEPS[:3]
    os.kill(first, signal.SIGKILL)
    until(lambda: "the old server has ended (signal 9)" in stage.log())
    stage.let_go_on()
    assert [*answers] == [STEPS[3], {"done": True}]
    assert stage.who()["code"] == "new"
    assert stage.stop() == 0


def test_a_restart_while_another_runs_is_refused(stage: Stage) -> None:
    stage.start_and_wait()
    stage.plan(prepared="hang")
    answers = stage.asking(do="restart", timeout=HANGING_S)
    assert next(answers) == STEPS[0]
    assert stage.restart() == [{"failed": "a restart is under way: wait until it has ended"}]
    assert "in time" in next(answers)["failed"]
    assert stage.stop() == 0


def test_a_restart_waits_until_the_first_server_is_ready(stage: Stage) -> None:
    stage.plan(ready=0.3)
    stage.start()
    until(lambda: (stage.home / "control.sock").exists())
    assert stage.restart() == DONE
    until(lambda: "went" in stage.notes())


def test_a_restart_waits_for_a_server_that_starts_again(stage: Stage) -> None:
    stage.start_and_wait()
    first = stage.pid_of_server()
    stage.plan(ready="wait")
    os.kill(first, signal.SIGKILL)
    until(lambda: stage.pid_of_server() != first)
    answers = stage.asking(do="restart")
    stage.plan(code="new")
    stage.let_go_on()
    assert [*answers] == DONE
    assert stage.who()["code"] == "new"
    assert stage.stop() == 0


def test_a_restart_does_not_wait_forever_for_a_server_that_starts_again(stage: Stage) -> None:
    stage.start_and_wait()
    first = stage.pid_of_server()
    stage.plan(ready="hang")
    os.kill(first, signal.SIGKILL)
    until(lambda: stage.pid_of_server() != first)
    [end] = stage.restart(timeout=0.5)
    assert "was not ready in time" in end["failed"]
    assert stage.stop() == 0


def test_the_old_server_goes_on_if_the_code_of_the_supervisor_is_broken(stage: Stage) -> None:
    stage.start_and_wait()
    first = stage.who()
    package = stage.main.parent / "supervisor"
    package.unlink()
    shutil.copytree(ROOT / "app" / "supervisor", package)
    with (package / "requests.py").open("a") as module:
        module.write("this is no Python")
    assert "exit code 1" in stage.restart()[-1]["failed"]
    assert stage.who() == first
    assert stage.stop() == 0


@pytest.mark.parametrize(
    "sent", [b"nonsense", b"[]", b"", b'"restart"', b'{"do":"restart"}', b"[" * 10_000]
)
def test_nonsense_on_the_socket_for_commands_ends_nothing(stage: Stage, sent: bytes) -> None:
    stage.start_and_wait()
    first = stage.who()
    stage.send(sent)
    assert "does not know this request" in stage.ask(do="dance")[-1]["failed"]
    assert stage.who() == first
    assert stage.restart() == DONE


@pytest.mark.parametrize("timeout", ["soon", 0, -1.5, float("nan"), HUGE])
def test_a_time_that_is_none_is_refused(stage: Stage, timeout: object) -> None:
    stage.start_and_wait()
    assert "does not know" in stage.restart(timeout=timeout)[-1]["failed"]
    assert stage.restart(timeout=10**7) == DONE


def test_a_command_with_a_descriptor_that_is_no_socket_ends_nothing(stage: Stage) -> None:
    pid = stage.start_and_wait()
    before = descriptors_of(pid)
    with socket_for_commands() as commands, open(os.devnull) as file:
        commands.connect(str(stage.home / CONTROL_FILE))
        Channel(commands).send([file.fileno()], do="restart")
    assert "does not know this request" in stage.ask(do="dance")[-1]["failed"]
    assert descriptors_of(pid) == before
    assert stage.stop() == 0


def test_a_command_that_arrives_together_with_another_server_is_answered(stage: Stage) -> None:
    pid = stage.start_and_wait()
    first = stage.who()["pid"]
    stage.plan(ready="wait")
    os.kill(first, signal.SIGKILL)
    # It listens, and says so later.
    until(lambda: stage.pid_of_server() != first)
    os.kill(pid, signal.SIGSTOP)
    stage.let_go_on()
    time.sleep(0.3)
    answers, theirs = channel_pair()
    with closing(answers), closing(theirs), socket_for_commands() as commands:
        commands.connect(str(stage.home / CONTROL_FILE))
        Channel(commands).send([theirs.fileno()], do="dance")
        os.kill(pid, signal.SIGCONT)
        assert select([answers], [], [], LIMIT_S) != ([], [], [])
    assert stage.stop() == 0


def test_who_asks_and_goes_leaves_nothing_behind(stage: Stage) -> None:
    pid = stage.start_and_wait()
    before = descriptors_of(pid)
    for _ in range(20):
        answers, theirs = channel_pair()
        with closing(answers), closing(theirs), socket_for_commands() as commands:
            commands.connect(str(stage.home / CONTROL_FILE))
            # Few fit into its queue.
            select([], [commands], [])
            Channel(commands).send([theirs.fileno(), theirs.fileno()], do="dance")
    assert "failed" in stage.ask(do="dance")[-1]
    assert descriptors_of(pid) == before
    assert stage.stop() == 0


def test_a_stop_during_a_restart_stops_the_old_server_in_order(stage: Stage) -> None:
    stage.start_and_wait()
    stage.plan(ready="hang")
    answers = stage.asking(do="restart")
    assert [next(answers) for _ in range(3)] == STEPS[:3]
    stage.process.terminate()
    assert next(answers) == {"failed": "the supervisor was told to stop", **GOES_ON}
    assert stage.process.wait(LIMIT_S) == 0
    assert stage.notes()[-2:] == ["took back", "stopped"]
    assert stage.family() == []


def test_a_former_server_that_freezes_is_killed(stage: Stage) -> None:
    stage.plan(go="freeze")
    stage.constants(**SOON_KILLED)
    stage.start_and_wait()
    first = stage.who()["pid"]
    stage.plan()
    assert stage.restart() == DONE
    until(lambda: first not in stage.family())
    assert "a former server has said nothing for" in stage.log()
    assert stage.stop() == 0


def test_the_end_of_a_former_server_that_still_hands_over_is_logged(stage: Stage) -> None:
    stage.plan(going_s=60)
    stage.start_and_wait()
    first = stage.who()["pid"]
    stage.plan()
    assert stage.restart() == DONE
    os.kill(first, signal.SIGKILL)
    said = "has ended (signal 9): clients that it has not handed over connect again"
    until(lambda: f"a former server {said}" in stage.log())
    stage.plan(ready="wait")
    answers = stage.asking(do="restart")
    second = stage.who()["pid"]
    assert [next(answers) for _ in range(3)] == STEPS[:3]
    os.kill(second, signal.SIGKILL)
    until(lambda: f"the old server {said}" in stage.log())
    stage.let_go_on()
    assert [*answers] == [STEPS[3], {"done": True}]
    assert stage.stop() == 0


def test_a_stop_waits_for_old_servers_that_still_hand_over(stage: Stage) -> None:
    stage.plan(going_s=60)
    stage.start_and_wait()
    assert stage.restart() == DONE
    assert stage.restart() == DONE
    assert stage.stop() == 0
    assert [each for each in stage.notes() if "started" not in each].count("stopped") == 3
    assert stage.family() == []


def test_former_servers_are_limited(stage: Stage) -> None:
    stage.plan(going_s=60)
    stage.constants(replacing={"_MOST_GOING": 2})
    stage.start_and_wait()
    answers = [stage.restart()[-1] for _ in range(3)]
    assert [next(iter(each)) for each in answers] == ["done", "done", "failed"]
    assert "wait for a minute" in answers[2]["failed"]


def test_the_supervisor_keeps_its_code_if_the_new_one_has_another_state(stage: Stage) -> None:
    pid = stage.start_and_wait()
    before = Path(f"/proc/{pid}/environ").read_bytes()
    stage.constants(importer={"STATE_VERSION": 2})
    stage.plan(code="new")
    assert stage.restart() == DONE
    until(lambda: "goes on with its old code" in stage.log())
    assert stage.who()["code"] == "new"
    assert Path(f"/proc/{pid}/environ").read_bytes() == before
    assert stage.restart() == DONE
    assert stage.stop() == 0


def test_the_time_for_a_restart_is_what_the_server_has_told(stage: Stage) -> None:
    stage.plan(told={"restart_timeout": HANGING_S})
    stage.start_and_wait()
    assert stage.restart(timeout=20) == DONE
    stage.plan(prepared="hang")
    began = time.monotonic()
    assert "in time" in stage.restart()[-1]["failed"]
    assert HANGING_S <= time.monotonic() - began < LIMIT_S


def test_where_nothing_can_be_handed_over_a_restart_is_a_stop_and_a_start(stage: Stage) -> None:
    stage.constants(replacing={"HANDS_OVER": False})
    stage.start_and_wait()
    stage.plan(code="second")
    assert stage.restart() == [{"done": True}]
    assert stage.who()["code"] == "second"
    assert stage.notes()[1:] == ["stopped", "started ['control', 'main.0']"]
    assert stage.stop() == 0


def test_a_server_that_does_not_stop_is_killed_before_the_next_has_its_sockets(
    stage: Stage,
) -> None:
    stage.constants(replacing={"HANDS_OVER": False})
    stage.plan(stop="hang")
    stage.start_and_wait()
    stage.plan(code="second")
    assert stage.restart(timeout=HANGING_S) == [{"done": True}]
    assert stage.who()["code"] == "second"
    os.kill(stage.who()["pid"], signal.SIGKILL)
    assert stage.who()["code"] == "second"
    assert stage.stop() == 0


def test_sockets_of_a_new_server_that_fails_are_forgotten(stage: Stage) -> None:
    """It may have opened others, by other settings."""
    stage.start_and_wait()
    first = stage.who()
    stage.plan(replaces="main.0", at="other", ready="exit")
    assert "failed" in stage.restart()[-1]
    stage.plan()
    os.kill(first["pid"], signal.SIGKILL)
    assert stage.who()["pid"] != first["pid"]
