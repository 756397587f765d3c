"""Histories: what is recorded is read again, however the recording ended."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.chaos.history import Clock, HistoryDamaged, HistoryWriter, Phase, What, about, read


class Ticks(Clock):
    """A clock that advances by a nanosecond each time it is read."""

    def __init__(self) -> None:
        self._now_ns = 0

    def monotonic_ns(self) -> int:
        self._now_ns += 1
        return self._now_ns

    def wall_ns(self) -> int:
        return 1000 + self._now_ns


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.ndjson"


@pytest.fixture
def history(path: Path) -> Iterator[HistoryWriter]:
    history = HistoryWriter(path, Ticks())
    yield history
    history.close()


def test_beginning_and_end_are_put_together(path: Path, history: HistoryWriter) -> None:
    begun = history.begin("p", What.PUBLISH, tag="p-1")
    history.note("joe/1", What.DELIVER, tag="p-0")
    begun.ok(state="OK")
    publish, deliver = read(path)
    assert (publish.process, publish.what, publish.is_ok) == ("p", What.PUBLISH, True)
    assert (publish.begun_ns, publish.ended_ns, publish.wall_ns) == (1, 3, 1001)
    assert publish.fields == {"tag": "p-1", "state": "OK"}
    assert (deliver.begun_ns, deliver.ended_ns) == (2, 2)


def test_outcomes_are_told_apart(path: Path, history: HistoryWriter) -> None:
    history.begin("p", What.PUBLISH).ok()
    history.begin("p", What.PUBLISH).fail()
    history.begin("p", What.PUBLISH).info()
    history.begin("p", What.PUBLISH)
    found = [(each.outcome, each.ended_ns) for each in read(path)]
    assert found == [(Phase.OK, 2), (Phase.FAIL, 4), (Phase.INFO, 6), (Phase.INFO, None)]


def test_every_line_is_written_at_once(path: Path, history: HistoryWriter) -> None:
    history.begin("p", What.PUBLISH)
    assert path.read_bytes().endswith(b"}\n")


def test_a_history_continues_where_it_ended(path: Path, history: HistoryWriter) -> None:
    history.note("p", What.FAULT)
    history.close()
    second = HistoryWriter(path, Ticks())
    second.note("q", What.CONNECT)
    second.close()
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_a_torn_last_line_is_tolerated(path: Path, history: HistoryWriter, cut: int) -> None:
    history.note("p", What.FAULT, kind="first")
    history.note("p", What.FAULT, kind="second")
    path.write_bytes(path.read_bytes()[:-cut])
    assert [each.fields["kind"] for each in read(path)][:1] == ["first"]
    assert len(read(path)) == (2 if cut == 1 else 1)


def test_damage_before_the_last_line_is_an_error(path: Path, history: HistoryWriter) -> None:
    path.write_bytes(b'{"n": 1, "pro\n')
    history.note("p", What.FAULT)
    with pytest.raises(HistoryDamaged, match="line 1"):
        read(path)


def test_nothing_recorded_is_an_empty_history(path: Path, history: HistoryWriter) -> None:
    assert read(path) == []


def test_the_story_of_a_message_has_its_ends_and_all_faults(
    path: Path, history: HistoryWriter
) -> None:
    begun = history.begin("p", What.PUBLISH, tag="p-1")
    other = history.begin("p", What.PUBLISH, tag="p-10")
    fault = history.begin("nemesis", What.FAULT, kind="reset connections")
    begun.ok()
    other.ok()
    fault.ok()
    history.note("store", What.SCAN, pending={"joe/1": [{"tag": "p-1"}]})
    history.note("joe/1", What.SETTLE, entries=[{"tag": "p-1"}])
    assert [
        [orjson.loads(line)[name] for name in ("n", "phase")] for line in about(path, "p-1")
    ] == [
        *([1, "invoke"], [3, "invoke"], [1, "ok"], [3, "ok"]),
        [5, "ok"],
    ]
