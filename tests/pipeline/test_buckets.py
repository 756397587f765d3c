"""Tables in a bucket: all that works on a disk works there, with two real servers."""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError
from typer.testing import CliRunner, Result

import holdfast
from holdfast.cli.main import program
from holdfast.pipeline.delta import Table
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.ingest import Source, take_what_is_there
from holdfast.pipeline.lake import EVENTS, TABLES, Lake
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.storage import lease, objects
from holdfast.pipeline.storage.place import for_delta, local_folder, place_of
from holdfast.pipeline.tasks import LocalTasks
from holdfast.web.admin.table_reader import TableReader
from tests.pipeline.buckets import BUCKET, KEY, SERVERS, served
from tests.pipeline.deaths import Killed
from tests.pipeline.journals import Writer
from tests.store.cluster import until
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.events import NODE
from tests.unit.pipeline.stories import the_story

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = LocalTasks(1)
ON_BOTH = pytest.mark.parametrize("server", sorted(SERVERS), indirect=True)
# These run what others run on a disk.
AS_ON_A_DISK = pytest.mark.untraced
COUNT = "select count(*) from {events}"


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], str]]:
    with ExitStack() as stack:
        yield cache(lambda kind: stack.enter_context(served(kind)))


@pytest.fixture
def server(request: pytest.FixtureRequest, servers: Callable[[str], str]) -> str:
    """The URL of the faster server, if a test does not ask for both."""
    return servers(getattr(request, "param", "seaweed"))


@pytest.fixture
def root(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of tables that nobody has begun."""
    settings = {**KEY, "AWS_ENDPOINT_URL": server, "AWS_REGION": "us-east-1"}
    for name, value in {**settings, "XDG_CACHE_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    return place_of(f"s3://{BUCKET}/all tables/{tmp_path.name}")


def ingest(store: ValkeyServer, root: Path, most: int = 1000) -> None:
    take_what_is_there(TASKS, Source(store.url, most=most), Lake(root), lambda taken: None)


def rows(root: Path, table: str) -> list[str]:
    url, options = for_delta(root / table)
    found = DeltaTable(url, storage_options=options).to_pyarrow_table().to_pylist()
    return sorted(map(repr, found))


def of_all(root: Path) -> dict[str, list[str]]:
    return {table: rows(root, table) for table in TABLES}


@AS_ON_A_DISK
def test_every_command_works_on_tables_in_a_bucket(
    store: ValkeyServer, root: Path, tmp_path: Path
) -> None:
    def run(*words: str) -> Result:
        place = ["--redis", store.url, "--lake", str(root)]
        return CliRunner().invoke(program, ["pipeline", *words, *place])

    told = the_story()
    Writer(store).write_all(told, each=6)
    assert "has no tables yet" in run("report", "funnel").stderr
    words = ["ingest", "--once", "--engine", "local"]
    assert f"{len(told)} events in 1 batch" in run(*words).stderr
    assert "0 events in 0 batches" in run(*words).stderr
    assert str(root) in run("lake", "list").stdout

    page = tmp_path / "page.html"
    assert run("report", "all", "--html", str(page)).exit_code == 0
    assert "/orders" in page.read_text()
    funnel = run("report", "funnel").stdout
    assert "/orders" in funnel
    # What was found out is remembered on this machine.
    assert [*local_folder(root).glob("_sums/events-*")]
    assert run("report", "funnel").stdout == funnel
    audit = run("audit")
    assert "No violations" in audit.stderr
    assert "files as written" in run("verify").stderr

    before = of_all(root)
    assert "1 day rebuilt" in run("backfill", "--engine", "local").stderr
    assert of_all(root) == before
    assert run("audit").stderr == audit.stderr
    assert "Removed" in run("retain", "--days", "1", "--yes").stderr
    assert rows(root, EVENTS) == []


@AS_ON_A_DISK
def test_tables_are_the_same_as_on_a_disk_after_many_batches_and_a_compaction(
    store: ValkeyServer, root: Path, tmp_path: Path
) -> None:
    Writer(store).write_all(the_story(), each=9)
    for place in (root, tmp_path / "lake"):
        ingest(store, place, most=20)
    assert of_all(root) == of_all(tmp_path / "lake")
    before = of_all(root)
    compacted = CliRunner().invoke(program, ["pipeline", "compact", "--lake", str(root)])
    assert "compacted" in compacted.stderr
    assert len(Lake(root).files(EVENTS)) == 1
    assert of_all(root) == before


def test_spark_fills_tables_in_a_bucket_without_its_packages_for_them(
    spark: "SparkSession", store: ValkeyServer, root: Path, tmp_path: Path
) -> None:
    Writer(store).write_all(the_story(), each=9)
    ingest(store, tmp_path / "lake")
    # Its Java has started before the server of buckets.
    workers = spark.sparkContext.environment
    known = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    workers.update(known)
    try:
        take_what_is_there(spark, Source(store.url), Lake(root), lambda taken: None)
    finally:
        for name in known:
            del workers[name]
    assert of_all(root) == of_all(tmp_path / "lake")
    asked = ["report", "funnel", "--engine", "spark", "--lake", str(root)]
    told = CliRunner().invoke(program, ["pipeline", *asked])
    assert (told.exit_code, "Leave out --engine spark" in told.stderr) == (1, True)


@AS_ON_A_DISK
def test_a_reader_keeps_its_state_while_tables_change(store: ValkeyServer, root: Path) -> None:
    writer, told = Writer(store), the_story()
    for half in (told[:20], told[20:40]):
        writer.write_all(half, each=9)
        ingest(store, root)
    with of_lake(Lake(root)) as tables:
        writer.write_all(told[40:], each=9)
        ingest(store, root)
        CliRunner().invoke(program, ["pipeline", "compact", "--lake", str(root)])
        assert tables.ask(COUNT).rows == [(40,)]
    with of_lake(Lake(root)) as tables:
        assert tables.ask(COUNT).rows == [(len(told),)]


async def test_the_console_reads_the_steps_of_a_message_from_a_bucket(
    store: ValkeyServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Writer(store).write_all(the_story(), each=6)
    ingest(store, root)
    monkeypatch.setenv("PYTHONPATH", str(Path(str(holdfast.__file__)).parent.parent))
    msg = next(each.msg for each in the_story() if each.msg is not None)
    steps = await TableReader().steps([NODE], msg, [str(root)])
    assert [step.kind for step in steps][:2] == ["published", "handed"]


@AS_ON_A_DISK
def test_a_changed_object_is_named_and_not_read(store: ValkeyServer, root: Path) -> None:
    Writer(store).write_all(the_story(), each=9)
    ingest(store, root)
    [file] = Lake(root).listed(EVENTS)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    _put(file, bytes(content))
    done = CliRunner().invoke(program, ["pipeline", "report", "days", "--lake", str(root)])
    assert done.exit_code == 1
    assert f"{file} was changed after it was written" in done.stderr
    file.unlink()
    done = CliRunner().invoke(program, ["pipeline", "report", "days", "--lake", str(root)])
    assert f"{file} is missing" in done.stderr


def _put(file: Path, content: bytes) -> None:
    from holdfast.pipeline.storage.objects import ObjectPath, filesystem

    assert isinstance(file, ObjectPath)
    with filesystem().open_output_stream(file.arrow_name) as stream:
        stream.write(content)


def test_errors_of_a_bucket_say_what_to_do(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(place: Path) -> str:
        objects._bucket.cache_clear()
        asked = ["pipeline", "report", "funnel", "--lake", str(place)]
        return CliRunner().invoke(program, asked).stderr

    assert "has no tables yet: run holdfast pipeline ingest first" in said(root)
    with monkeypatch.context() as fate:
        fate.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        assert "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights" in said(root)
    objects._bucket.cache_clear()
    with monkeypatch.context() as fate:
        fate.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        told = (
            f"{root}/events: http://127.0.0.1:1 does not answer: AWS_ENDPOINT_URL names the server"
        )
        assert told in said(root)


@pytest.mark.parametrize("server", ["moto"], indirect=True)
def test_a_bucket_that_does_not_exist_is_named(store: ValkeyServer, root: Path) -> None:
    elsewhere = place_of("s3://elsewhere/lake")
    with pytest.raises(PipelineFailed, match=r"s3://elsewhere/lake.*(no such bucket|NoSuchBucket)"):
        ingest(store, elsewhere)


@ON_BOTH
def test_a_second_ingest_is_refused_while_one_is_running(store: ValkeyServer, root: Path) -> None:
    Writer(store).write_all(the_story(), each=9)
    told = r"another ingest is running there \(.*UTC or"
    with Lake(root).alone("ingest"), pytest.raises(PipelineFailed, match=told):
        ingest(store, root)
    ingest(store, root)
    assert len(rows(root, EVENTS)) == len(the_story())


@ON_BOTH
def test_of_two_concurrent_commits_one_is_accepted(root: Path) -> None:
    columns, by = TABLES["lost"]
    table = Table(root / "lost", columns, by)
    table.create(1)
    url, options = for_delta(root / "lost")
    for number in range(5):
        begun = [DeltaTable(url, storage_options=options) for _ in range(2)]
        with ThreadPoolExecutor() as threads:
            accepted = [*threads.map(partial(_is_accepted, number), begun)]
        assert sorted(accepted) == [False, True]
        assert table.number() == number


def _is_accepted(number: int, read: DeltaTable) -> bool:
    of_state = CommitProperties(app_transactions=[Transaction("holdfast", number)])
    try:
        read.create_write_transaction([], "append", read.schema(), commit_properties=of_state)
    except DeltaError:
        return False
    return True


class Dying(NamedTuple):
    """Where ingests are killed: they neither renew leases nor end them any more."""

    fate: pytest.MonkeyPatch

    @contextmanager
    def __call__(self, table: str) -> Iterator[None]:
        real = Table.commit

        def commit(this: Table, *args: Any, **options: Any) -> None:
            if this._place.name == table:
                raise Killed
            real(this, *args, **options)

        with self.fate.context() as fate:
            fate.setattr(Table, "commit", commit)
            fate.setattr(lease, "LASTS_S", 0.2)
            fate.setattr(lease.Lease, "_replace", lambda this, lasts_s: None)
            with pytest.raises(Killed):
                yield
        sleep(0.2)


@AS_ON_A_DISK
def test_an_ingest_killed_between_commits_goes_on_exactly_once(
    store: ValkeyServer, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Writer(store).write_all(the_story(), each=9)
    kill = Dying(monkeypatch)
    # No copy of this story is lost.
    for table in ("messages", "open", "life", "latency", EVENTS):
        with kill(table):
            ingest(store, root, most=20)
    ingest(store, root, most=20)
    ingest(store, tmp_path / "lake", most=20)
    assert of_all(root) == of_all(tmp_path / "lake")


def test_who_stood_still_for_too_long_cannot_commit_any_more(
    store: ValkeyServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, told = Writer(store), the_story()
    writer.write_all(told[:20], each=9)
    ingest(store, root)
    writer.write_all(told[20:], each=9)
    late = Lake(root)
    with monkeypatch.context() as fate:
        fate.setattr(lease, "LASTS_S", 0.2)
        fate.setattr(lease.Lease, "_replace", lambda this, lasts_s: None)
        with late.changing():
            # It has read the tables, and is about to commit to `events`, where a state begins.
            read = late.open(EVENTS).newest()
            sleep(0.2)
            fate.undo()
            # The other one has only begun.
            with Lake(root).changing():
                assert not _is_accepted(1, read)
            ingest(store, root)
            fate.setattr(lease, "_TRUSTED_S", 0.1)
            with pytest.raises(PipelineFailed, match="this process stood still"):
                late.commit([], {})
    assert len(rows(root, EVENTS)) == len(told)


@ON_BOTH
def test_a_lease_has_one_holder_however_many_want_it(root: Path) -> None:
    place: Any = root / "_lease"
    for number in range(3):
        wanted = [lease.Lease(place) for _ in range(8)]
        with ThreadPoolExecutor(8) as threads:
            taken = [*threads.map(lease.Lease.take, wanted)]
        assert sum(taken) == 1
        place.write(json.dumps({"who": "killed", "until_ms": 1, "mark": number}))


def test_a_lease_is_renewed_until_it_is_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place: Any = root / "_lease"
    monkeypatch.setattr(lease, "RENEWED_S", 0.1)
    with lease.leased(place, waits=False):
        first_ms = json.loads(place.read_text())["until_ms"]
        until(lambda: json.loads(place.read_text())["until_ms"] > first_ms)
        other = lease.Lease(place)
        assert not other.take()
    assert other.take()
    assert not other.is_inherited


def has_lost(held: lease.Lease) -> bool:
    try:
        held.check()
    except PipelineFailed as failed:
        return "another one may write there" in str(failed)
    return False


def test_a_holder_notices_that_it_lost_its_lease(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place: Any = root / "_lease"
    monkeypatch.setattr(lease, "RENEWED_S", 0.05)
    with lease.leased(place, waits=False) as held:
        held.check()
        place.write(json.dumps({"who": "another", "until_ms": 0, "mark": ""}))
        until(lambda: has_lost(held))
        # What another one has is not ended.
        before = place.read_text()
    assert place.read_text() == before
