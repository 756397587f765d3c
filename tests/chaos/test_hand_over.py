"""A hand-over that is killed at any step: what serves afterwards, and what is lost.

Sessions with names lose nothing. Those without go on as long as one process has them, or has given
them completely.
"""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.chaos.arena import arena
from tests.chaos.checker import Result
from tests.chaos.hand_overs import PLAIN, Blow, Outcome, Whom, add_people, restart
from tests.chaos.steps import OF_FORMER, OF_SUCCESSOR, STEPS
from tests.chaos.supervised import Supervised

KEPT: frozenset[str] = frozenset()
LOST = frozenset(PLAIN)
# The former server dies, and with it a successor that did not serve: another one starts.
FORMER = {
    "told to leave": LOST,
    "paused": LOST,
    "settled": LOST,
    "given half written": LOST,
    "given complete": KEPT,
    "journal closed": KEPT,
    "store given": KEPT,
    "valkey let go": KEPT,
}
# From here on, the successor needs nothing of it.
LEFT = ("left", "told to go", "half handed over", "handed over")
# The former server takes its place back from each of them but the last.
SUCCESSOR = {**dict.fromkeys(OF_SUCCESSOR, KEPT), "ready": LOST}
# Both die; the third one has what was given until a server serves with it.
BOTH = {
    "told to open": KEPT,
    # It has not noted yet that what was given is for it.
    "opened": LOST,
    "given read": KEPT,
    "half loaded": KEPT,
    "loaded": KEPT,
    "given removed": LOST,
    "listening": LOST,
    "ready": LOST,
}
# Clients wait meanwhile, so a server that freezes is killed. Some steps: each takes 5 s.
LEAVING = ("told to leave", "given half written", "given complete", "valkey let go")
OPENING = [each for each in BOTH if each != "ready"]
ENDED = "the old server has ended (signal 9): see the log"
NEW_ENDED = "the new server has ended (signal 9): see the log"
# Blows, why the restart failed (None: that depends on what is faster), and what ended.
Row = tuple[tuple[Blow, ...], str | None, frozenset[str]]


def _row(*blows: Blow, failed: str | None, lost: frozenset[str]) -> Row:
    return blows, failed, lost


def _frozen(step: str) -> Blow:
    return Blow(step, number=signal.SIGSTOP)


UNDISTURBED = _row(failed="", lost=KEPT)
OF_FORMERS = [
    *(_row(Blow(step), failed=ENDED, lost=lost) for step, lost in FORMER.items()),
    *(_row(Blow(step), failed="", lost=KEPT) for step in LEFT),
]
FROZEN_FORMERS = [
    *(_row(_frozen(step), failed=ENDED, lost=FORMER[step]) for step in LEAVING),
    *(_row(_frozen(step), failed="", lost=KEPT) for step in ("left", "half handed over")),
]
OF_SUCCESSORS = [
    _row(Blow(step), failed="" if step == "ready" else NEW_ENDED, lost=lost)
    for step, lost in SUCCESSOR.items()
]
FROZEN_SUCCESSORS = [_row(_frozen(step), failed=NEW_ENDED, lost=KEPT) for step in OPENING]
OF_BOTH = [
    _row(Blow("left"), Blow(step), failed="" if step == "ready" else NEW_ENDED, lost=lost)
    for step, lost in BOTH.items()
]
# The servers see it and end; what they had is given to the servers of the next supervisor.
OF_SUPERVISORS = [
    _row(
        Blow(step, Whom.SUPERVISOR),
        failed=None,
        lost=KEPT,
    )
    for step in STEPS
]
# It comes back in time, or the former server goes on.
OF_STORES = [_row(Blow(step, Whom.STORE), failed=None, lost=KEPT) for step in STEPS]
TABLE: Mapping[str, Sequence[Row]] = {
    "the former server": [UNDISTURBED, *OF_FORMERS],
    "the successor": [UNDISTURBED, *OF_SUCCESSORS],
    "the former server, frozen": FROZEN_FORMERS,
    "the successor, frozen": FROZEN_SUCCESSORS,
    "both servers": OF_BOTH,
    "the supervisor": OF_SUPERVISORS,
    "the store": OF_STORES,
}
# For a short run.
SOME = {
    "some of each": [
        UNDISTURBED,
        _row(Blow("paused"), failed=ENDED, lost=LOST),
        _row(Blow("valkey let go"), failed=ENDED, lost=KEPT),
        _row(Blow("half loaded"), failed=NEW_ENDED, lost=KEPT),
        _row(Blow("listening"), failed=NEW_ENDED, lost=KEPT),
        _row(Blow("left"), Blow("loaded"), failed=NEW_ENDED, lost=KEPT),
        _row(Blow("given complete", Whom.STORE), failed="", lost=KEPT),
        _row(Blow("prepared", Whom.SUPERVISOR), failed=None, lost=KEPT),
        _row(_frozen("loaded"), failed=NEW_ENDED, lost=KEPT),
    ]
}


async def play(home: Path, rows: Sequence[Row]) -> tuple[list[Outcome], Result]:
    """Restart once for each row, under traffic."""
    async with arena(home, seed=1, kind=Supervised, durability="always") as ring:
        add_people(ring)
        async with ring.crowd():
            outcomes = [await restart(ring, *blows) for blows, _, _ in rows]
        return outcomes, await ring.result()


def test_every_step_is_in_the_table() -> None:
    assert {*FORMER, *LEFT} == {*OF_FORMER}
    assert {*SUCCESSOR} == {*OF_SUCCESSOR}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "rows" in metafunc.fixturenames:
        rows = TABLE if metafunc.config.getoption("--every-step") else SOME
        metafunc.parametrize("rows", rows.values(), ids=[*rows])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_kill_at_a_step_of_a_hand_over_loses_what_the_table_says(
    rows: Sequence[Row], tmp_path: Path
) -> None:
    outcomes, result = asyncio.run(play(tmp_path, rows))
    found = [
        (blows, None if failed is None else each.failed, each.lost)
        for (blows, failed, _), each in zip(rows, outcomes, strict=True)
    ]
    assert found == [*rows]
    assert result.is_valid, result.report()
    assert result.pending == 0, result.report()
