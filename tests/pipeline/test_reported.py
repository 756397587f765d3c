"""A kill of the server is reported by the audit that first covers it, and not for ever."""

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.main import program
from tests.pipeline.stored import store_events
from tests.unit.pipeline.events import event, published
from tests.unit.pipeline.framed_events import FramedEvent, one_run
from tests.unit.pipeline.stories import acked, books, handed, start

KILLED = ["run.unclean"]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Tables of a server that was killed once, and stopped in the end."""
    told = [published(1, 1), handed(2, 1, "ann/1"), acked(3, 1, "ann/1")]
    first = [start(0), *told, *books(4, accepted=1, acked=1)]
    second = [start(100), *books(101, accepted=0), event("node", 102, what="stop")]
    runs = {"seed-1": first, "seed-2": second}
    framed = [
        FramedEvent(each, epoch, seq)
        for epoch, events in runs.items()
        for seq, each in enumerate(events, 1)
    ]
    return store_events(tmp_path, framed).root


def audit(lake: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["pipeline", "audit", "--json", "--lake", str(lake), *words])


def kinds(said: Result) -> list[str]:
    return [orjson.loads(line)["kind"] for line in said.stdout.splitlines()]


def test_only_the_first_audit_of_everything_fails_because_of_a_kill(lake: Path) -> None:
    # This one sees a part, so it does not speak for the others.
    assert audit(lake, "--channel", "/a").exit_code == 5
    first, second = audit(lake), audit(lake)
    assert (first.exit_code, kinds(first)) == (5, KILLED)
    assert (second.exit_code, kinds(second)) == (0, ["run.reported"])
    assert "run.unclean, as an earlier audit has reported" in second.stdout


def test_what_was_reported_is_reported_again_if_that_is_forgotten(lake: Path) -> None:
    assert audit(lake).exit_code == 5
    (lake / "_audit" / "reported.json").unlink()
    assert (audit(lake).exit_code, audit(lake).exit_code) == (5, 0)


def test_a_server_that_is_silent_is_reported_by_each_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.pipeline.now_ms", lambda: 1_800_000_000_000)
    silent = store_events(tmp_path, one_run([start(0), published(1, 0)])).root
    for _ in range(2):
        said = audit(silent)
        assert (said.exit_code, kinds(said)) == (5, ["run.silent"])
