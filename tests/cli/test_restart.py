"""`holdfast restart`: asks the supervisor, which is played, and says how it goes."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from select import select
from threading import Thread

import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.main import program
from holdfast.cli.serve import telling_failures
from holdfast.supervisor.control import (
    CONTROL_FILE,
    Channel,
    Say,
    channel_pair,
    socket_for_commands,
)

Answer = list[dict[str, object]]

DONE: Answer = [{"step": "starting"}, {"step": "prepared"}, {"done": True}]
FAILED: Answer = [{"step": "starting"}, {"failed": "port: 8080 is in use", "serving": True}]


def restart(data: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["restart", "--data", str(data), *words])


@contextmanager
def supervisor(data: Path, *answers: Answer) -> Iterator[list[dict[str, object]]]:
    """Give each client one of these answers; yields what they ask."""
    asked: list[dict[str, object]] = []

    def serve() -> None:
        for answer in answers:
            select([commands], [], [], 60)
            parcel = commands.receive()
            assert parcel is not None
            asked.append(parcel.fields)
            with closing(Channel.of_descriptor(*parcel.descriptors)) as client:
                for line in answer:
                    client.send(**line)

    with socket_for_commands() as listening:
        listening.bind(str(data / CONTROL_FILE))
        commands = Channel(listening)
        thread = Thread(target=serve)
        thread.start()
        yield asked
        thread.join(60)
        assert not thread.is_alive()


def test_a_restart_says_each_step_and_that_it_is_done(tmp_path: Path) -> None:
    with supervisor(tmp_path, DONE) as asked:
        done = restart(tmp_path)
    assert done.exit_code == 0
    assert done.stdout == "the server has been restarted\n"
    assert done.stderr.splitlines() == [
        "the new server starts; the old one goes on",
        "the new server is prepared; the old one leaves",
    ]
    assert asked == [{"do": "restart"}]


def test_a_restart_says_why_it_failed_and_who_serves(tmp_path: Path) -> None:
    with supervisor(tmp_path, FAILED) as asked:
        done = restart(tmp_path, "--timeout", "7.5")
    assert done.exit_code == 1
    text = "holdfast: the restart has failed, and the old server goes on: port: 8080 is in use"
    assert done.stderr.splitlines()[-1] == text
    assert asked == [{"do": "restart", "timeout": 7.5}]


@pytest.mark.parametrize(("is_serving", "became"), [(True, "serves"), (False, "starts")])
def test_a_restart_says_what_serves_once_the_old_server_has_ended(
    tmp_path: Path, *, is_serving: bool, became: str
) -> None:
    ended = {"failed": "a reason", "serving": is_serving, "another": True}
    with supervisor(tmp_path, [ended]):
        done = restart(tmp_path)
    text = f"the old server has ended, and another one {became} in its place"
    assert done.stderr == f"holdfast: the restart has failed, {text}: a reason\n"


def test_a_failure_without_an_old_server_promises_none(tmp_path: Path) -> None:
    with supervisor(tmp_path, [{"failed": "the server is still starting", "serving": False}]):
        done = restart(tmp_path)
    assert done.exit_code == 1
    assert done.stderr == "holdfast: the restart has failed: the server is still starting\n"


@pytest.mark.parametrize(("answer", "code"), [(DONE, 0), (FAILED, 1)])
def test_programs_read_the_outcome_as_a_line_of_json(
    tmp_path: Path, answer: Answer, code: int
) -> None:
    with supervisor(tmp_path, answer):
        done = restart(tmp_path, "--json")
    assert done.exit_code == code
    assert json.loads(done.stdout) == answer[-1]


def test_the_end_of_the_supervisor_is_a_failure(tmp_path: Path) -> None:
    with supervisor(tmp_path, DONE[:1]):
        done = restart(tmp_path)
    assert done.exit_code == 1
    assert "the supervisor ended before the restart did" in done.stderr


def left_by_a_killed_supervisor(data: Path) -> None:
    with socket_for_commands() as listening:
        listening.bind(str(data / CONTROL_FILE))


@pytest.mark.parametrize("prepare", [lambda _: None, left_by_a_killed_supervisor])
def test_without_a_supervisor_it_says_what_to_do(
    tmp_path: Path, prepare: Callable[[Path], None]
) -> None:
    prepare(tmp_path)
    done = restart(tmp_path)
    assert done.exit_code == 3
    assert "Without a supervisor, stop the server and start it again" in done.stderr


def test_the_data_directory_is_that_of_a_server_started_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    with supervisor(tmp_path, DONE):
        assert CliRunner().invoke(program, ["restart"]).exit_code == 0


def test_the_supervisor_learns_why_a_server_failed() -> None:
    ours, theirs = channel_pair()
    error = RuntimeError("not today")
    error.add_note("an extension said so")
    with pytest.raises(RuntimeError), telling_failures(theirs):
        raise error
    said = ours.receive()
    assert said is not None
    assert said.fields == {
        "say": Say.FAILED,
        "why": "RuntimeError: not today; an extension said so",
    }
    ours.close()
    theirs.close()
