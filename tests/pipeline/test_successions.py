"""The journal balances over servers that follow one another, and no passing message is lost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.pipeline.copies import LOST
from holdfast.pipeline.ingest import Source, take_what_is_there
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.tasks import local_tasks
from holdfast.supervisor.control import Say
from tests.pipeline.audited import findings_of, violations
from tests.pipeline.others import asked
from tests.store.servers import ValkeyServer
from tests.web.played_supervisor import PlayedSupervisor
from tests.web.test_succession import PlainClient

pytestmark = pytest.mark.untraced

# Sessions do not end while the journal is read on a busy machine.
SETTINGS = {"journal": True, "max_interval": 100_000}


def fail_after_opening(played: PlayedSupervisor) -> None:
    """A successor opens the store and ends; the server takes its place back."""
    successor, _ = played.prepare()
    played.leave()
    assert played.open(successor)["say"] == Say.READY
    successor.kill()
    assert played.take_back()["say"] == Say.BACK


def fail_before_opening(played: PlayedSupervisor) -> None:
    successor, _ = played.prepare()
    played.leave()
    successor.kill()
    assert played.take_back()["say"] == Say.BACK


@pytest.mark.parametrize(
    "step", [PlayedSupervisor.restart, fail_before_opening, fail_after_opening]
)
@pytest.mark.parametrize("is_read_between", [False, True])
def test_copies_of_passing_messages_outlive_a_restart(
    step: Callable[[PlayedSupervisor], None], is_read_between: bool, tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "lake")
    with (
        ValkeyServer() as valkey,
        local_tasks(1) as tasks,
        PlayedSupervisor(tmp_path, {"redis": valkey.url, **SETTINGS}) as played,
    ):

        def ingest() -> None:
            take_what_is_there(tasks, Source(valkey.url), lake, lambda taken: None)

        acking, other = PlainClient(played.url), PlainClient(played.url)
        acking.publish(1)
        assert other.connect() == [1]
        if is_read_between:
            ingest()
        step(played)
        if is_read_between:
            ingest()
        acking.publish(2)
        assert acking.connect() == [1, 2]
        assert other.connect() == [2]
        acking.connect()
        other.connect()
        played.restart()
        ingest()
        found = findings_of(lake)
    assert violations(found) == [], found
    states = (
        "select count(*) filter (state = 'acked'), count(*) from life where receiver is not null"
    )
    assert asked(lake, states) == (4, 4)
    assert asked(lake, f"select count(*) from life where state = '{LOST}'") == (0,)
