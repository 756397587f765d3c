"""Failures of Spark, DuckDB, tables and the system are reported without a stack trace."""

import errno
import os
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from holdfast.pipeline.failures import PipelineFailed, in_short, in_words, is_of_others

TRACE = """An error occurred while calling o51.parquet.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows.
\tat org.apache.spark.sql.Fake.write(Fake.scala:770)
Caused by: {cause}
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\t... 20 more
"""
OURS = """Traceback (most recent call last):
  File "reading.py", line 60, in read_piece
    raise PipelineFailed(
holdfast.pipeline.failures.PipelineFailed: frame 7: version 2, by a newer holdfast: update this
\tat org.apache.spark.api.python.PythonException(Fake.scala)
"""


@pytest.mark.slow
def test_an_error_of_duckdb_is_reported_in_one_line() -> None:
    with pytest.raises(duckdb.Error) as told:
        duckdb.sql("select * from read_parquet('/nowhere/rows.parquet')")
    assert is_of_others(told.value)
    assert in_words(told.value).startswith("DuckDB: IO Error: No files found")
    assert "\n" not in in_words(told.value)


@pytest.mark.slow
def test_an_error_of_the_tables_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DeltaError) as told:
        DeltaTable(tmp_path)
    assert is_of_others(told.value)
    assert in_words(told.value).startswith("deltalake: ")
    full = DeltaError("Generic LocalFileSystem error: No space left on device (os error 28)")
    assert in_words(full).startswith("the disk is full")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OURS, "frame 7: version 2, by a newer holdfast: update this"),
        (TRACE.format(cause="java.io.IOException: No space left on device"), "the disk is full"),
        (TRACE.format(cause="java.lang.OutOfMemoryError: Java heap space"), "spark.driver.memory"),
        (TRACE.format(cause="java.lang.Error: it is Tuesday"), "Spark: it is Tuesday"),
        ("[SOMETHING] it is Tuesday\nat the end", "Spark: [SOMETHING] it is Tuesday"),
    ],
)
def test_a_stack_trace_is_shortened_to_its_cause(text: str, words: str) -> None:
    told = in_short(text)
    assert told.startswith(words) or words in told
    assert "\n" not in told
    assert ".scala" not in told


def test_a_stack_trace_in_a_failure_of_the_pipeline_is_shortened_too() -> None:
    query = PipelineFailed(TRACE.format(cause="java.lang.Error: it is Tuesday"))
    assert in_words(query) == "Spark: it is Tuesday"


def test_an_error_of_the_system_is_reported_with_the_name_of_the_file() -> None:
    refused = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/lake/_lock")
    assert in_words(refused) == "/lake/_lock: Permission denied"
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/lake/_lock")
    assert in_words(full).startswith("/lake/_lock: the disk is full")


def test_an_error_of_arrow_at_a_bucket_is_reported_as_arrows() -> None:
    told = "When reading information for key 'lake/x' in bucket 'tables': AWS Error ACCESS_DENIED"
    assert in_words(OSError(told)) == f"Arrow: {told}"


def test_an_error_without_a_text_is_reported_as_a_process_that_died() -> None:
    class Gone(Exception):
        def __str__(self) -> str:
            raise ConnectionError

    assert "process died" in in_words(Gone())


def test_faults_of_the_pipeline_are_told_apart_from_those_of_others() -> None:
    assert not is_of_others(KeyError("x"))
    assert not is_of_others(PipelineFailed("x"))
    assert is_of_others(OSError())
    assert "process died" in in_words(ConnectionRefusedError(errno.ECONNREFUSED, "refused"))
