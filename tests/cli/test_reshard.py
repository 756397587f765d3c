"""`holdfast reshard` on a store without a server."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.reshard import program
from holdfast.cluster.shards import first_map
from holdfast.store.format.keys import RedisKeys
from tests.offline.made_up import divided, fill
from tests.offline.test_reshard import EXAMPLE, valkey
from tests.serving import as_toml
from tests.store.servers import ValkeyServer

__all__ = ["valkey"]


@pytest.fixture
def config(valkey: ValkeyServer, tmp_path: Path) -> Path:
    fill(valkey, EXAMPLE, divided(first_map(1)))
    file = tmp_path / "holdfast.toml"
    file.write_text(as_toml({"redis": valkey.url, "data": str(tmp_path / "data"), "chat": False}))
    return file


def run(config: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["--config", str(config), *words])


def test_a_dry_run_says_what_each_worker_would_get(config: Path) -> None:
    done = run(config, "--shards", "2", "--dry-run")
    assert done.exit_code == 0
    first, second, last = done.stdout.splitlines()
    assert first.startswith("shard 0 would get ")
    assert second.startswith("shard 1 would get ")
    assert last.startswith("the stores have ")
    assert last.endswith(" MiB more until the end")
    told = json.loads(run(config, "--shards", "2", "--dry-run", "--json").stdout)
    assert (told["before"], told["after"], told["dry_run"], told["moved"]) == (1, 2, True, True)
    assert sum(each["sessions"] for each in told["shards"]) == 4


def test_it_says_what_each_worker_has_and_how_to_go_on(config: Path) -> None:
    done = run(config, "--shards", "2")
    assert done.exit_code == 0
    assert done.stdout.startswith("shard 0 has ")
    assert done.stdout.endswith("\nstart the server with --workers 2\n")
    again = run(config, "--shards", "2")
    assert (again.exit_code, again.stdout) == (
        0,
        "the deployment has 2 shards already: nothing has to move\n",
    )


def test_a_dry_run_with_fewer_workers_says_whose_journal_is_read_no_more(config: Path) -> None:
    assert run(config, "--shards", "3").exit_code == 0
    last = run(config, "--shards", "1", "--dry-run").stdout.splitlines()[-1]
    assert last == (
        "the journal of shards 1, 2 is read no more then: if you use the pipeline, run holdfast "
        "pipeline ingest --once before"
    )


def test_what_a_killed_run_has_left_is_dropped(config: Path, valkey: ValkeyServer) -> None:
    valkey.ask("HSET", RedisKeys("holdfast", 0, 2).bodies, "1", "{}")
    done = run(config, "--drop")
    assert (done.exit_code, done.stdout) == (
        0,
        "the deployment has 1 shard already: nothing has to move; removed 1 key of a killed run\n",
    )


@pytest.mark.parametrize(
    "words", [[], ["--drop", "--shards", "2"], ["--drop", "--rules"], ["--shards", "0"]]
)
def test_it_must_be_clear_what_is_wanted(config: Path, words: list[str]) -> None:
    assert run(config, *words).exit_code == 2


def test_a_refusal_says_why_and_that_nothing_has_moved(config: Path, valkey: ValkeyServer) -> None:
    valkey.ask("HSET", RedisKeys("holdfast").meta, "version", 2)
    done = run(config, "--shards", "2")
    assert done.exit_code == 1
    assert done.stderr.startswith("holdfast has moved nothing: the store has layout 2")
