"""Spark starts this Python, with its packages and the paths that Spark gives it."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.pipeline.python import python_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_starts_this_python_without_the_archives_of_pyspark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    given = ["/spark/pyspark.zip", "/spark/py4j-1-src.zip", "/spark/core.jar", "/ours"]
    told = subprocess.check_output(
        [
            python_for_spark(),
            "-c",
            "import sys; print(sys.prefix, *sys.path[1:3], sys.argv[1])",
            "a b",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(given)},
        text=True,
    )
    assert told == f"{sys.prefix} /spark/core.jar /ours a b\n"


def fail_at_first(rows: Iterable[int]) -> Iterable[int]:
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None or context.attemptNumber() == 0:
        raise RuntimeError("busy")
    return rows


def test_a_task_whose_python_fails_once_is_tried_again(spark: "SparkSession") -> None:
    from holdfast.pipeline.session import LOCAL

    assert LOCAL.replace("*", "2") == spark.sparkContext.master
    assert spark.sparkContext.parallelize([1], 1).mapPartitions(fail_at_first).collect() == [1]
