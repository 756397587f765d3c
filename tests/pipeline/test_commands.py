"""The commands of `holdfast pipeline`."""

import asyncio
import logging
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest
from redis import Redis
from redis.exceptions import RedisError
from typer.testing import CliRunner, Result

from holdfast.cli import pipeline_results
from holdfast.cli import spark as spark_of_commands
from holdfast.cli.journal_place import JournalPlace
from holdfast.cli.main import program
from holdfast.cli.pipeline import print_progress
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.ingest import IngestProgress
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.reports.columns import COLUMNS
from holdfast.pipeline.session import Engine
from holdfast.store.local.embedded import Durability, EmbeddedValkey
from tests.pipeline.journals import Writer
from tests.pipeline.stored import store_events
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.events import START_US
from tests.unit.pipeline.framed_events import one_run
from tests.unit.pipeline.stories import acked, start, the_story

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(*words: str) -> Result:
    return CliRunner().invoke(program, ["pipeline", *words])


def test_the_doctor_reports_spark_and_one_java() -> None:
    said = CliRunner().invoke(program, ["doctor", "--pipeline", "--json"])
    checks = {row["name"]: row for row in map(orjson.loads, said.stdout.splitlines())}
    assert said.exit_code == 0
    assert checks["pyspark"]["text"].startswith("4.")
    assert sum(check["ok"] is True for name, check in checks.items() if "Java" in name) == 1


def test_importing_the_command_line_does_not_load_spark_or_arrow() -> None:
    heavy = "{'pyspark', 'pyarrow', 'pandas', 'numpy'}"
    check = f"import sys, holdfast.cli.main; sys.exit(str({heavy} & {{*sys.modules}} or ''))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert not done.stderr.strip()


@pytest.mark.parametrize(("command", "said"), [("report funnel", "/orders"), ("audit", "run.")])
def test_reports_and_audits_by_duckdb_load_no_heavy_packages(
    tmp_path: Path, command: str, said: str
) -> None:
    lake = store_events(tmp_path, one_run(the_story()))
    heavy = "{'pyspark', 'pyarrow', 'pandas', 'numpy', 'redis', 'aiohttp'}"
    ask = f"main.program(['pipeline', *'{command}'.split(), '--lake', '{lake.root}'])"
    check = (
        f"import sys, holdfast.cli.main as main\ntry: {ask}\n"
        f"except SystemExit: sys.exit(str({heavy} & {{*sys.modules}} or ''))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert said in done.stdout
    # Otherwise the set of heavy packages that were loaded.
    assert "{" not in done.stderr


def lines(said: Result) -> list[Any]:
    return [orjson.loads(line) for line in said.stdout.splitlines()]


def test_a_journal_with_gaps_is_ingested_reported_on_and_audited(
    lent: None, store: ValkeyServer, tmp_path: Path
) -> None:
    writer = Writer(store)
    writer.write_all([*the_story(), acked(30, 1, "ann/1")], each=14)
    writer.delete(writer.entries()[2])
    place = ("--redis", store.url, "--lake", str(tmp_path / "lake"))
    early = run("report", "funnel", *place)
    assert (early.exit_code, "ingest first" in early.stderr) == (1, True)
    torn = run("ingest", "--once", "--json", *place)
    assert torn.exit_code == 1
    said = torn.stderr.splitlines()[-1]
    assert said.startswith("holdfast: the journal of node n1: frames 3 to 3 are missing")
    writer.write(*the_story()[:2])
    writer.delete(writer.entries()[-1])
    # Of this node nothing is left.
    other = Writer(store, "n2")
    other.delete(other.write(start(0)._replace(node="n2")))
    taken = run("ingest", "--once", "--accept-loss", "--json", *place)
    told = {
        "events": 41,
        "batches": 1,
        "incidents": {"frame.gap": 1},
        "lacking": {"n1": 1, "n2": 1},
    }
    assert (lines(taken), taken.exit_code) == ([told], 1)
    assert "the journal of node n1 lacks its last 1 frame\n" in taken.stderr
    shown = orjson.loads(store.ask("GET", "{holdfast}:pipeline:dead"))
    assert [row["dead"] for row in shown["rows"]] == [1]
    store.ask("DEL", "{holdfast}:pipeline:dead")
    results = [{"v": 2, **each, "at": 0} for each in lines(run("results", "--json", *place))]
    again = orjson.loads(store.ask("GET", "{holdfast}:pipeline:dead"))
    assert {**again, "at": 0} == {**shown, "at": 0}
    assert {**shown, "at": 0} in results
    audit = run("audit", "--json", *place)
    assert audit.exit_code == 1
    kinds = [row["kind"] for row in lines(audit)]
    found = {
        "frame.gap",
        "frame.lacking",
        "never_handed",
        "settled_twice",
        "too_many_ends",
        "run.cut",
        "run.silent",
    }
    assert {*kinds} == found
    assert [*lines(audit)[0]] == [column.name for column in COLUMNS["audit"]]
    messages = [row["message"] for row in lines(audit) if row["kind"] == "never_handed"]
    assert messages == [f"n1-{START_US * 1000 + 10**9}"]
    # The server learns of violations, and not of what is unknown.
    audited = orjson.loads(store.ask("GET", "{holdfast}:pipeline:audit"))
    violations = Counter(kind for kind in kinds if not kind.startswith("run."))
    assert {row["kind"]: row["number"] for row in audited["rows"]} == violations
    store.ask("DEL", "{holdfast}:pipeline:audit")
    run("audit", "--channel", "/orders", *place)
    assert store.ask("EXISTS", "{holdfast}:pipeline:audit") == 0
    parquet = tmp_path / "throughput"
    table = run("report", "throughput", "--parquet", str(parquet), *place).stdout.splitlines()
    assert table[0].split("\t")[:4] == ["MINUTE", "NODE", "PUBLISHED", "COPIES"]
    assert table[1].split("\t")[:4] == ["2025-11-20T10:00:00.000Z", "n1", "8", "16"]
    assert [*parquet.glob("*.parquet")]


@pytest.mark.parametrize("words", [["report", "trend"], ["audit"]])
def test_columns_are_explained_without_tables(words: list[str], tmp_path: Path) -> None:
    said = run(*words, "--columns", "--json", "--lake", str(tmp_path / "lake"))
    assert said.exit_code == 0
    assert {row["column"]: row["meaning"] for row in lines(said)} == {
        column.name: column.meaning for column in COLUMNS[words[-1]]
    }
    assert run(*words, "--columns").stdout.startswith("COLUMN\tMEANING\n")


def test_what_an_ingest_has_read_is_told_in_the_right_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_progress(IngestProgress(1, 977, {"frame.gap": 1}, {}), as_json=False)
    told = capsys.readouterr().err
    assert told == "977 events in 1 batch\nholdfast: frame.gap: 1 frame\n"
    print_progress(IngestProgress(2, 1, {}, {}), as_json=False)
    assert capsys.readouterr().err == "1 event in 2 batches\n"


def test_the_console_gets_results_after_each_batch_of_a_continuing_ingest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lake, written = Lake(tmp_path), SimpleQueue[int | None]()
    lake.sign()
    monkeypatch.setattr(pipeline_results, "_EVERY_S", 0.001)
    monkeypatch.setattr(pipeline_results, "write_present", lambda *_: written.put(lake.state()))
    with pipeline_results.keeping(lake, None, "", ""):
        for batch in (0, 1):
            lake.commit([], {})
            assert written.get(timeout=60) == batch
    assert written.empty()


def test_only_engine_spark_asks_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = store_events(tmp_path, [])
    asked: list[Engine] = []

    @contextmanager
    def refuse(engine: Engine) -> Iterator[None]:
        asked.append(engine)
        raise PipelineFailed("no Spark here")
        yield

    monkeypatch.setattr(spark_of_commands, "session", refuse)
    for words in (["report", "dead"], ["audit"], ["replay", "--all", "--dry-run"]):
        said = run(*words, "--lake", str(lake.root))
        assert "no Spark here" not in said.stderr
        said = run(*words, "--lake", str(lake.root), "--engine", "spark")
        assert (said.exit_code, "no Spark here" in said.stderr) == (1, True)
    assert len(asked) == 3


def test_a_directory_without_a_store_is_named(tmp_path: Path) -> None:
    said = run("ingest", "--once", "--data", str(tmp_path))
    assert (said.exit_code, str(tmp_path) in said.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (["ingest", "--master", "yarn"], "yarn"),
        (["ingest", "--redis", "localhost", "--lake", "."], "redis://"),
        (["ingest", "--remote", "sc://localhost"], "--master"),
        (["backfill", "--remote", "sc://localhost"], "--master"),
        (["report", "dead", "--conf", "spark.driver.memory"], "spark.some.name=value"),
        (["report", "dead", "--master", "local[2]"], "add --engine spark"),
        (["audit", "--engine", "duckdb", "--remote", "sc://localhost"], "add --engine spark"),
        (["report", "dead", "--parquet", "."], "exists already"),
        (["report", "all", "--html", "nowhere/page.html"], "nowhere/page.html"),
        (["report", "all"], "--html"),
        (["retain", "--days", "999999999"], "days"),
        (["replay"], "--all"),
    ],
)
def test_invalid_options_are_usage_errors_before_spark_starts(words: list[str], about: str) -> None:
    said = run(*words)
    assert (said.exit_code, about in said.stderr) == (2, True)


def test_spark_does_not_change_the_handler_of_ctrl_c(spark: "SparkSession") -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_spark_prints_no_stack_trace_when_its_java_dies(
    spark: "SparkSession", capfd: pytest.CaptureFixture[str]
) -> None:
    server: Any = spark.sparkContext._accumulatorServer
    try:
        raise EOFError
    except EOFError:
        server.handle_error(None, None)
    assert capfd.readouterr() == ("", "")
    # Otherwise the first trace makes a handler for all others.
    assert logging.getLogger().handlers


@pytest.mark.parametrize("words", [["report", "dead"], ["audit"], ["compact"], ["results"]])
def test_commands_without_tables_say_how_to_get_some(words: list[str], tmp_path: Path) -> None:
    said = run(*words, "--lake", str(tmp_path / "lake"))
    assert (said.exit_code, "ingest first" in said.stderr) == (1, True)


def test_an_ingest_from_another_store_requires_a_lake() -> None:
    said = run("ingest", "--once", "--redis", "redis://localhost:1")
    assert (said.exit_code, "--lake" in said.stderr) == (2, True)


async def test_the_store_of_a_stopped_server_is_started_for_the_time_of_a_command(
    tmp_path: Path,
) -> None:
    async with EmbeddedValkey(tmp_path, Durability.ALWAYS) as url:
        Redis.from_url(url).set("key", "value")

    def look() -> bytes | None:
        place = JournalPlace(tmp_path, None, None, "holdfast")
        with place.stores() as url:
            found: Any = Redis.from_url(url).get("key")
            # A store that runs already is used as it is.
            with place.stores() as same:
                assert same == url
        with pytest.raises(RedisError):
            Redis.from_url(url).ping()
        return cast("bytes | None", found)

    assert await asyncio.to_thread(look) == b"value"
