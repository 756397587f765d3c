"""A generated journal is a sound one: the audit finds nothing, and reports have its totals."""

from pathlib import Path

from bench.journal.generate import generate
from bench.journal.life import Size
from holdfast.journal.frame import decode
from holdfast.pipeline.census import Group
from holdfast.pipeline.ingest import write_batch
from holdfast.pipeline.lake import EVENTS, Lake
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.flow import FUNNEL
from holdfast.pipeline.source.event_files import write_events
from holdfast.pipeline.source.table import NumberedFrame, tables
from holdfast.pipeline.tasks import LocalTasks
from tests.pipeline.audited import findings_of, violations


class Shelf:
    """Keeps all frames, numbered for each node."""

    def __init__(self) -> None:
        self.frames: list[NumberedFrame] = []

    def write(self, node: str, frame: bytes) -> None:
        known = sum(each.frame.head.node == node for each in self.frames)
        self.frames.append(NumberedFrame(decode(frame), "seed-1", known + 1))

    def close(self, truth: bytes) -> None:
        """Nothing is kept."""


def test_a_generated_journal_passes_the_audit_and_adds_up(tmp_path: Path) -> None:
    shelf, lake = Shelf(), Lake(tmp_path)
    truth = generate(shelf, events=20_000, nodes=2, hours=0.2, seed=3, size=Size(30))
    lake.sign()
    receipts = [
        row
        for part in write_events(tables(shelf.frames), lake.root / EVENTS)
        for row in part.to_pylist()
    ]
    groups = [Group(**{name: row[name] for name in Group._fields}) for row in receipts]
    with lake.changing():
        write_batch(LocalTasks(1), {row["file"] for row in receipts}, groups, lake, {})
    assert violations(findings_of(lake)) == []
    with of_lake(lake) as opened:
        rows = opened.ask(FUNNEL).by_name()
        of_work = (
            "select count(*) as n from {events} where kind = 'moved' and receiver like 'work:%'"
        )
        [(out_of_work,)] = opened.ask(of_work).rows
    due = truth["kinds"]["due"]
    wanted = {
        "copies": truth["copies"] - due,
        "moves": truth["kinds"]["moved"] - out_of_work + due,
        "replayed": truth["kinds"]["replayed"],
        "dead": truth["kinds"]["dead"],
        "open": truth["open"],
    }
    assert {name: sum(row[name] for row in rows) for name in wanted} == wanted
    assert min(out_of_work, due, truth["kinds"]["moved"] - out_of_work) > 0
    assert truth["kinds"]["moved"] > 20
