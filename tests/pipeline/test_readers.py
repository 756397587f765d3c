"""The server keeps a frame until every lake has it, except lakes that were dropped."""

from collections.abc import Callable
from pathlib import Path
from threading import Event

import orjson
import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.main import program
from holdfast.pipeline import heard, lacking
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.ingest import Source, check_store, go_on
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.source.outline import Position
from holdfast.pipeline.source.planning import Planner
from holdfast.pipeline.source.readers import JournalReader, Readers
from holdfast.pipeline.source.streams import Journals
from holdfast.pipeline.tasks import LocalTasks
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from tests.pipeline.journals import Writer, evaluate
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.stories import start

LATER_MS = 4_000_000_000_000


@pytest.fixture
def writer(store: ValkeyServer) -> Writer:
    """A journal of four frames."""
    writer = Writer(store)
    for second in range(4):
        writer.write(start(second))
    return writer


@pytest.fixture
def readers(store: ValkeyServer, writer: Writer) -> Readers:
    return Readers(Journals(store.url, "holdfast"))


def left(store: ValkeyServer, writer: Writer) -> int:
    """The number of frames that the server leaves when it trims what all have read."""
    call = scripts.trim(
        RedisKeys("holdfast"),
        "n1",
        read_ms=LATER_MS,
        oldest_ms=0,
        size=2**30,
        now_ms=0,
    )
    evaluate(store, writer.epoch, call)
    return len(writer.entries())


def run(*words: str) -> Result:
    return CliRunner().invoke(program, ["pipeline", "lake", *words])


def test_frames_stay_until_every_lake_has_them(
    store: ValkeyServer, writer: Writer, readers: Readers
) -> None:
    ids = writer.entries()
    readers.report("one", "here:/one", {"n1": Position(ids[2])})
    readers.report("two", "here:/two", {})
    assert left(store, writer) == 4
    readers.report("two", "here:/two", {"n1": Position(ids[0])})
    assert left(store, writer) == 3
    assert readers.drop("two")
    assert left(store, writer) == 1


def test_a_position_that_an_older_version_left_keeps_no_frames(
    store: ValkeyServer, writer: Writer, readers: Readers
) -> None:
    ids = writer.entries()
    store.ask("HSET", f"{writer.stream}:read", "ingest", ids[0])
    readers.report("one", "here:/one", {"n1": Position(ids[3])})
    assert left(store, writer) == 0


def test_the_list_says_how_far_each_lake_is(writer: Writer, readers: Readers) -> None:
    id = writer.entries()[1]
    readers.report("two", "here:/two", {})
    readers.report("one", "here:/one", {"n1": Position(id)})
    ms = int(id.partition("-")[0])
    assert readers.all() == [
        JournalReader("one", "here:/one", ms),
        JournalReader("two", "here:/two", None),
    ]


def test_lakes_can_be_listed_and_dropped(
    store: ValkeyServer, writer: Writer, readers: Readers
) -> None:
    readers.report("one", "here:/one", {})
    listed = run("list", "--json", "--redis", store.url)
    told = {"lake": "one", "place": "here:/one", "until": None}
    assert orjson.loads(listed.stdout) == told
    assert "here:/one" in run("list", "--redis", store.url).stdout
    assert run("drop", "one", "--redis", store.url).exit_code == 2
    assert run("drop", "one", "--yes", "--redis", store.url).exit_code == 0
    assert readers.all() == []
    again = run("drop", "one", "--yes", "--redis", store.url)
    assert (again.exit_code, "lake list" in again.stderr) == (1, True)


def test_each_lake_has_an_id_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    one, two = Lake(tmp_path / "one"), Lake(tmp_path / "two")
    one.sign()
    two.sign()
    id = one.id
    one.sign()
    assert one.id == id != two.id


def test_an_ingest_from_another_store_into_the_same_tables_is_refused(
    store: ValkeyServer, writer: Writer, tmp_path: Path
) -> None:
    lake, journals = Lake(tmp_path / "lake"), Journals(store.url, "holdfast")

    def check(*, accepts_loss: bool = False) -> None:
        check_store(journals, lake, accepts_loss=accepts_loss)

    def read_until(epoch: str) -> None:
        """As if an ingest had read so far."""
        lake.commit([], {"n1": Position("1-0", epoch, 1).as_json()})

    lake.sign()
    check()
    read_until("seed-1")
    check()
    read_until("other-1")
    with pytest.raises(PipelineFailed, match=r"of another store: name another --lake.*emptied"):
        check()
    check(accepts_loss=True)


class Turns(Event):
    """Lets an ingest look at the journal so many times, with something happening before each."""

    def __init__(self, number: int, happen: Callable[[], object]) -> None:
        super().__init__()
        self._number = number
        self._happen = happen

    def is_set(self) -> bool:
        self._happen()
        self._number -= 1
        return self._number < 0

    def wait(self, timeout: float | None = None) -> bool:
        return True


def go_on_with(store: ValkeyServer, lake: Lake, turns: Turns) -> None:
    """A continuing ingest without Spark."""
    go_on(LocalTasks(1), Source(store.url), lake, lambda taken: None, turns)


@pytest.fixture
def lake(store: ValkeyServer, writer: Writer, tmp_path: Path) -> Lake:
    """Tables that have the four frames, according to their position."""
    lake = Lake(tmp_path / "lake")
    lake.sign()
    digest = Journals(store.url, "holdfast").ends("n1").digest
    position = Position(writer.entries()[-1], writer.epoch, 4, (digest,))
    lake.commit([], {"n1": position.as_json()})
    return lake


def test_a_continuing_ingest_notes_missing_frames_and_servers_that_were_heard_of(
    store: ValkeyServer, writer: Writer, lake: Lake
) -> None:
    writer.delete(writer.write(start(4)))
    store.ask("HSET", RedisKeys("holdfast").meta, f"heard {writer.stream}", 17)
    go_on_with(store, lake, Turns(2, lambda: None))
    assert (lacking.remembered(lake), heard.remembered(lake)) == ({"n1": 1}, {"n1": 17})


def test_frames_known_to_be_missing_do_not_count_as_waiting_but_those_after_them_do(
    store: ValkeyServer, writer: Writer, lake: Lake
) -> None:
    planner = Planner(Journals(store.url, "holdfast"), cores=1, accepts_loss=False)
    writer.delete(writer.write(start(4)))
    assert planner.waiting(lake.offset(), {}) == 1
    assert planner.waiting(lake.offset(), {"n1": 1}) == 0
    writer.write(start(5))
    assert planner.waiting(lake.offset(), {"n1": 1}) == 1


def test_an_ingest_ends_when_its_store_is_emptied_or_replaced(
    store: ValkeyServer, writer: Writer, lake: Lake
) -> None:
    def replace() -> None:
        store.ask("FLUSHALL")
        writer.epoch = "other-1"
        writer.write(start(9))

    with pytest.raises(PipelineFailed, match="of another store: name another --lake"):
        go_on_with(store, lake, Turns(1, replace))


@pytest.mark.parametrize("place", ["s3a://bucket/lake", "file:///lake", "s3://"])
def test_a_url_of_another_kind_is_refused_as_a_lake(place: str) -> None:
    said = CliRunner().invoke(program, ["pipeline", "ingest", "--once", "--lake", place])
    assert (said.exit_code, "neither a folder nor s3://" in said.stderr) == (2, True)
