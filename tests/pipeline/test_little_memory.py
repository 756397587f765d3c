"""DuckDB takes little memory: what does not fit goes to a temporary folder, or is refused."""

import pytest
from duckdb import OutOfMemoryException
from typer.testing import CliRunner, Result

from holdfast.cli.main import program
from holdfast.pipeline.failures import in_words
from holdfast.pipeline.on_duckdb import DuckTables, opened
from tests.pipeline.stored import store_events
from tests.unit.pipeline.framed_events import one_run
from tests.unit.pipeline.stories import the_story

pytestmark = pytest.mark.untraced

MIB = 1024 * 1024
NUMBERS = "select unnest(generate_series(1, 2000000)) as i"
# Two million groups of about 100 bytes.
LARGE = "select concat(repeat('x', 90), i) as name from {numbers} group by name"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(store_events(tmp_path_factory.mktemp("lake"), one_run(the_story())).root)


def ask(place: str, *words: str) -> Result:
    return CliRunner().invoke(program, ["pipeline", *words, "--lake", place])


def limit_of(tables: DuckTables) -> int:
    [(limit,)] = tables.ask("select parse_formatted_bytes(current_setting('memory_limit'))").rows
    return int(limit)


def test_duckdb_takes_no_more_than_it_needs_unless_users_say_so() -> None:
    with opened(is_mixed=False) as tables:
        [(threads,)] = tables.ask("select current_setting('threads')").rows
        assert limit_of(tables) <= max(2048 * MIB, threads * 256 * MIB)
    with opened(is_mixed=False, memory=64 * MIB) as tables:
        assert limit_of(tables) == 64 * MIB


@pytest.mark.slow
def test_a_question_that_does_not_fit_into_memory_is_answered_with_files() -> None:
    with opened(is_mixed=False, memory=96 * MIB) as tables:
        tables.define("numbers", NUMBERS)
        tables.materialize("large", LARGE)
        assert tables.ask("select count(*) as n from {large}").rows == [(2_000_000,)]
        [(size,)] = tables.ask("select sum(size) as size from duckdb_temporary_files()").rows
    assert size > 0


@pytest.mark.parametrize("command", [["report", "funnel"], ["report", "latency"], ["audit"]])
def test_a_question_for_which_the_memory_is_too_little_says_what_to_do(
    place: str, command: list[str]
) -> None:
    said = ask(place, *command, "--memory", "10KB")
    assert said.exit_code == 1
    assert "more memory than DuckDB may take" in said.stderr
    assert "--memory 8GiB" in said.stderr
    assert "Traceback" not in said.output


@pytest.mark.parametrize("size", ["32MiB", "64 MB", "1gib"])
def test_sizes_of_memory_are_written_as_for_duckdb(place: str, size: str) -> None:
    assert "/orders" in ask(place, "report", "funnel", "--memory", size).stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--memory", "much"], "write 512MiB or 8GiB"),
        (["--memory", "8GiB", "--engine", "spark"], "--memory is DuckDB's"),
    ],
)
def test_other_sizes_and_other_engines_are_refused(place: str, words: list[str], told: str) -> None:
    said = ask(place, "report", "funnel", *words)
    assert said.exit_code == 2
    assert told in " ".join(said.stderr.split())


def test_a_full_temporary_folder_is_named() -> None:
    with opened(is_mixed=False, memory=48 * MIB) as tables:
        tables.ask("set max_temp_directory_size = '1MiB'")
        tables.define("numbers", NUMBERS)
        with pytest.raises(OutOfMemoryException, match="failed to offload") as told:
            tables.materialize("large", LARGE)
    assert in_words(told.value).startswith("the temporary folder is full")
