"""`holdfast pipeline` as a person uses it."""

import subprocess
import sys

import orjson
from typer.testing import CliRunner, Result

from app.cli.main import program


def run(*words: str) -> Result:
    return CliRunner().invoke(program, ["pipeline", *words])


def test_the_doctor_says_what_there_is() -> None:
    said = run("doctor", "--json")
    sights = {row["thing"]: row for row in map(orjson.loads, said.stdout.splitlines())}
    assert said.exit_code == 0
    assert sights["pyspark"]["text"].startswith("4.")
    assert sum(sight["ok"] is True for thing, sight in sights.items() if "Java" in thing) == 1


def test_the_server_starts_without_spark() -> None:
    heavy = "{'pyspark', 'pyarrow', 'pandas', 'numpy'}"
    check = f"import sys, app.cli.main; sys.exit(str({heavy} & {{*sys.modules}} or ''))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert not done.stderr.strip()
