"""The life of a server below a supervisor: how it starts, ends, and starts again."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.supervisor.stage import LIMIT_S, Stage, until

pytestmark = pytest.mark.slow  # each starts several processes


def test_a_server_starts_and_ends_with_its_supervisor(stage: Stage) -> None:
    pid = stage.start_and_wait()
    assert stage.who()["pid"] != pid
    assert stage.notes() == ["started []"]
    assert stage.stop() == 0
    assert stage.notes() == ["started []", "stopped"]
    assert stage.family() == []
    assert stage.log() == ""


def test_ctrl_c_stops_the_server_in_order(stage: Stage) -> None:
    pid = stage.start_and_wait()
    # The terminal sends it to all of them.
    os.killpg(pid, signal.SIGINT)
    assert stage.process.wait(LIMIT_S) == 0
    assert stage.notes()[-1] == "stopped"
    assert stage.family() == []


LATE = """\
import os, signal
from holdfast.supervisor.control import Channel
receive = Channel.receive
def receive_and_be_told(channel):
    parcel = receive(channel)
    if parcel is not None and parcel.fields.get("say") == "ended":
        os.kill(os.getpid(), signal.SIGINT)
    return parcel
Channel.receive = receive_and_be_told
"""


def test_a_server_that_ctrl_c_has_ended_earlier_is_not_followed_by_another(stage: Stage) -> None:
    stage.main.write_text(LATE + stage.main.read_text())
    stage.start_and_wait()
    os.kill(stage.who()["pid"], signal.SIGINT)
    assert stage.process.wait(LIMIT_S) == 0
    assert stage.notes() == ["started []", "stopped"]
    assert stage.log() == ""


def test_the_exit_code_of_a_stop_is_the_servers(stage: Stage) -> None:
    stage.plan(code_of_stop=7)
    stage.start_and_wait()
    assert stage.stop() == 7


SLEEP = '__import__("time").sleep(60)'
SLOW_FORK = """\
import os, time
from holdfast.supervisor.control import Channel
fork, send = os.fork, Channel.send
def fork_slowly():
    pid = fork()
    if not pid:
        time.sleep(2)
    return pid
def send_and_note(channel, *given, **fields):
    send(channel, *given, **fields)
    if fields.get("say") == "forked":
        open(os.environ["FAKE_HOME"] + "/told", "w").close()
os.fork, Channel.send = fork_slowly, send_and_note
"""
SLOW = """\
import time
from holdfast.supervisor.control import Channel
send = Channel.send
def send_late(channel, *given, **fields):
    if fields.get("say") == "forked":
        time.sleep(0.5)
    send(channel, *given, **fields)
Channel.send = send_late
"""


def test_a_server_that_is_ready_before_its_process_is_known_stops_in_order(stage: Stage) -> None:
    stage.main.write_text(SLOW + stage.main.read_text())
    stage.plan(code_of_stop=7)
    stage.start_and_wait()
    assert stage.stop() == 7
    assert stage.notes() == ["started []", "stopped"]


@pytest.mark.parametrize("code", [0, 2, 3])
def test_a_first_server_that_cannot_start_ends_the_program_with_its_code_and_text(
    stage: Stage, code: int
) -> None:
    stage.plan(ready="exit", **{"with": code})
    stage.start()
    assert stage.process.wait(LIMIT_S) == code
    assert stage.log() == "holdfast cannot start: the test wants it\n"
    assert stage.family() == []


def test_an_import_that_fails_ends_the_program_with_its_code_and_text(stage: Stage) -> None:
    stage.main.write_text(stage.main.read_text().replace("fake_server", "nothing"))
    stage.start()
    assert stage.process.wait(LIMIT_S) == 1
    assert "No module named 'holdfast.nothing'" in stage.log()


def test_a_killed_server_is_followed_by_another_with_its_sockets(stage: Stage) -> None:
    stage.start_and_wait()
    first = stage.who()["pid"]
    os.kill(first, signal.SIGKILL)
    # It waits in the queue of the socket meanwhile.
    second = stage.who()["pid"]
    assert second != first
    assert stage.notes()[1:] == ["started ['control', 'main.0']"]
    logged = json.loads(stage.log())
    assert logged["level"] == "error"
    assert logged["message"] == "the server has ended (signal 9): another is started"
    assert stage.stop() == 0
    assert stage.process.stdout is not None
    assert stage.process.stdout.read() == ""


def test_a_server_outlives_its_importer_and_the_next_one_has_another(stage: Stage) -> None:
    pid = stage.start_and_wait()
    first = stage.who()["pid"]
    os.kill(importer := stage.parent_of(first), signal.SIGKILL)
    until(lambda: stage.parent_of(first) == pid)
    assert stage.who()["pid"] == first
    os.kill(first, signal.SIGKILL)
    second = stage.who()["pid"]
    assert stage.parent_of(second) not in (pid, importer)
    assert stage.stop() == 0
    assert stage.family() == []


def test_a_server_that_cannot_be_started_is_started_as_soon_as_it_can_be(stage: Stage) -> None:
    stage.constants(running={"TICK_S": 0.1})
    python = stage.home / "python"
    python.symlink_to(sys.executable)
    stage.python = str(python)
    stage.start_and_wait()
    server = stage.who()["pid"]
    os.kill(stage.parent_of(server), signal.SIGKILL)
    python.rename(stage.home / "elsewhere")
    os.kill(server, signal.SIGKILL)
    until(lambda: stage.log().count("no server can be started") > 1)
    assert stage.process.poll() is None
    (stage.home / "elsewhere").rename(python)
    assert stage.who()["pid"] != server
    assert stage.stop() == 0


def test_a_first_server_that_cannot_be_started_ends_the_program(stage: Stage) -> None:
    """As far as anybody can tell, nothing will change about it."""
    python = stage.home / "python"
    python.symlink_to(sys.executable)
    stage.python = str(python)
    stage.main.write_text("import os\nos.unlink('python')\n" + stage.main.read_text())
    stage.start()
    assert stage.process.wait(LIMIT_S) == 1
    assert "FileNotFoundError" in stage.log()


def test_without_its_importer_a_server_stops_in_order(stage: Stage) -> None:
    pid = stage.start_and_wait()
    server = stage.who()["pid"]
    os.kill(stage.parent_of(server), signal.SIGKILL)
    until(lambda: stage.parent_of(server) == pid)
    assert stage.stop() == 0
    assert stage.notes()[-1] == "stopped"


def test_a_killed_server_is_followed_by_another_although_nothing_reads_the_log(
    stage: Stage,
) -> None:
    reader, writer = os.pipe()
    stage.start_and_wait(errors=writer)
    os.close(writer)
    os.close(reader)
    os.kill(first := stage.who()["pid"], signal.SIGKILL)
    assert stage.who()["pid"] != first
    assert stage.stop() == 0


def test_servers_and_importers_end_when_the_supervisor_is_killed(stage: Stage) -> None:
    pid = stage.start_and_wait()
    os.kill(pid, signal.SIGKILL)
    until(lambda: stage.family() == [])
    assert stage.notes()[-1] == "abandoned"


def test_a_server_that_ends_five_times_in_a_row_waits_before_the_next(stage: Stage) -> None:
    stage.plan(ready="die")
    stage.constants(places={"_LONGEST_PAUSE_S": 0.3})
    before_s = time.monotonic()
    stage.start()
    while stage.notes().count("started []") < 5:
        before_s = time.monotonic()
        time.sleep(0.01)
    until(lambda: stage.notes().count("started []") >= 7)
    assert time.monotonic() - before_s > 2 * 0.3
    # The next one lives.
    stage.plan()
    assert stage.process.stdout is not None
    assert stage.process.stdout.readline() == "holdfast is ready: http://fake\n"
    assert stage.stop() == 0


def test_while_there_is_no_server_another_process_stands_in_until_the_next_one_is_ready(
    stage: Stage,
) -> None:
    stage.constants(places={"_SHORT_LIVES": 1, "_LONGEST_PAUSE_S": 0.3})
    stage.start_and_wait()
    stage.plan(ready="die")
    os.kill(stage.who()["pid"], signal.SIGKILL)
    until(lambda: stage.log().count("another is started") >= 3)
    stands_in = "stands in with ['control', 'main.0']"
    until(lambda: stage.notes().count(stands_in) == 1)
    assert "stopped" not in stage.notes()
    stage.plan()
    stage.who()
    until(lambda: "stopped" in stage.notes())
    assert stage.stop() == 0
    assert stage.notes().count(stands_in) == 1
    assert stage.family() == []


def test_a_stand_in_that_ends_is_followed_by_another_in_the_next_pause(stage: Stage) -> None:
    stage.constants(places={"_SHORT_LIVES": 1, "_LONGEST_PAUSE_S": 0.3})
    stage.plan(stand_in="exit")
    stage.start_and_wait()
    stage.plan(ready="die", stand_in="exit")
    os.kill(stage.who()["pid"], signal.SIGKILL)
    until(lambda: "\n".join(stage.notes()).count("stands in") >= 2)
    assert stage.stop() == 0


def test_a_stop_in_a_pause_ends_the_stand_in(stage: Stage) -> None:
    stage.constants(places={"_SHORT_LIVES": 1, "_LONGEST_PAUSE_S": 60})
    stage.start_and_wait()
    stage.plan(ready="exit")
    os.kill(stage.who()["pid"], signal.SIGKILL)
    until(lambda: any("stands in" in each for each in stage.notes()))
    assert stage.stop() == 0
    assert stage.notes()[-1] == "stopped"
    assert stage.family() == []


def test_a_restart_ends_the_pause_before_the_next_server(stage: Stage) -> None:
    stage.plan(code="broken")
    # The first one of these pauses has 32 s.
    stage.constants(places={"_SHORT_LIVES": -4, "_LONGEST_PAUSE_S": 60})
    stage.start_and_wait()
    os.kill(stage.who()["pid"], signal.SIGKILL)
    until(lambda: "another is started" in stage.log())
    stage.plan(code="repaired")
    assert stage.restart() == [{"done": True}]
    assert stage.who()["code"] == "repaired"
    assert stage.stop() == 0


def test_a_stop_while_the_server_is_imported_ends_it_at_once(stage: Stage) -> None:
    stage.main.write_text(
        stage.main.read_text().replace('__import__("holdfast.fake_server")', SLEEP)
    )
    assert SLEEP in stage.main.read_text()
    stage.start()
    # Its handlers for signals are there before the importer.
    until(lambda: len(stage.family()) == 2)
    time.sleep(0.1)
    assert stage.stop() == 0
    assert stage.notes() == []
    assert stage.family() == []


def test_a_stop_just_after_the_server_is_forked_ends_it(stage: Stage) -> None:
    stage.main.write_text(SLOW_FORK + stage.main.read_text())
    stage.start()
    # Before it is told of the fork, the supervisor ends the importer instead.
    until(lambda: (stage.home / "told").exists())
    assert stage.stop() == 0
    assert stage.notes() == []
    assert stage.family() == []


def test_a_server_that_is_silent_is_logged_and_later_killed(stage: Stage) -> None:
    stage.plan(told={"silent_timeout": 3.0})
    stage.constants(running={"TICK_S": 0.1}, watching={"SILENT_S": 2.0})
    stage.start_and_wait()
    server = stage.who()["pid"]
    time.sleep(2.2)
    assert stage.log() == ""
    stage.plan(computes_s=60.0)
    stage.who()
    until(lambda: "has said nothing for 2 s" in stage.log())
    until(lambda: server not in stage.family())
    stage.plan()
    assert stage.who()["pid"] != server
    assert stage.log().count("nothing for 3 s: it is killed") == 1


def test_a_server_that_does_not_run_is_killed_sooner(stage: Stage) -> None:
    stage.plan(told={"frozen_timeout": 2.0})
    stage.constants(running={"TICK_S": 0.1})
    stage.start_and_wait()
    server = stage.who()["pid"]
    os.kill(server, signal.SIGSTOP)
    assert stage.who()["pid"] != server
    assert stage.log().count("the server has not run for 2 s: it is killed") == 1


def test_a_server_that_hangs_without_using_the_processor_is_killed_as_soon(stage: Stage) -> None:
    stage.plan(told={"frozen_timeout": 2.0})
    stage.constants(running={"TICK_S": 0.1})
    stage.start_and_wait()
    server = stage.who()["pid"]
    stage.plan(hangs_s=60.0)
    stage.who()
    until(lambda: server not in stage.family())
    stage.plan()
    assert stage.who()["pid"] != server
    assert "the server has not run for 2 s: it is killed" in stage.log()


def test_a_server_that_was_stopped_for_a_moment_lives(stage: Stage) -> None:
    stage.plan(told={"frozen_timeout": 4.0})
    stage.constants(running={"TICK_S": 0.1})
    stage.start_and_wait()
    server = stage.who()["pid"]
    for _ in range(5):
        os.kill(server, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(server, signal.SIGCONT)
        stage.who()
    assert stage.who()["pid"] == server
    assert stage.log() == ""


def test_a_supervisor_that_was_stopped_itself_does_not_blame_the_server(stage: Stage) -> None:
    stage.constants(running={"TICK_S": 0.2}, watching={"SILENT_S": 3.0})
    pid = stage.start_and_wait()
    server = stage.who()["pid"]
    for each in (pid, server):
        os.kill(each, signal.SIGSTOP)
    time.sleep(3.2)
    os.kill(pid, signal.SIGCONT)
    time.sleep(0.2)
    os.kill(server, signal.SIGCONT)
    stage.who()
    assert stage.stop() == 0
    assert stage.log() == ""


def test_orphans_below_the_supervisor_are_reaped(stage: Stage) -> None:
    pid = stage.start_and_wait()
    stage.plan(orphan=True)
    os.kill(stage.who()["pid"], signal.SIGKILL)
    stage.who()
    until(lambda: any(note.startswith("orphan") for note in stage.notes()))
    orphan = int(next(each for each in stage.notes() if each.startswith("orphan")).split()[1])
    # It may also end between two steps of a look.
    with suppress(FileNotFoundError, ProcessLookupError):
        until(lambda: stage.parent_of(orphan) == pid and False)
    assert not os.path.exists(f"/proc/{orphan}")


CONTAINER = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


def can_contain() -> bool:
    """Whether this user may make a container of processes."""
    try:
        return not subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


def start_contained(stage: Stage) -> int:
    """Start a supervisor as process 1 of a container; returns its pid outside."""
    stage.start(*CONTAINER)
    assert stage.process.stdout is not None
    assert stage.process.stdout.readline() == "holdfast is ready: http://fake\n", stage.log()
    (pid,) = (each for each in stage.family() if stage.parent_of(each) == stage.process.pid)
    return pid


# Elsewhere they do not exist, because CI takes a skip for a fault of its machine.
if can_contain():

    def test_as_process_1_the_supervisor_passes_the_code_of_the_server_on(stage: Stage) -> None:
        stage.plan(code_of_stop=7)
        os.kill(start_contained(stage), signal.SIGTERM)
        assert stage.process.wait(LIMIT_S) == 7

    def test_as_process_1_the_supervisor_is_replaced_and_reaps_orphans(stage: Stage) -> None:
        pid = start_contained(stage)
        stage.plan(orphan=True)
        assert stage.restart()[-1] == {"done": True}
        until(lambda: any(each.startswith("orphan") for each in stage.notes()))
        # Of the orphan, the old server and the old importer nothing is left, no zombie either.
        until(lambda: len(children_of(pid)) == 1)
        os.kill(pid, signal.SIGTERM)
        assert stage.process.wait(LIMIT_S) == 0


def children_of(pid: int) -> list[str]:
    """The children of a process, those that nobody has reaped among them."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_hangup_under_nohup_changes_nothing(stage: Stage) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        pid = stage.start_and_wait()
    finally:
        signal.signal(signal.SIGHUP, before)
    server = stage.who()["pid"]
    os.killpg(pid, signal.SIGHUP)
    time.sleep(0.2)
    assert stage.who()["pid"] == server
    assert stage.log() == ""


def test_a_server_stops_when_its_terminal_is_closed(stage: Stage) -> None:
    controller, terminal = pty.openpty()
    stage.start(terminal=terminal)
    os.close(terminal)
    until(lambda: stage.notes() == ["started []"] and (stage.home / "serving.0").exists())
    stage.who()
    os.close(controller)
    assert stage.process.wait(LIMIT_S) == 0
    assert stage.notes()[-1] == "stopped"
    assert stage.family() == []
