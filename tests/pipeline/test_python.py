"""Spark starts this Python, with its packages and the paths that Spark gives it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.pipeline.python import python_for_spark


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
