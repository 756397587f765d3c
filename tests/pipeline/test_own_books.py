"""Every cell of every report equals the books that clients keep of their own traffic.

HOLDFAST_BOOKS says how often the server is killed, and HOLDFAST_BOOKS_SEED what happens.
"""

import os
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.pipeline.ingest import Source, take_what_is_there
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.reports.flow import FUNNEL
from holdfast.pipeline.reports.sums import recall
from holdfast.pipeline.reports.tables import Answer
from holdfast.pipeline.tasks import local_tasks
from tests.pipeline.audited import Findings, findings_of, violations
from tests.pipeline.bookkeeping.answers import ANSWERS
from tests.pipeline.bookkeeping.ledger import Ledger
from tests.pipeline.bookkeeping.stamps import events_of, keep_frames, stamp
from tests.pipeline.bookkeeping.town import town
from tests.pipeline.bookkeeping.traffic import Traffic
from tests.store.servers import ValkeyServer

pytestmark = pytest.mark.untraced

KILLS = int(os.environ.get("HOLDFAST_BOOKS", "2"))
SEED = int(os.environ.get("HOLDFAST_BOOKS_SEED", "5"))
Letters = Counter[tuple[int, str, str, int]]


class Begun(NamedTuple):
    """The books, and what is to agree with them."""

    books: Ledger
    lake: Lake
    letters: Letters
    findings: Findings


def traffic_and_tables(place: Path, opened: ExitStack) -> Begun:
    store, lake = opened.enter_context(ValkeyServer()), Lake(place)
    tasks = opened.enter_context(local_tasks(1))

    def ingest() -> None:
        keep_frames(store)
        taken = take_what_is_there(tasks, Source(store.url), lake, lambda taken: None)
        assert taken.lacking == {}

    with town(store, SEED) as place_of_traffic:
        Traffic(place_of_traffic).run(KILLS, after_each=ingest)
        letters = place_of_traffic.all_letters()
    ingest()
    stamp(place_of_traffic.ledger, events_of(store))
    return Begun(place_of_traffic.ledger, lake, letters, findings_of(lake))


@pytest.mark.slow
def test_every_cell_of_every_report_agrees_with_the_books_of_those_who_made_the_traffic(
    tmp_path: Path,
) -> None:
    with ExitStack() as opened:
        books, lake, letters, found = traffic_and_tables(tmp_path, opened)
    died = Counter(
        (copy.message.id, copy.receiver, copy.death.code if copy.death else "", copy.generation)
        for copy in books.dead()
    )
    assert letters == died
    assert violations(found) == []
    with of_lake(lake) as tables:
        wrong = {name: _wrong(books, name, tables.ask(REPORTS[name])) for name in ANSWERS}
        # The funnel that operators see adds up what it remembers.
        recall(tables, lake)
        wrong["remembered funnel"] = _wrong(books, "funnel", tables.ask(FUNNEL))
    assert {name: rows for name, rows in wrong.items() if rows} == {}
    assert ANSWERS.keys() == REPORTS.keys()
    # The traffic has something for every report.
    assert [name for name, (_, answer) in ANSWERS.items() if not answer(books)] == ["unusual"]


def _wrong(books: Ledger, name: str, answer: Answer) -> dict[Any, Any]:
    """The rows that disagree: what was expected and what was found."""
    keys, expect = ANSWERS[name]
    found = {tuple(row[key] for key in keys): row for row in answer.by_name()}
    assert len(found) == len(answer.rows), name
    wanted = {
        key: {**dict(zip(keys, key, strict=True)), **row} for key, row in expect(books).items()
    }
    wrong: dict[Any, Any] = {}
    for key in {*wanted, *found}:
        want, row = wanted.get(key), found.get(key)
        if want is None or row is None:
            wrong[key] = want, row
            continue
        assert want.keys() == row.keys(), name
        cells = {
            column: (cell, row[column]) for column, cell in want.items() if cell != row[column]
        }
        if cells:
            wrong[key] = cells
    return wrong
