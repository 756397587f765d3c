"""No bit of the tables can flip without notice: commands answer as before, or name the file."""

import shutil
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from random import Random
from typing import Self

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from holdfast.cli import pipeline as commands
from holdfast.cli import pipeline_upkeep
from holdfast.cli.main import program
from holdfast.pipeline import delta, digests, upkeep
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import CARRIED, EVENTS, TABLES, Lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.source.event_files import write_events
from holdfast.pipeline.verification import verify
from tests.effort import TIMES
from tests.pipeline.test_upkeep import ingested, later, rows
from tests.unit.pipeline.events import START_US
from tests.unit.pipeline.stories import acked, the_story

NOW_MS = START_US // 1000 + 10 * 86_400_000


class Then(datetime):
    """A clock that stands still: a day must not end between two answers."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(NOW_MS / 1000, tz)


QUESTIONS = (
    ("audit",),
    ("verify",),
    ("report", "funnel"),
    ("report", "latency"),
    ("retain", "--days", "1", "--dry-run"),
    ("replay", "--all", "--dry-run"),
)
# Of these, about each flipped bit.
ASKED = 1 if TIMES == 1 else 2


def ask(lake: Lake, *words: str) -> Result:
    return CliRunner().invoke(program, ["pipeline", *words, "--json", "--lake", str(lake.root)])


def answers(lake: Lake) -> Iterator[tuple[tuple[str, ...], Result]]:
    for words in QUESTIONS:
        yield words, ask(lake, *words)


def flip(file: Path, chance: Random) -> None:
    """Flip one bit of a file."""
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days in four batches, one day merged, with checkpoints and what commands remember."""
    lake = Lake(tmp_path_factory.mktemp("made"))
    told = the_story()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta, "_SETTINGS", {"delta.checkpointInterval": "2"})
        for number, events in enumerate((told[:30], told[30:])):
            ingested(lake, number, events)
        upkeep.compact(lake, [*upkeep.to_compact(lake)][:1], lambda: None)
        for number, events in enumerate((told[:30], told[30:]), 2):
            ingested(lake, number, [later(each) for each in events])
    assert [*lake.root.glob("*/_delta_log/*.checkpoint.parquet")]
    for _ in answers(lake):
        pass
    return lake.root


@pytest.fixture
def lake(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr(commands, "now_ms", lambda: NOW_MS)
    monkeypatch.setattr(pipeline_upkeep, "datetime", Then)
    return Lake(shutil.copytree(made, tmp_path / "lake"))


def files_in(lake: Lake) -> list[Path]:
    return sorted(file for file in lake.root.rglob("*") if file.is_file() and file.stat().st_size)


@pytest.mark.slow
@pytest.mark.untraced
@pytest.mark.parametrize("seed", range(TIMES))
def test_every_command_answers_as_before_or_names_the_file(lake: Lake, seed: int) -> None:
    chance = Random(seed)
    before = dict(answers(lake))
    assert {found.exit_code for found in before.values()} <= {0, 5}
    named = 0
    for file in files_in(lake):
        kept = file.read_bytes()
        flip(file, chance)
        for words in chance.sample(QUESTIONS, ASKED):
            found = ask(lake, *words)
            where = f"{words} with {file}: {found.exit_code} {found.stderr} {found.exception!r}"
            assert found.exception is None or isinstance(found.exception, SystemExit), where
            if found.exit_code == 1:
                # A flipped version is that of another holdfast, which is what the text says.
                assert file.name == "_version" or file.name in found.output, where
                named += 1
            else:
                answer = (found.exit_code, found.stdout)
                assert answer == (before[words].exit_code, before[words].stdout), where
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(kept)
    assert named > 25 * ASKED


def damaged(lake: Lake, table: str) -> Path:
    """One of the table's files, with one bit flipped."""
    file = lake.files(table)[0]
    flip(file, Random(table))
    return file


@pytest.mark.parametrize("table", [table for table in TABLES if table != "lost"])
def test_verify_names_a_changed_file_of_any_table(lake: Lake, table: str) -> None:
    file = damaged(lake, table)
    found = verify(lake, lambda done, total: None)
    assert [(flaw.table, flaw.file) for flaw in found.flaws] == [(table, str(file))]
    said = ask(lake, "verify")
    assert (said.exit_code, str(file) in said.stdout) == (1, True)


@pytest.mark.parametrize("table", CARRIED)
def test_an_ingest_uses_no_changed_file(lake: Lake, table: str) -> None:
    file = damaged(lake, table)
    with pytest.raises(PipelineFailed, match=f"{file} was changed after it was written"):
        ingested(lake, 4, [acked(3 * 86_400, 9, "bob/1")])


@pytest.mark.parametrize("table", [EVENTS, "life", "latency"])
def test_a_changed_file_is_neither_merged_nor_cut(lake: Lake, table: str) -> None:
    small = [file for file in lake.files(table) if table != EVENTS or "11-23" in str(file)]
    flip(small[0], Random(1))
    said = ask(lake, "compact")
    assert (said.exit_code, str(small[0]) in said.stderr) == (1, True)
    assert {*small} <= {*lake.listed(table)}
    if table != EVENTS:
        said = ask(lake, "retain", "--days", "1", "--yes")
        assert (said.exit_code, str(small[0]) in said.stderr) == (1, True)


def test_changed_events_may_be_given_up(lake: Lake) -> None:
    damaged(lake, EVENTS)
    assert [upkeep.give_up_lost(lake) for _ in range(2)] == [1, 0]
    assert verify(lake, lambda done, total: None).flaws == []


@pytest.mark.parametrize("name", [*REPORTS])
def test_a_report_reads_only_the_tables_that_it_needs(lake: Lake, name: str) -> None:
    before = ask(lake, "report", name).stdout
    file = damaged(lake, "life")
    said = ask(lake, "report", name)
    needs = {"funnel": True, "dead": True, "throughput": False, "publishers": False}
    if needs.get(name, said.exit_code == 1):
        assert (said.exit_code, str(file) in said.stderr) == (1, True)
    else:
        assert (said.exit_code, said.stdout) == (0, before)


def test_what_an_audit_remembers_is_found_out_again_if_it_changed(lake: Lake) -> None:
    before = ask(lake, "audit").stdout
    for file in (lake.root / "_audit").rglob("*.parquet"):
        flip(file, Random(3))
    assert ask(lake, "audit").stdout == before


@pytest.fixture
def older(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The same tables as an earlier version would have written them."""
    for table in TABLES:
        (lake.root / table / "_digests").unlink()
        for log in (lake.root / table / "_delta_log").glob("*.json"):
            log.write_text(log.read_text().replace("-sha256-", "-"))
        for file in (lake.root / table).rglob("*-sha256-*.parquet"):
            file.rename(file.with_name(file.name.replace("-sha256-", "-")))
        for file in (lake.root / table / "_delta_log").glob("*checkpoint*"):
            file.unlink()
    return lake


def test_tables_of_an_earlier_version_get_digests_afterwards(older: Lake) -> None:
    before = {table: rows(older, table) for table in TABLES}
    said = ask(older, "verify")
    assert (said.exit_code, "--add-digests" in said.stderr) == (5, True)
    assert "without a digest" in ask(older, "audit").stderr
    assert ask(older, "verify", "--add-digests").exit_code == 0
    assert {table: rows(older, table) for table in TABLES} == before
    file = damaged(older, "life")
    assert ask(older, "verify").exit_code == 1
    with pytest.raises(PipelineFailed, match=f"{file} was changed"):
        older.files("life")


def test_a_task_names_its_file_by_its_digest(tmp_path: Path) -> None:
    from tests.unit.pipeline.test_event_files import events

    [receipt] = write_events(iter([events((0, "acked", None))]), tmp_path)
    file = tmp_path / receipt.column("file")[0].as_py()
    assert digests.given(file.name) == digests.digest_of(file)
    assert len(pq.ParquetFile(file).read()) == 1
