"""Steps of a message from tables, read by a separate process."""

import asyncio
import os
import sys
from pathlib import Path
from socket import gethostname

import pytest

import holdfast
from holdfast.web.admin.faults import RequestFailed
from holdfast.web.admin.table_reader import TableReader
from tests.pipeline.stored import store_events
from tests.store.store_process import until
from tests.unit.pipeline.events import NODE, START_US, event
from tests.unit.pipeline.framed_events import one_run
from tests.web.live_server import LiveServer

ID = f"{NODE}-{START_US * 1000:019d}"
NS = START_US * 1000


@pytest.fixture(autouse=True)
def _sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process run the sources that the tests run."""
    monkeypatch.setenv("PYTHONPATH", str(Path(str(holdfast.__file__)).parent.parent))


def reader(code: str, timeout_s: float = 20.0) -> TableReader:
    return TableReader((sys.executable, "-c", code), timeout_s)


async def refusal(reader: TableReader, *folders: str) -> str:
    with pytest.raises(RequestFailed) as refused:
        await reader.steps([NODE], NS, folders)
    return str(refused.value)


async def test_steps_are_read_from_the_first_folder_that_exists(tmp_path: Path) -> None:
    published = event("published", 0, 0, channel="/news", sender="pub/1", copies=1)
    end = event("dead", 1, 0, receiver="joe/1", code="user.update.error", letter=7)
    lake = store_events(tmp_path / "lake", one_run([published, end]))
    steps = await TableReader().steps([NODE], NS, [str(tmp_path / "gone"), str(lake.root)])
    assert [(step.kind, step.receiver) for step in steps] == [
        ("published", None),
        ("dead", "joe/1"),
    ]
    assert steps[1].letter == f"{7:019d}"


async def test_a_folder_without_tables_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path} has no tables" in await refusal(TableReader(), str(tmp_path))


@pytest.mark.parametrize("package", ["deltalake", "duckdb"])
async def test_packages_that_are_missing_are_named(tmp_path: Path, package: str) -> None:
    lake = store_events(tmp_path, one_run([event("published", 0, 0, copies=0)]))
    code = f"import runpy, sys\nsys.modules[{package!r}] = None\n"
    without = reader(f"{code}runpy.run_module('holdfast.pipeline.trace', run_name='__main__')")
    assert "pip install 'holdfast-bayeux[pipeline-local]" in await refusal(without, str(lake.root))


async def test_a_reader_without_output_has_failed() -> None:
    for code in ("raise SystemExit(1)", "print('[', end='')"):
        assert "to see why" in await refusal(reader(code))
    assert "failed: No such file" in await refusal(TableReader(["/gone"]))


async def test_an_answer_has_bounds_of_size_and_time(tmp_path: Path) -> None:
    assert "more steps than fit" in await refusal(reader("print('x' * 4_000_000)"))
    assert "no answer in 0.1 seconds" in await refusal(reader("input = open(0)\nwhile 1: 1", 0.1))


async def test_one_process_reads_at_a_time_and_ends_with_its_request(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    tell = f"import os, time; open({str(pid)!r}, 'w').write(f'{{os.getpid()}}\\n'); time.sleep(60)"
    slow = reader(tell)
    asked = asyncio.create_task(slow.steps([NODE], NS, []))
    await until(lambda: pid.exists() and pid.read_text().endswith("\n"))
    assert "another request" in await refusal(slow)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


async def test_only_tables_on_this_machine_are_read(server: LiveServer, tmp_path: Path) -> None:
    process = server.store_process
    lakes = process.store.keys.lakes
    process.server.ask("HSET", lakes, "1", f"elsewhere.{gethostname()}:{tmp_path}")
    with pytest.raises(RequestFailed, match="no tables on this machine"):
        await server.api.messages.table_steps(ID)
    process.server.ask("HSET", lakes, "2", f"{gethostname()}:{tmp_path}")
    with pytest.raises(RequestFailed, match="has no tables"):
        await server.api.messages.table_steps(ID)


async def test_tables_in_a_bucket_are_read_from_any_machine(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    process = server.store_process
    process.server.ask("HSET", process.store.keys.lakes, "1", "s3://tables/lake")
    with pytest.raises(RequestFailed, match="s3://tables/lake"):
        await server.api.messages.table_steps(ID)
